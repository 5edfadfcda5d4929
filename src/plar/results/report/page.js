"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data-of-report").textContent);
  const SHOWN = 50, LONGEST = 48;
  const whole = new Intl.NumberFormat("en-US");
  const order = new Intl.Collator("en", { numeric: true });

  const element = (tag, kind, ...inside) => {
    const made = document.createElement(tag);
    if (kind) made.className = kind;
    made.append(...inside);
    return made;
  };

  const short = (name) => {
    const all = Array.from(name);
    if (all.length <= LONGEST) return name;
    const tail = Math.floor((LONGEST * 3) / 10);
    return all.slice(0, LONGEST - tail - 1).join("") + "…" + all.slice(-tail).join("");
  };

  // As `words_of` in Python: a line may break after a separator, or after 18 characters.
  const word = /[^\s_/.\-]{1,18}[\s_/.\-]{0,18}|[\s_/.\-]{1,18}/gu;
  const bdi = (name) => {
    const words = name.match(word) || [];
    return element("bdi", "name", ...words.flatMap((text, k) => (k ? [element("wbr"), text] : [text])));
  };

  const nameOf = (name) => {
    const brief = short(name);
    if (brief === name) return bdi(name);
    return element("details", "more", element("summary", "", bdi(brief)), bdi(name));
  };

  const bar = (share) => {
    const space = "http://www.w3.org/2000/svg";
    const svg = document.createElementNS(space, "svg"), rect = document.createElementNS(space, "rect");
    svg.setAttribute("class", "bar");
    svg.setAttribute("aria-hidden", "true");
    rect.setAttribute("width", (100 * Math.max(0, share)).toFixed(1) + "%");
    rect.setAttribute("height", "100%");
    svg.append(rect);
    return svg;
  };

  const tag = (text) => element("span", text.startsWith("core") ? "tag core" : "tag", text);

  const rowName = (row) => {
    const cell = element("th", "", nameOf(row.name));
    cell.scope = "row";
    return cell;
  };

  const count = (value, kind) => element("td", kind, value === null ? "–" : whole.format(value));

  const exact = (value, write, kind) => {
    const cell = element("td", kind, value === null ? "–" : write(value));
    if (value !== null) cell.title = String(value);
    return cell;
  };

  // As `aligned` in Python: equal decimals, four digits for the largest number.
  const decimalsOf = (values) => {
    const sizes = values.filter((v) => v).map(Math.abs);
    if (!sizes.length) return 0;
    const most = 3 - Math.floor(Math.log10(sizes.reduce((a, b) => Math.max(a, b))));
    const least = sizes.reduce((a, b) => Math.min(a, b));
    const wanted = Math.max(0, Math.min(most + 2, 1 - Math.floor(Math.log10(least))), most);
    return least < 0.5 * 10 ** -wanted ? Math.max(0, most) : wanted;
  };

  const writer = (decimals) => {
    const digits = { minimumFractionDigits: decimals, maximumFractionDigits: decimals };
    const { format } = new Intl.NumberFormat("en-US", digits);
    return (value) => {
      if (value === 0) return "0";
      if (Math.abs(value) < 0.5 * 10 ** -decimals) return (value > 0 ? "<" : ">−") + format(10 ** -decimals);
      return format(value).replace("-", "−");
    };
  };

  const tableOf = (id, rows, draw, start) => {
    const table = document.getElementById(id);
    if (!table) return null;
    const find = document.querySelector(`[data-find="${id}"]`);
    const all = document.querySelector(`[data-all="${id}"]`);
    const status = document.getElementById(id + "-status");
    const state = { ...start, all: false };

    const render = () => {
      const text = find.value.toLowerCase();
      const known = rows();
      const found = known.filter((row) => row.name.toLowerCase().includes(text));
      const way = state.down ? -1 : 1;
      found.sort((a, b) => {
        const x = a[state.key] ?? -1, y = b[state.key] ?? -1;
        return (typeof x === "string" ? order.compare(x, y) : x - y) * way;
      });
      const shown = state.all ? found : found.slice(0, SHOWN);
      table.tBodies[0].replaceChildren(...shown.map(draw(known)));
      status.textContent = shown.length < found.length
        ? `The first ${whole.format(shown.length)} of ${whole.format(found.length)}.`
        : `${whole.format(found.length)} ${found.length === 1 ? "column" : "columns"}.`;
      all.hidden = found.length <= SHOWN;
      all.textContent = state.all ? `Show ${SHOWN} only` : "Show all";
    };

    for (const button of table.querySelectorAll("[data-sort]")) {
      const head = button.parentElement;
      button.addEventListener("click", () => {
        const same = state.key === button.dataset.sort;
        state.down = same ? !state.down : head.classList.contains("n") && !["place", "rank"].includes(button.dataset.sort);
        state.key = button.dataset.sort;
        for (const other of table.querySelectorAll("th[aria-sort]")) other.setAttribute("aria-sort", "none");
        head.setAttribute("aria-sort", state.down ? "descending" : "ascending");
        render();
      });
    }
    find.addEventListener("input", render);
    all.addEventListener("click", () => {
      state.all = !state.all;
      render();
    });
    render();
    return render;
  };

  // "male" is not looked for within "female", but "middle" is within "top_middle".
  const letter = /[a-z0-9]/;
  const hasWord = (text, word) => {
    let place = text.indexOf(word);
    while (place > 0 && letter.test(word[0]) && letter.test(text[place - 1])) place = text.indexOf(word, place + 1);
    return place >= 0;
  };

  // Rules: rows of several tables that are on the page, hidden unless they have all words that are looked for.
  const filterRules = (rows) => {
    const byId = (id) => document.getElementById("rule-" + id);
    const tools = byId("tools");
    if (!tools) return;
    const find = byId("find"), ofClass = byId("class"), by = byId("order"), status = byId("status");
    const sections = [...document.querySelectorAll("[data-class]")];
    const trs = [...document.querySelectorAll("[data-rule]")];
    const rules = rows.map(([text, matched, right, lift, p, conditions], k) => ({
      text: text.toLowerCase(), tr: trs[k], section: trs[k].closest("section"),
      "": k, rows: -matched, right: -right, lift: -lift, p, conditions,
    }));

    const filter = () => {
      const wanted = find.value.toLowerCase().split(/\s+/).filter((word) => word);
      const filled = new Set();
      let shown = 0;
      for (const { text, tr, section } of rules) {
        const fits = (!ofClass.value || section.dataset.class === ofClass.value) && wanted.every((word) => hasWord(text, word));
        tr.hidden = !fits;
        if (fits) {
          shown += 1;
          filled.add(section);
        }
      }
      for (const section of sections) section.hidden = !filled.has(section);
      const all = `${whole.format(rules.length)} ${rules.length === 1 ? "rule" : "rules"}`;
      if (shown === rules.length) status.textContent = `${all}.`;
      else status.textContent = shown ? `${whole.format(shown)} of ${all}.` : "No rule fits.";
    };

    find.addEventListener("input", filter);
    ofClass.addEventListener("change", filter);
    by.addEventListener("change", () => {
      const ordered = rules.slice().sort((a, b) => a[by.value] - b[by.value] || a[""] - b[""]);
      for (const { tr, section } of ordered) section.querySelector("tbody").append(tr);
    });
    tools.hidden = false;
    filter();
  };

  if (data.rules) {
    filterRules(data.rules);
    return;
  }

  if (data.ranked) {
    const columns = data.ranked.map(([place, role, reason, value, p, pText], k) =>
      ({ rank: k + 1, place, name: data.names[place - 1], role, reason, value, p, pText }));
    const write = writer(decimalsOf(columns.map((row) => row.value)));
    tableOf("all-table", () => columns, () => (row) =>
      element("tr", "", count(row.rank, "n dim aux"), rowName(row),
        element("td", "role", tag(row.role), " ", element("span", "reason", row.reason)),
        exact(row.value, write, "n aux"), exact(row.p, () => row.pText, "n"), count(row.place, "n aux dim")),
      { key: "rank", down: false });
    return;
  }

  const columns = data.columns.map(([place, role, of, gain, first, values, missing], k) =>
    ({ rank: k + 1, place, name: data.names[place - 1], role, of, gain, first, values, missing }));
  const written = (key) => writer(decimalsOf(columns.map((row) => row[key])));
  const writeGain = written("gain"), writeFirst = written("first");
  tableOf("columns-table", () => columns, () => (row) =>
    element("tr", "", count(row.rank, "n dim aux"), rowName(row),
      element("td", "role", tag(row.role), ...(row.of === null ? [] : [" ", element("span", "of", nameOf(row.of))])),
      exact(row.gain, writeGain, "n"), exact(row.first, writeFirst, "n aux"), count(row.values, "n aux"),
      count(row.missing, row.missing ? "n aux" : "n aux dim"), count(row.place, "n aux dim")),
    { key: "rank", down: false });

  const select = document.getElementById("round");
  if (!select) return;
  const candidates = () => data.rounds[select.value]
    .map((value, k) => ({ place: k + 1, name: data.names[k], value }))
    .filter((row) => row.value !== null);
  const render = tableOf("candidates-table", candidates, (rows) => {
    const values = rows.map((row) => row.value);
    const largest = values.reduce((a, b) => Math.max(a, b), 0), write = writer(decimalsOf(values));
    const taken = data.taken[select.value] + 1;
    return (row) => {
      const name = rowName(row);
      if (row.place === taken) name.append(" ", tag("chosen"));
      return element("tr", row.place === taken ? "taken" : "",
        count(row.place, "n dim aux"), name, exact(row.value, write, "n"),
        element("td", "wide", bar(largest > 0 ? row.value / largest : 0)));
    };
  }, { key: "value", down: true });
  select.addEventListener("change", () => {
    document.getElementById("round-shown").textContent = Number(select.value) + 1;
    render();
  });
})();
