"""The six systems that the paper compares, each written as the paper describes it, for comparison.

Nothing else in plar imports them. They share the search, the exact integers, the labels and the tie-break with
`plar.reduce`, so all give exactly the same reduct; they differ in how Θ(D|B) is computed, and so in time.

| function | system | how Θ of a subset B is computed |
|---|---|---|
| `har` | HAR | one process, all rows hashed for every B |
| `fspa` | FSPA | HAR, with the positive region dropped after every step |
| `hadoop_ar` | HadoopAR | a Hadoop MapReduce job for every B, which reads the table again |
| `spark_ar` | SparkAR | a Spark job for every B, over cached rows |
| `plar_dp` | PLAR-DP | a Spark job for every B, over cached granules |
| `plar_paper` | PLAR | PLAR-DP, several jobs at once |

For real work, use `plar.reduce`: it evaluates all candidates of a step in one pass.

References
----------
J. Zhang, T. Li, Y. Pan: Parallel Large-Scale Attribute Reduction on Cloud Systems.

Y. Qian, J. Liang, W. Pedrycz, C. Dang: Positive approximation: an accelerator for attribute reduction in rough set
theory, Artificial Intelligence 174 (2010).
"""

from plar.baselines.hadoop import hadoop_ar
from plar.baselines.sequential import fspa, har
from plar.baselines.spark import plar_dp, plar_paper, spark_ar

__all__ = ["fspa", "hadoop_ar", "har", "plar_dp", "plar_paper", "spark_ar"]
