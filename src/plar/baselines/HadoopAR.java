import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.math.MathContext;
import java.math.RoundingMode;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import java.util.UUID;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.conf.Configured;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.mapreduce.Job;
import org.apache.hadoop.mapreduce.Mapper;
import org.apache.hadoop.mapreduce.Reducer;
import org.apache.hadoop.mapreduce.lib.input.FileInputFormat;
import org.apache.hadoop.mapreduce.lib.output.FileOutputFormat;
import org.apache.hadoop.util.Tool;
import org.apache.hadoop.util.ToolRunner;

/**
 * HadoopAR: a MapReduce job for every Θ(D|B), which reads the table again.
 *
 * <p>Arguments: Hadoop's generic options, the table's file on this machine, the measure, the number of decisions. A line
 * of the table is "tag,value,value,…", a tag being label · decisions + decision. A line of stdin is a subset B, the
 * positions of its attributes with commas between; it is answered with "=Θ active": the sum of θ over the classes of
 * U/B, and the objects in classes of more than one label; or with "!" and what went wrong.
 */
public class HadoopAR extends Configured implements Tool {
  private static final String SUBSET = "plar.subset";
  private static final String MEASURE = "plar.measure";
  private static final String DECISIONS = "plar.decisions";

  /** A row to (its B-vector, its tag and 1). */
  public static class RowMapper extends Mapper<Object, Text, Text, Text> {
    private int[] subset;

    @Override
    protected void setup(Context context) {
      subset = context.getConfiguration().getInts(SUBSET);
    }

    @Override
    protected void map(Object offset, Text line, Context context) throws IOException, InterruptedException {
      String[] cells = line.toString().split(",");
      StringBuilder key = new StringBuilder();
      for (int a : subset) {
        key.append(cells[1 + a]).append(',');
      }
      context.write(new Text(key.toString()), new Text(cells[0] + ":1"));
    }
  }

  /** Adds the counts of a class up, tag by tag, before they are sent. */
  public static class ClassCombiner extends Reducer<Text, Text, Text, Text> {
    @Override
    protected void reduce(Text key, Iterable<Text> parts, Context context) throws IOException, InterruptedException {
      StringBuilder counts = new StringBuilder();
      for (Map.Entry<Long, Long> one : together(parts).entrySet()) {
        counts.append(counts.length() == 0 ? "" : ",").append(one.getKey()).append(':').append(one.getValue());
      }
      context.write(key, new Text(counts.toString()));
    }
  }

  /** A class to its θ; writes the sum over all classes that it was given. */
  public static class ThetaReducer extends Reducer<Text, Text, Text, Text> {
    private final Map<Long, Long> logs = new HashMap<>();
    private BigInteger theta = BigInteger.ZERO;
    private long active = 0;

    @Override
    protected void reduce(Text key, Iterable<Text> parts, Context context) {
      String measure = context.getConfiguration().get(MEASURE);
      long decisions = context.getConfiguration().getLong(DECISIONS, 1);
      Map<Long, Long> byDecision = new HashMap<>();
      Map<Long, Long> byLabel = new HashMap<>();
      long size = 0;
      for (Map.Entry<Long, Long> one : together(parts).entrySet()) {
        byDecision.merge(one.getKey() % decisions, one.getValue(), Long::sum);
        byLabel.merge(one.getKey() / decisions, one.getValue(), Long::sum);
        size += one.getValue();
      }
      active += byLabel.size() > 1 ? size : 0;
      if (measure.equals("PR")) {
        theta = theta.subtract(BigInteger.valueOf(byDecision.size() == 1 ? size : 0));
        return;
      }
      theta = theta.add(f(measure, size));
      for (long n : byDecision.values()) {
        theta = theta.subtract(f(measure, n));
      }
    }

    @Override
    protected void cleanup(Context context) throws IOException, InterruptedException {
      context.write(new Text(theta.toString()), new Text(Long.toString(active)));
    }

    /** θ(E) = f(|E|) − Σ f(|D|): LCE n(n − 1), CCE n²(n − 1), SCE n·round(2^32·ln n). */
    private BigInteger f(String measure, long n) {
      BigInteger times = BigInteger.valueOf(n);
      switch (measure) {
        case "LCE":
          return times.multiply(BigInteger.valueOf(n - 1));
        case "CCE":
          return times.multiply(times).multiply(BigInteger.valueOf(n - 1));
        default:
          return times.multiply(BigInteger.valueOf(logs.computeIfAbsent(n, HadoopAR::log)));
      }
    }
  }

  /** round(2^32·ln n), correctly: ln(m·2^k) = k·ln 2 + ln m, and ln m = 2·artanh((m − 1)/(m + 1)), to 50 digits. */
  public static long log(long n) {
    MathContext digits = new MathContext(50);
    int k = 63 - Long.numberOfLeadingZeros(n);
    BigDecimal m = new BigDecimal(n).divide(new BigDecimal(1L << k), digits);
    BigDecimal ln = artanhTwice(BigDecimal.valueOf(2), digits).multiply(BigDecimal.valueOf(k), digits);
    ln = ln.add(artanhTwice(m, digits), digits);
    return ln.multiply(BigDecimal.valueOf(1L << 32)).setScale(0, RoundingMode.HALF_EVEN).longValueExact();
  }

  private static BigDecimal artanhTwice(BigDecimal m, MathContext digits) {
    BigDecimal z = m.subtract(BigDecimal.ONE).divide(m.add(BigDecimal.ONE), digits);
    BigDecimal power = z;
    BigDecimal sum = BigDecimal.ZERO;
    for (int i = 1; i < 110; i += 2) {
      sum = sum.add(power.divide(BigDecimal.valueOf(i), digits), digits);
      power = power.multiply(z, digits).multiply(z, digits);
    }
    return sum.multiply(BigDecimal.valueOf(2));
  }

  static Map<Long, Long> together(Iterable<Text> parts) {
    Map<Long, Long> counts = new HashMap<>();
    for (Text part : parts) {
      for (String one : part.toString().split(",")) {
        int colon = one.indexOf(':');
        counts.merge(Long.valueOf(one.substring(0, colon)), Long.valueOf(one.substring(colon + 1)), Long::sum);
      }
    }
    return counts;
  }

  @Override
  public int run(String[] args) throws Exception {
    FileSystem files = FileSystem.get(getConf());
    Path table = new Path(args[0]);
    if (!(files instanceof LocalFileSystem)) {
      Path there = new Path("plar-" + UUID.randomUUID() + ".csv");
      files.copyFromLocalFile(table, there);
      files.deleteOnExit(there);
      table = there;
    }
    getConf().set(MEASURE, args[1]);
    getConf().set(DECISIONS, args[2]);
    BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String subset = requests.readLine(); subset != null; subset = requests.readLine()) {
      String answer;
      try {
        answer = "=" + theta(files, table, subset);
      } catch (Exception failure) {
        answer = "!" + failure.toString().replaceAll("\\s+", " ");
      }
      System.out.println(answer);
      System.out.flush();
    }
    return 0;
  }

  private String theta(FileSystem files, Path table, String subset) throws Exception {
    Configuration conf = new Configuration(getConf());
    conf.set(SUBSET, subset);
    Job job = Job.getInstance(conf, "HadoopAR {" + subset + "}");
    job.setJarByClass(HadoopAR.class);
    job.setMapperClass(RowMapper.class);
    job.setCombinerClass(ClassCombiner.class);
    job.setReducerClass(ThetaReducer.class);
    job.setOutputKeyClass(Text.class);
    job.setOutputValueClass(Text.class);
    FileInputFormat.addInputPath(job, table);
    Path out = table.suffix("-" + UUID.randomUUID());
    FileOutputFormat.setOutputPath(job, out);
    try {
      if (!job.waitForCompletion(false)) {
        throw new IOException("the job " + job.getJobID() + " failed");
      }
      return sum(files, out);
    } finally {
      files.delete(out, true);
    }
  }

  /** Adds up what the reducers wrote. */
  private static String sum(FileSystem files, Path out) throws IOException {
    BigInteger theta = BigInteger.ZERO;
    long active = 0;
    for (FileStatus part : files.globStatus(new Path(out, "part-r-*"))) {
      try (BufferedReader lines = new BufferedReader(new InputStreamReader(files.open(part.getPath())))) {
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
          String[] words = line.split("\t");
          theta = theta.add(new BigInteger(words[0]));
          active += Long.parseLong(words[1]);
        }
      }
    }
    return theta + " " + active;
  }

  public static void main(String[] args) throws Exception {
    System.exit(ToolRunner.run(new HadoopAR(), args));
  }
}
