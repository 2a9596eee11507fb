"use strict";
(() => {
  const { arms } = JSON.parse(document.getElementById("data").textContent);
  const drawn = new Map(); // element -> its charts
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
  const clock = (s) => {
    if (s == null) return "–";
    const whole = Math.abs(Math.round(s)), two = (n) => String(n).padStart(2, "0");
    if (whole < 120) return `${+s.toFixed(1)} s`;
    const hours = Math.floor(whole / 3600), minutes = Math.floor((whole % 3600) / 60);
    return (s < 0 ? "−" : "") + (hours ? `${hours}:${two(minutes)}` : minutes) + ":" + two(whole % 60);
  };
  const number = (v, unit) => (v == null ? "–" : (Math.abs(v) >= 100 || Number.isInteger(v) ? v.toFixed(0) : v.toFixed(1)) + (unit ? " " + unit : ""));
  const STATES = { up: "up", starting: "wait", "coming back": "back", leaving: "back", loading: "wait", ramp: "back", measured: "up", stopping: "wait" };
  const stateColour = (name) => colour(STATES[name] || STATES[name.split(" ").pop()] || "hit"); // (of a run: "r01 measured")

  // A band behind the lines for each fault, with its name; names that would touch go one below the other, as far as there is room.
  const bands = (all) => (u) => {
    const { ctx, bbox } = u, dpr = devicePixelRatio, end = bbox.left + bbox.width, filled = [];
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    ctx.font = `${12 * dpr}px system-ui, sans-serif`;
    ctx.textAlign = "left";
    ctx.textBaseline = "alphabetic";
    const seen = all.map((band) => ({ ...band, left: u.valToPos(band.begin, "x", true), right: u.valToPos(band.end, "x", true) }));
    for (const { left, right, style } of seen) {
      ctx.fillStyle = colour(style);
      ctx.fillRect(left, bbox.top, Math.max(right - left, 2), bbox.height);
    }
    ctx.fillStyle = colour("ink");
    for (const { left, right, name } of seen) {
      if (!name || right < bbox.left || left > end) continue;
      const wide = ctx.measureText(name).width, at = Math.max(bbox.left + 4 * dpr, Math.min(left + 4 * dpr, end - wide - 4 * dpr));
      let row = 0;
      while (row < 3 && filled[row] > at) row++;
      if (row === 3) continue;
      filled[row] = at + wide + 8 * dpr;
      ctx.fillText(name, at, bbox.top + (14 + 14 * row) * dpr);
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
    ctx.textAlign = "left";
    ctx.textBaseline = "top";
    rows.forEach((row, index) => {
      const top = bbox.top + index * height + 2 * dpr, tall = height - 4 * dpr;
      for (const { begin, end, name } of row.states) {
        const left = u.valToPos(begin, "x", true), right = u.valToPos(end, "x", true);
        ctx.fillStyle = row.phases ? colour("wait") : stateColour(name);
        ctx.fillRect(left, top, Math.max(right - left - dpr, dpr), tall);
        const shown = Math.max(left, bbox.left), room = Math.min(right, bbox.left + bbox.width) - shown - 8 * dpr;
        const text = [name, name.endsWith("measured") ? name.split(" ")[0] : name].find((words) => room > ctx.measureText(words).width);
        if (text) {
          ctx.fillStyle = colour("ink");
          ctx.fillText(text, shown + 4 * dpr, top + 2 * dpr);
        }
      }
      if (row.reached) {
        const low = Math.max(0, Math.floor(u.scales.x.min) - 1), high = Math.min(row.reached.length, Math.ceil(u.scales.x.max) + 1);
        for (let second = low; second < high; second++) {
          const share = row.reached[second];
          if (share == null || share === 1) continue;
          const left = u.valToPos(second, "x", true), right = u.valToPos(second + 1, "x", true);
          ctx.fillStyle = colour("bad");
          const deep = Math.max(tall * 0.38 * (1 - share), 2 * dpr);
          ctx.fillRect(left, top + tall - deep, Math.ceil(right - left), deep);
        }
      }
    });
    ctx.restore();
  };

  const axis = (extra) => ({ stroke: () => colour("quiet"), font: "12px system-ui, sans-serif", grid: { stroke: () => colour("line"), width: 1 }, ticks: { stroke: () => colour("line") }, ...extra });

  const STEPS = [0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800];
  const times = { values: (_, vs) => vs.map(clock), incrs: STEPS, space: 60, size: 36 };
  let paper = 0; // how wide a chart is on paper; 0 on a screen
  const DASHES = (u, i) => { const dash = u.series[i].dash; return dash ? (dash[0] > 3 ? "dashed" : "dotted") : "solid"; };
  function chart(home, group, { title, height, data, series, draw, y = {}, x = {}, across = times, quiet = false }) {
    const options = {
      title, height, legend: { show: !quiet, markers: { dash: DASHES } }, width: paper || home.clientWidth || 1100, padding: [8, 14, 0, 0], series: [{ label: "time", value: (_, v) => clock(v), ...x }, ...series],
      cursor: { sync: { key: group, setSeries: false }, drag: { x: true, y: false, setScale: true } },
      scales: { x: { time: false }, ...(y.scale ? { y: y.scale } : {}) },
      axes: [axis(across), axis({ size: 64, ...(y.axis || {}) })],
      hooks: { drawAxes: [draw] },
    };
    return new uPlot(options, data, home);
  }

  // A second between two without a value is no line: it gets a dot.
  const lonely = (u, index) => {
    const values = u.data[index], found = [];
    values.forEach((v, i) => v != null && values[i - 1] == null && values[i + 1] == null && found.push(i));
    return found;
  };
  const line = (label, stroke, unit, extra) => ({ label, stroke: () => colour(stroke), width: 1.5, spanGaps: false, value: (_, v) => number(v, unit),
    points: { show: true, filter: lonely, size: 5, fill: () => colour(stroke) }, ...extra });
  const steps = uPlot.paths.stepped({ align: 1 }), bars = uPlot.paths.bars({ size: [1, 100], align: 1 });
  const dots = { points: { show: false } };
  const latency = (v) => (v >= 1000 ? v / 1000 + " s" : v + " ms");
  const powers = (_, __, low, high) => {
    const found = [];
    for (let power = Math.ceil(Math.log10(low) - 1e-9); power <= Math.log10(high) + 1e-9; power++) found.push(+(10 ** power).toPrecision(1));
    return found;
  };
  const logarithmic = { scale: { distr: 3 }, axis: { splits: powers, filter: (_, vs) => vs, values: (_, vs) => vs.map(latency) } };
  const upwards = { scale: { range: (_, low, high) => [0, Math.max(1, (high || 0) * 1.2)] } };
  const withRoom = { scale: { range: (_, low, high) => [0, Math.max(1, (high || 0) * 1.4)] } };
  const faultBands = (arm) => arm.series.faults.map((f) => ({ ...f, style: "fault" }));
  const xs = (n) => Array.from({ length: n }, (_, i) => i);
  const filled = (values, n) => (values && values.length ? values : Array(n).fill(null));

  // What was at a second, in words: what a screen reader says of a chart's cursor.
  function words(arm, rows, second) {
    const s = arm.series, some = (values, unit) => (values && values[second] != null ? `${values[second]}${unit}` : "");
    const latencies = ["p50", "p99"].map((p) => some(s.latency[p], " ms") && `${p} ${some(s.latency[p], " ms")}`).filter(Boolean).join(", ");
    const kinds = Object.entries(s.error_kinds[second] || {}).map(([kind, count]) => `${count} ${kind}`).join(", ");
    const odd = rows.filter((row) => !row.phases).map((row) => {
      const state = row.states.find((b) => b.begin <= second + 0.5 && second + 0.5 < b.end), share = row.reached ? row.reached[second] : null;
      const told = [state && state.name !== "up" ? state.name : "", share != null && share < 1 ? `${Math.round(share * 100)} % of ranges reached` : ""].filter(Boolean);
      return told.length ? `${row.name} ${told.join(", ")}` : "";
    }).filter(Boolean);
    return [`${clock(second)}: ${some(s.throughput, " writes/s") || "nothing recorded of writes"}`, latencies, kinds && `${s.errors[second]} errors (${kinds})`, odd.join("; ") || (rows.length ? "all nodes up" : "")]
      .filter(Boolean).join(" · ");
  }

  function drawArm(home) {
    const arm = arms[+home.dataset.arm], s = arm.series;
    if (home.dataset.ramp != null) return load.ramp(home, arm.ramps[+home.dataset.ramp]);
    if (s.load) return load.runs(home, arm);
    const x = xs(s.seconds), group = "arm" + home.dataset.arm, behind = bands(faultBands(arm));
    const charts = [];
    if (s.layout) {
      const nodes = Object.keys(s.layout.replicas), looks = [["a"], ["b", [6, 3]], ["c", [2, 2]]];
      const changes = bands([...faultBands(arm), ...s.layout.changes.map((change) => ({ ...change, style: "heal" }))]);
      charts.push(chart(home, group, { title: "Replicas on each node (those that came together look alike)", height: 240, draw: changes, y: upwards,
        data: [x, ...nodes.map((node) => s.layout.replicas[node]), s.layout.mean],
        series: [...nodes.map((node) => { const [stroke, dash] = looks[s.layout.joined[node] % looks.length]; return line(node, stroke, "", { dash, ...dots }); }),
          line("mean", "quiet", "", { dash: [1, 3], width: 1, ...dots })] }));
    }
    charts.push(chart(home, group, { title: "Acknowledged writes a second", height: 190, draw: behind, y: upwards,
      data: [x, filled(s.throughput, s.seconds), Array(s.seconds).fill(s.normal)],
      series: [line("writes/s", "a", "", { paths: steps, ...dots }), line("baseline", "quiet", "", { dash: [6, 4], width: 1, ...dots })] }));
    charts.push(chart(home, group, { title: s.probed ? "Latency of the probe, from when each operation was due (logarithmic)" : "Latency of acknowledged writes, from when each was sent (logarithmic)", height: 190, draw: behind, y: logarithmic,
      data: [x, ...["p50", "p95", "p99"].map((p) => filled(s.latency[p], s.seconds))],
      series: [line("p50", "a", "ms"), line("p95", "c", "ms", { dash: [8, 3] }), line("p99", "b", "ms", { dash: [2, 2] })] }));
    charts.push(chart(home, group, { title: "Operations a second that failed, or whose outcome is unknown", height: 150, draw: behind, y: withRoom,
      data: [x, filled(s.errors, s.seconds)],
      series: [line("errors", "b", "", { paths: bars, fill: () => colour("b"), ...dots })] }));
    const names = [...new Set([...Object.keys(s.nodes), ...Object.keys(s.reached)])];
    const rows = names.map((name) => ({ name, states: s.nodes[name] || [], reached: s.reached[name] }));
    if (s.phases.length) rows.unshift({ name: "test", phases: true, states: s.phases });
    if (rows.length)
      charts.push(chart(home, group, { title: "Nodes (red below: share of ranges that the probe did not reach through it)", quiet: true, height: 66 + 28 * rows.length, draw: lanes(rows),
        data: [x, Array(s.seconds).fill(null)], series: [{ show: false, label: "" }],
        y: { scale: { range: [0, rows.length] }, axis: { splits: () => rows.map((_, i) => rows.length - i - 0.5), values: () => rows.map((row) => row.name), grid: { show: false }, ticks: { show: false } } } }));
    speak(home, charts, (second) => words(arm, rows, second));
  }

  // What stands at the cursor, in words, below the charts.
  function speak(home, charts, words) {
    const told = document.createElement("p");
    told.className = "told quiet";
    told.setAttribute("aria-live", "polite");
    home.append(told);
    const tell = (u) => (told.textContent = u.cursor.idx == null ? "" : words(u.cursor.idx));
    charts.forEach((u) => (u.hooks.setCursor = [tell]));
    drawn.set(home, charts);
  }

  const load = loadCharts({ chart, line, bands, lanes, clock, number, bars, dots, logarithmic, upwards, withRoom, xs, speak });

  function keys(home) {
    home.addEventListener("keydown", (event) => {
      const charts = drawn.get(home);
      if (!charts) return;
      const u = charts[0], { min, max } = u.scales.x, wide = max - min, all = u.data[0], first = all[0], last = all[all.length - 1];
      const show = (low, high) => charts.forEach((c) => c.batch(() => c.setScale("x", { min: Math.max(first, low), max: Math.min(last, high) })));
      const at = u.cursor.idx ?? u.valToIdx((min + max) / 2);
      const point = (index) => {
        const i = Math.min(all.length - 1, Math.max(0, index)), value = all[i];
        if (value < min) show(Math.max(first, value - wide * 0.1), Math.max(first, value - wide * 0.1) + wide);
        if (value > max) show(Math.min(last, value + wide * 0.1) - wide, Math.min(last, value + wide * 0.1));
        charts.forEach((c) => c.setCursor({ left: c.valToPos(value, "x"), top: 10 }));
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
    comparison.replaceChildren();
    const pair = [one, two].map((choice) => arms[+choice.value]);
    const shift = (arm) => (zero.value === "fault" && arm.series.faults.length ? Math.floor(arm.series.faults[0].begin) : 0);
    const low = Math.min(...pair.map((arm) => -shift(arm))), high = Math.max(...pair.map((arm) => arm.series.seconds - shift(arm)));
    const x = Array.from({ length: high - low }, (_, i) => i + low);
    const moved = (arm, values) => x.map((second) => (values ? values[second + shift(arm)] ?? null : null));
    const behind = bands(pair.flatMap((arm, i) => arm.series.faults.map((f) => ({ begin: f.begin - shift(arm), end: f.end - shift(arm), name: `${i ? "second" : "first"}: ${f.name}`, style: i ? "heal" : "fault" }))));
    const apart = pair[0].names.map((name, i) => name !== pair[1].names[i]);
    const short = pair.map((arm, i) => (i ? "second: " : "first: ") + (arm.names.filter((_, i) => apart[i]).join(" · ") || arm.names[1]));
    const both = (unit, extra) => short.map((name, i) => line(name, i ? "b" : "a", unit, { ...extra, ...(i ? { dash: [6, 3] } : {}) }));
    const runs = pair.every((arm) => arm.series.load); // of TPC-C and anything else only their own would be comparable
    drawn.set(comparison, [
      chart(comparison, "compare", { title: runs ? "New-orders a minute (tpmC)" : "Acknowledged writes a second", height: 240, draw: behind, y: upwards, data: [x, ...pair.map((arm) => moved(arm, runs ? arm.series.load.tpmc : arm.series.throughput))], series: both("", { paths: steps, ...dots }) }),
      chart(comparison, "compare", { title: `Latency p99 of ${runs ? "all transactions" : "the probe"} (logarithmic)`, height: 240, draw: behind, y: logarithmic, data: [x, ...pair.map((arm) => moved(arm, runs ? arm.series.load.latency.p99 : arm.series.latency.p99))], series: both("ms", {}) }),
    ]);
    const side = document.getElementById("side"), table = document.createElement("table");
    const row = (cells, tag) => { const tr = table.insertRow(); cells.forEach((text) => { const cell = document.createElement(tag); cell.textContent = text; tr.append(cell); }); };
    row(["", ...short, "second ÷ first"], "th");
    row(["verdict", ...pair.map((arm) => arm.word), ""], "td");
    const named = pair.map((arm) => new Map(arm.checks.map((check) => [check.metric, check])));
    const ratio = (a, b) => (a && b && Number.isFinite(a.value) && Number.isFinite(b.value) && a.value ? (b.value / a.value).toFixed(2) : "");
    for (const metric of new Set(named.flatMap((m) => [...m.keys()]))) {
      const found = named.map((m) => m.get(metric));
      row([metric, ...found.map((check) => (check ? `${check.measured}  ${check.limit}  ${check.word}` : "–")), ratio(...found)], "td");
    }
    side.replaceChildren(table);
  }
  if (comparison) {
    for (const choice of [one, two]) arms.forEach((arm, index) => arm.series && choice.add(new Option(arm.label, index)));
    // The same claim on something else, where there is such a one.
    const options = [...two.options].map((option) => arms[+option.value]), base = options[0];
    const likeness = (arm) => (arm.names[0] === base.names[0]) * 2 + (arm.sabotage === base.sabotage);
    two.selectedIndex = options.slice(1).reduce((best, arm, i) => (likeness(arm) > likeness(options[best]) ? i + 1 : best), 1);
    for (const choice of [one, two, zero]) choice.addEventListener("change", () => make(comparison));
    keys(comparison);
  }

  const make = (home) => {
    (drawn.get(home) || []).forEach((u) => u.destroy());
    return home === comparison ? compare() : drawArm(home);
  };
  const draw = (home) => drawn.has(home) || make(home);
  // A legend keeps the colours it was made with: under others the charts are made anew, and show what they showed.
  function again(home) {
    const shown = drawn.get(home).map((u) => ({ x: [u.scales.x.min, u.scales.x.max], lines: u.series.map((s) => s.show) }));
    home.querySelectorAll(".told").forEach((told) => told.remove());
    make(home);
    drawn.get(home).forEach((u, i) => {
      const [min, max] = shown[i].x;
      u.setScale("x", { min, max });
      shown[i].lines.forEach((show, at) => at && show !== u.series[at].show && u.setSeries(at, { show }));
    });
  }
  const homes = [...document.querySelectorAll(".charts")];
  homes.forEach((home) => home !== comparison && keys(home));
  const seen = new IntersectionObserver((entries) => entries.forEach((e) => e.isIntersecting && draw(e.target)), { rootMargin: "300px" });
  homes.forEach((home) => seen.observe(home));
  const fit = () => drawn.forEach((charts, home) => charts.forEach((u) => u.setSize({ width: paper || home.clientWidth, height: u.height })));
  // Paper is white, narrower than a screen, and unfolds nothing.
  const folded = [];
  const printing = (on) => {
    document.documentElement.classList.toggle("paper", on);
    paper = on ? 680 : 0;
    const before = [...drawn.keys()];
    if (on) homes.forEach(draw);
    before.forEach(again);
    if (on) {
      folded.push(...document.querySelectorAll("details:not([open])"));
    }
    folded.forEach((part) => (part.open = on));
    if (!on) folded.length = 0;
  };
  addEventListener("beforeprint", () => printing(true));
  addEventListener("afterprint", () => printing(false));
  addEventListener("resize", () => fit());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => [...drawn.keys()].forEach(again));
  window.roachproof = { drawn }; // for those who look into the page, and its test
})();
