"use strict";
(() => {
  const { arms } = JSON.parse(document.getElementById("data").textContent);
  const drawn = new Map(); // element -> its charts
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
  const clock = (s) => (s == null ? "–" : s.toFixed(0) + " s");
  const number = (v, unit) => (v == null ? "–" : (Math.abs(v) >= 100 ? v.toFixed(0) : v.toFixed(1)) + (unit ? " " + unit : ""));
  const stateColour = (name) => colour(name === "up" ? "up" : name === "starting" ? "wait" : name === "coming back" ? "back" : "hit");

  // A band behind the lines for each fault, with its name; `shift` moves an arm so that its zero is elsewhere.
  const bands = (all) => (u) => {
    const { ctx, bbox } = u;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    for (const { begin, end, name, style } of all) {
      const left = u.valToPos(begin, "x", true), right = u.valToPos(end, "x", true);
      ctx.fillStyle = colour(style);
      ctx.fillRect(left, bbox.top, Math.max(right - left, 2), bbox.height);
      if (name) {
        ctx.fillStyle = colour("ink");
        ctx.font = `${12 * devicePixelRatio}px system-ui, sans-serif`;
        ctx.fillText(name, Math.max(left, bbox.left) + 4 * devicePixelRatio, bbox.top + 14 * devicePixelRatio);
      }
    }
    ctx.restore();
  };

  // Each node a lane: a rectangle for each state, the state's name in it, and below it what share of ranges the probe reached through it.
  const lanes = (rows) => (u) => {
    const { ctx, bbox } = u, height = bbox.height / rows.length, dpr = devicePixelRatio;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    ctx.font = `${11 * dpr}px system-ui, sans-serif`;
    ctx.textBaseline = "middle";
    rows.forEach((row, index) => {
      const top = bbox.top + index * height + 2 * dpr, tall = height - 4 * dpr;
      for (const { begin, end, name } of row.states) {
        const left = u.valToPos(begin, "x", true), right = u.valToPos(end, "x", true);
        ctx.fillStyle = stateColour(name);
        ctx.fillRect(left, top, right - left, tall);
        const shown = Math.max(left, bbox.left);
        if (Math.min(right, bbox.left + bbox.width) - shown > ctx.measureText(name).width + 8 * dpr) {
          ctx.fillStyle = colour("ink");
          ctx.fillText(name, shown + 4 * dpr, top + tall / 2);
        }
      }
      if (row.reached) {
        const low = Math.max(0, Math.floor(u.scales.x.min) - 1), high = Math.min(row.reached.length, Math.ceil(u.scales.x.max) + 1);
        for (let second = low; second < high; second++) {
          const share = row.reached[second];
          if (share == null || share === 1) continue;
          const left = u.valToPos(second, "x", true), right = u.valToPos(second + 1, "x", true);
          ctx.fillStyle = colour("bad");
          const high = Math.max(tall * 0.4 * (1 - share), dpr);
          ctx.fillRect(left, top + tall - high, Math.ceil(right - left), high);
        }
      }
    });
    ctx.restore();
  };

  const axis = (extra) => ({ stroke: () => colour("quiet"), grid: { stroke: () => colour("line"), width: 1 }, ticks: { stroke: () => colour("line") }, ...extra });

  function chart(home, group, { title, height, data, series, draw, y = {}, x = {}, quiet = false }) {
    const options = {
      title, height, legend: { show: !quiet }, width: home.clientWidth || 1100, series: [{ label: "time", value: (_, v) => clock(v), ...x }, ...series],
      cursor: { sync: { key: group, setSeries: false }, drag: { x: true, y: false, setScale: true } },
      scales: { x: { time: false }, ...(y.scale ? { y: y.scale } : {}) },
      axes: [axis({ values: (_, vs) => vs.map((v) => v + " s") }), axis({ size: 72, ...(y.axis || {}) })],
      hooks: { drawAxes: [draw] },
    };
    return new uPlot(options, data, home);
  }

  const line = (label, stroke, unit, extra) => ({ label, stroke: () => colour(stroke), width: 1.5, spanGaps: false, points: { show: false }, value: (_, v) => number(v, unit), ...extra });
  const logarithmic = { scale: { distr: 3 }, axis: { values: (_, vs) => vs.map((v) => (Number.isInteger(Math.log10(v)) ? v + " ms" : "")) } };
  const bars = uPlot.paths.bars({ size: [1, 100] });
  const faultBands = (arm) => arm.series.faults.map((f) => ({ ...f, style: "fault" }));
  const xs = (n) => Array.from({ length: n }, (_, i) => i);
  const filled = (values, n) => (values && values.length ? values : Array(n).fill(null));

  function drawArm(home) {
    if (drawn.has(home)) return;
    const arm = arms[+home.dataset.arm], s = arm.series, x = xs(s.seconds), group = "arm" + home.dataset.arm, behind = bands(faultBands(arm));
    const charts = [];
    charts.push(chart(home, group, { title: "Acknowledged writes a second", height: 190, draw: behind, y: { scale: { range: (_, low, high) => [0, Math.max(1, high * 1.15)] } },
      data: [x, filled(s.throughput, s.seconds), Array(s.seconds).fill(s.normal)],
      series: [line("writes/s", "a", ""), line("baseline", "quiet", "", { dash: [6, 4], width: 1 })] }));
    charts.push(chart(home, group, { title: "Latency of the probe, counted from when each operation was due (logarithmic)", height: 190, draw: behind, y: logarithmic,
      data: [x, ...["p50", "p95", "p99"].map((p) => filled(s.latency[p], s.seconds))],
      series: [line("p50", "a", "ms"), line("p95", "c", "ms", { dash: [8, 3] }), line("p99", "b", "ms", { dash: [2, 2] })] }));
    const kinds = (second) => Object.entries(s.error_kinds[second] || {}).map(([kind, count]) => `${count} ${kind}`).join(", ");
    charts.push(chart(home, group, { title: "Operations that failed, or whose outcome is unknown, a second", height: 130, draw: behind, y: { scale: { range: (_, low, high) => [0, Math.max(1, high * 1.15)] } },
      data: [x, filled(s.errors, s.seconds)],
      series: [line("errors", "b", "", { paths: bars, fill: () => colour("b"), value: (_, v, __, i) => (i == null ? "–" : number(v) + (v ? ` (${kinds(i)})` : "")) })] }));
    const names = [...new Set([...Object.keys(s.nodes), ...Object.keys(s.reached)])];
    if (names.length) {
      const rows = names.map((name) => ({ name, states: s.nodes[name] || [], reached: s.reached[name] }));
      const told = document.createElement("p");
      told.className = "lanes quiet";
      const lanesOf = chart(home, group, { title: "Nodes (dark red below: share of ranges that the probe did not reach through it)", quiet: true, height: 70 + 26 * rows.length, draw: lanes(rows),
        data: [x, Array(s.seconds).fill(null)], series: [{ show: false, label: "" }],
        y: { scale: { range: [0, rows.length] }, axis: { splits: () => rows.map((_, i) => rows.length - i - 0.5), values: () => names, grid: { show: false } } } });
      lanesOf.hooks.setCursor = [(u) => {
        const second = u.cursor.idx;
        told.textContent = second == null ? "" : `${second} s: ` + rows.map((row) => {
          const state = row.states.find((b) => b.begin <= second && second < b.end);
          const share = row.reached && row.reached[second] != null ? `, ${Math.round(row.reached[second] * 100)} % of ranges reached` : "";
          return `${row.name} ${state ? state.name : ""}${share}`;
        }).join(" · ");
      }];
      home.append(told);
      charts.push(lanesOf);
    }
    drawn.set(home, charts);
  }

  function keys(home) {
    home.addEventListener("keydown", (event) => {
      const charts = drawn.get(home);
      if (!charts) return;
      const u = charts[0], { min, max } = u.scales.x, wide = max - min, all = u.data[0], first = all[0], last = all[all.length - 1];
      const show = (low, high) => charts.forEach((c) => c.setScale("x", { min: Math.max(first, low), max: Math.min(last, high) }));
      const at = u.cursor.idx ?? Math.round((min + max) / 2) - first;
      const point = (index) => {
        const i = Math.min(all.length - 1, Math.max(0, index)), value = all[i];
        if (value < min) show(value - wide * 0.1, value + wide * 0.9);
        if (value > max) show(value - wide * 0.9, value + wide * 0.1);
        u.setCursor({ left: u.valToPos(value, "x"), top: 10 });
      };
      const middle = u.cursor.idx == null ? (min + max) / 2 : all[u.cursor.idx];
      const zoom = (share) => wide * share >= 4 && show(middle - wide * share / 2, middle + wide * share / 2);
      const act = { ArrowLeft: () => point(at - (event.shiftKey ? 10 : 1)), ArrowRight: () => point(at + (event.shiftKey ? 10 : 1)),
        "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2), 0: () => show(first, last), Escape: () => show(first, last) }[event.key];
      if (act) { act(); event.preventDefault(); }
    });
  }

  // Two arms on one axis, their zero where the reader wants it.
  const one = document.getElementById("one"), two = document.getElementById("two"), zero = document.getElementById("zero");
  const comparison = document.getElementById("comparison");
  function compare() {
    (drawn.get(comparison) || []).forEach((u) => u.destroy());
    comparison.replaceChildren();
    const pair = [one, two].map((choice) => arms[+choice.value]);
    const shift = (arm) => (zero.value === "fault" && arm.series.faults.length ? Math.floor(arm.series.faults[0].begin) : 0);
    const low = Math.min(...pair.map((arm) => -shift(arm))), high = Math.max(...pair.map((arm) => arm.series.seconds - shift(arm)));
    const x = Array.from({ length: high - low }, (_, i) => i + low);
    const moved = (arm, values) => x.map((second) => (values ? values[second + shift(arm)] ?? null : null));
    const behind = bands(pair.flatMap((arm, i) => arm.series.faults.map((f) => ({ begin: f.begin - shift(arm), end: f.end - shift(arm), name: i ? "" : f.name, style: i ? "heal" : "fault" }))));
    const both = (pick, unit) => pair.map((arm, i) => line(`${i ? "second" : "first"}: ${arm.label}`, i ? "b" : "a", unit, i ? { dash: [6, 3] } : {}));
    drawn.set(comparison, [
      chart(comparison, "compare", { title: "Acknowledged writes a second", height: 240, draw: behind, y: { scale: { range: (_, l, h) => [0, Math.max(1, h * 1.15)] } }, data: [x, ...pair.map((arm) => moved(arm, arm.series.throughput))], series: both("", "") }),
      chart(comparison, "compare", { title: "Latency p99 of the probe (logarithmic)", height: 240, draw: behind, y: logarithmic, data: [x, ...pair.map((arm) => moved(arm, arm.series.latency.p99))], series: both("", "ms") }),
    ]);
    const side = document.getElementById("side"), table = document.createElement("table");
    const row = (cells, tag) => { const tr = table.insertRow(); cells.forEach((text) => { const cell = document.createElement(tag); cell.textContent = text; tr.append(cell); }); };
    row(["", ...pair.map((arm) => arm.label)], "th");
    row(["verdict", ...pair.map((arm) => arm.word)], "td");
    const named = pair.map((arm) => new Map(arm.checks.map((check) => [check.metric, `${check.measured}  ${check.limit}  ${check.word}`])));
    for (const metric of new Set(named.flatMap((m) => [...m.keys()]))) row([metric, ...named.map((m) => m.get(metric) ?? "–")], "td");
    side.replaceChildren(table);
  }
  if (comparison) {
    for (const choice of [one, two]) arms.forEach((arm, index) => arm.series && choice.add(new Option(arm.label, index)));
    two.selectedIndex = 1;
    for (const choice of [one, two, zero]) choice.addEventListener("change", compare);
    keys(comparison);
  }

  const draw = (home) => (home === comparison ? drawn.has(home) || compare() : drawArm(home));
  const homes = [...document.querySelectorAll(".charts")];
  homes.forEach((home) => home !== comparison && keys(home));
  const seen = new IntersectionObserver((entries) => entries.forEach((e) => e.isIntersecting && draw(e.target)), { rootMargin: "300px" });
  homes.forEach((home) => seen.observe(home));
  addEventListener("beforeprint", () => homes.forEach(draw));
  addEventListener("resize", () => drawn.forEach((charts, home) => charts.forEach((u) => u.setSize({ width: home.clientWidth, height: u.height }))));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => drawn.forEach((charts) => charts.forEach((u) => u.redraw(false))));
  window.roachproof = { drawn }; // for those who look into the page, and its test
})();
