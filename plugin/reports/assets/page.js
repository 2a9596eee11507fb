"use strict";
(() => {
  // Stretches of one value are stored as the value and how many there are.
  const long = (_, part) => part && part.runs ? part.runs.flatMap((value, i) => i % 2 ? [] : Array(part.runs[i + 1]).fill(value)) : part;
  const { trials } = JSON.parse(document.getElementById("data").textContent, long);
  const drawn = new Map(); // element -> its charts
  // On a narrow screen rows stand as blocks, which takes from a table what it is to those who have it read aloud, unless it is said.
  const roles = { TABLE: "table", THEAD: "rowgroup", TBODY: "rowgroup", TR: "row", TD: "cell" };
  const say = (part) => { if (!part.hasAttribute("role")) part.setAttribute("role", roles[part.tagName] || (part.scope === "col" ? "columnheader" : "rowheader")); };
  const read = (home) => home.querySelectorAll("table, thead, tbody, tr, th, td").forEach(say);
  read(document);
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
  const clock = (s) => {
    if (s == null) return "–";
    const whole = Math.abs(Math.round(s)), two = (n) => String(n).padStart(2, "0");
    if (whole < 120) return `${+s.toFixed(1)} s`;
    const hours = Math.floor(whole / 3600), minutes = Math.floor((whole % 3600) / 60);
    return (s < 0 ? "−" : "") + (hours ? `${hours}:${two(minutes)}` : minutes) + ":" + two(whole % 60);
  };
  const number = (v, unit) => (v == null ? "–" : (Math.abs(v) >= 100 || Number.isInteger(v) ? v.toFixed(0) : v.toFixed(1)) + (unit ? " " + unit : ""));

  // What the lines are drawn over (a fault, a change of size), with its name; names that would touch go one below the other, as far as there is room.
  const bands = (all, empty) => (u) => {
    const { ctx, bbox } = u, dpr = devicePixelRatio, end = bbox.left + bbox.width, filled = [];
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    ctx.font = `${12 * dpr}px system-ui, sans-serif`;
    ctx.textAlign = "left";
    ctx.textBaseline = "alphabetic";
    const seen = all.map((band) => ({ ...band, left: u.valToPos(band.begin, "x", true), right: u.valToPos(band.end, "x", true) }));
    for (const band of seen) {
      const { left, right } = band;
      ctx.fillStyle = colour(band.colour);
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
    ctx.textAlign = "center";
    if (empty) ctx.fillText(empty, bbox.left + bbox.width / 2, bbox.top + bbox.height / 2);
    ctx.restore();
  };

  // A rectangle for each state, its name in it, and below it what share of what was asked there did not answer.
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
      for (const state of row.states) {
        const left = u.valToPos(state.begin, "x", true), right = u.valToPos(state.end, "x", true);
        ctx.fillStyle = colour(state.colour);
        ctx.fillRect(left, top, Math.max(right - left - dpr, dpr), tall);
        const shown = Math.max(left, bbox.left), room = Math.min(right, bbox.left + bbox.width) - shown - 8 * dpr;
        const text = [state.name, state.short].find((words) => words && room > ctx.measureText(words).width);
        if (text) {
          ctx.fillStyle = colour("ink");
          ctx.fillText(text, shown + 4 * dpr, top + 2 * dpr);
        }
      }
      if (row.shares) {
        const low = Math.max(0, Math.floor(u.scales.x.min) - 1), high = Math.min(row.shares.length, Math.ceil(u.scales.x.max) + 1);
        for (let second = low; second < high; second++) {
          const share = row.shares[second];
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
    const made = new uPlot(options, data, home), legend = made.root.querySelector(".u-legend");
    const canvas = made.root.querySelector("canvas");
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", title);
    if (legend) {  // a table of uPlot's own: each row's heading names a line
      legend.setAttribute("aria-label", `Lines of the chart: ${title}`);
      legend.querySelectorAll("th").forEach((th) => { th.scope = "row"; });
    }
    return made;
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
  const logarithmic = (unit) => ({ scale: { distr: 3 }, axis: { splits: powers, filter: (_, vs) => vs, values: (_, vs) => (unit === "ms" ? vs.map(latency) : vs) } });
  const linear = (room) => ({ scale: { range: (_, low, high) => [0, Math.max(1, (high || 0) * room)] } });
  const upright = (c, lines) => (c.logarithmic ? logarithmic((lines[0] || {}).unit) : linear(c.room || 1.2));
  const SHAPES = { dot: {}, dots: { points: { show: true, size: 7 } }, plain: dots, steps: { paths: steps, ...dots }, bars: { paths: bars, ...dots } };
  const drawnLine = (l) => line(l.label, l.colour, l.unit, { ...SHAPES[l.shape || "plain"], ...(l.shape === "bars" ? { fill: () => colour(l.colour) } : {}), ...(l.dash ? { dash: l.dash } : {}), width: l.width || 1.5 });
  const xs = (n) => Array.from({ length: n }, (_, i) => i);
  const known = (l) => l.values.some((v) => v != null);

  // A name below itself where it is longer than its axis is wide, long words (versions) broken after a dash or dot.
  const broken = (word, most) => (word.length <= most ? [word] : word.match(new RegExp(`.{1,${most - 1}}[-.]|.{1,${most}}`, "g")));
  const folds = (name, most) => name.split(" ").flatMap((word) => broken(word, most)).reduce((rows, word) => {
    const last = rows[rows.length - 1];
    if (last && (last + " " + word).length <= most) rows[rows.length - 1] = last + " " + word;
    else rows.push(word);
    return rows;
  }, []).slice(0, most < 10 ? 2 : 3).join("\n");

  // What was at a place of the axis, in words: what a screen reader says of a chart's cursor.
  function words(all, i) {
    const told = all.flatMap((c) => {
      const found = (c.lines || []).filter((l) => !l.quiet && l.values[i] != null).map((l) => `${l.label} ${number(l.values[i], l.unit)}`);
      if (found.length && c.notes && c.notes[i]) found[found.length - 1] += ` (${c.notes[i]})`;
      for (const row of c.lanes || []) {
        const state = row.quiet || row.states.find((b) => b.begin <= i + 0.5 && i + 0.5 < b.end), share = row.shares ? row.shares[i] : null;
        const odd = [state && state.name && state.name !== "up" ? state.name : "", share != null && share < 1 ? `${Math.round(share * 100)} % of ranges reached` : ""].filter(Boolean);
        if (odd.length) found.push(`${row.name}: ${odd.join(", ")}`);
      }
      return found.length || !c.lanes ? found : c.usual || [];
    });
    return `${all[0].x ? `${all[0].x[i]} ${all[0].across}` : clock(i)}: ${told.join(" · ") || "nothing recorded"}`;
  }

  // What the colours of lanes mean, below them: what looks alike is named together, and of many names none.
  function withStates(c, u) {
    const found = new Map();
    for (const row of c.lanes) for (const state of row.quiet ? [] : row.states) found.set(state.name, state.colour);
    if (found.size > 10) return u;
    const key = document.createElement("ul");
    key.className = "states";
    for (const tint of new Set(found.values())) {
      const entry = key.appendChild(document.createElement("li")), square = entry.appendChild(document.createElement("i"));
      square.style.background = `var(--${tint})`;
      entry.append([...found].filter(([, other]) => other === tint).map(([name]) => name).join(", "));
    }
    u.root.append(key);
    return u;
  }

  function drawArm(home) {
    const all = trials[+home.dataset.trial].groups[home.dataset.group], group = home.dataset.trial + home.dataset.group;
    const narrow = home.clientWidth < 500, long = all.some((c) => (c.lanes || []).some((row) => row.name.length > 8)), size = !long ? 72 : narrow ? 66 : 100;
    const charts = all.map((c) => {
      const x = c.x || xs(c.seconds), lines = (c.lines || []).filter(known), common = { title: c.title, height: c.height || 190 };
      if (c.lanes) {
        const names = c.lanes.map((row) => folds(row.name, size < 100 ? 8 : 14));
        return withStates(c, chart(home, group, { ...common, quiet: true, draw: lanes(c.lanes), data: [x, x.map(() => null)], series: [{ show: false, label: "" }],
          y: { scale: { range: [0, Math.max(1, names.length)] }, axis: { size, splits: () => names.map((_, i) => names.length - i - 0.5), values: () => names, grid: { show: false }, ticks: { show: false } } } }));
      }
      const y = upright(c, lines), places = { size: 36, space: 60, values: (_, vs) => vs.map((v) => `${+v.toPrecision(6)}`) };
      return chart(home, group, { ...common, draw: bands(c.behind || [], lines.length ? "" : c.empty || "nothing was recorded"), y: { ...y, axis: { ...(y.axis || {}), size } },
        data: lines.length ? [x, ...lines.map((l) => l.values)] : [x, x.map(() => null)], series: lines.length ? lines.map(drawnLine) : [{ show: false, label: "" }],
        ...(c.x ? { across: places, x: { label: c.across, value: (_, v) => (v == null ? "–" : `${v}`) } } : {}) });
    });
    speak(home, charts, (i) => words(all, i));
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

  function keys(home) {
    home.addEventListener("keydown", (event) => {
      const charts = drawn.get(home);
      if (!charts || !charts.length) return;
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

  // Two trials on one axis, their zero where the reader wants it.
  const one = document.getElementById("one"), two = document.getElementById("two"), zero = document.getElementById("zero");
  const comparison = document.getElementById("comparison");
  function compare() {
    comparison.replaceChildren();
    const pair = [one, two].map((choice) => trials[+choice.value]), all = pair.map((trial) => trial.groups.time);
    const faults = all.map((charts) => (charts.find((c) => c.behind) || { behind: [] }).behind.filter((band) => band.colour === "fault"));
    const shifts = faults.map((found) => (zero.value === "fault" && found.length ? Math.floor(found[0].begin) : 0));
    const low = Math.min(...shifts.map((shift) => -shift)), high = Math.max(...all.map((charts, i) => charts[0].seconds - shifts[i]));
    const x = Array.from({ length: high - low }, (_, i) => i + low);
    const behind = bands(faults.flatMap((found, i) => found.map((f) => ({ begin: f.begin - shifts[i], end: f.end - shifts[i], name: `${i ? "second" : "first"}: ${f.name}`, colour: i ? "heal" : "fault" }))));
    const apart = pair[0].names.map((name, i) => name !== pair[1].names[i]);
    const short = pair.map((trial, i) => (i ? "second: " : "first: ") + (trial.names.filter((_, i) => apart[i]).join(" · ") || trial.names[1]));
    const charts = all[0].filter((c) => c.compared).flatMap((c) => {
      const both = [c, all[1].find((other) => other.compared && other.compared[0] === c.compared[0])];
      if (!both[1]) return [];
      const found = both.map((one) => one.lines.find((l) => l.label === one.compared[1]));
      return [chart(comparison, "compare", { title: c.compared[0], height: 240, draw: behind, y: upright(c, found),
        data: [x, ...found.map((l, i) => x.map((second) => l.values[second + shifts[i]] ?? null))],
        series: found.map((l, i) => drawnLine({ ...l, label: short[i], colour: i ? "b" : "a", dash: i ? [6, 3] : null })) })];
    });
    if (!charts.length) comparison.textContent = "The two measured different things: only their checks stand beside each other.";
    drawn.set(comparison, charts);
    const side = document.getElementById("side"), table = document.createElement("table"), heads = ["check", ...short, "second ÷ first"];
    table.className = "stacked";
    table.setAttribute("aria-label", "What the two came to, side by side");
    const row = (cells, of = table.tBodies[0] || table.createTBody(), tag = "td") => { const tr = of.insertRow(); cells.forEach((text, at) => { const cell = document.createElement(tag); cell.textContent = text; if (tag === "th") cell.scope = "col"; else cell.dataset.is = heads[at]; if (tag === "td" && !at) cell.setAttribute("role", "rowheader"); tr.append(cell); }); };
    row(heads, table.createTHead(), "th");
    row(["verdict", ...pair.map((trial) => trial.word), ""]);
    const named = pair.map((trial) => new Map(trial.checks.map((check) => [check.metric, check])));
    const ratio = (a, b) => (a && b && Number.isFinite(a.value) && Number.isFinite(b.value) && a.value ? (b.value / a.value).toFixed(2) : "");
    for (const metric of new Set(named.flatMap((m) => [...m.keys()]))) {
      const found = named.map((m) => m.get(metric));
      row([metric, ...found.map((check) => (check ? `${check.measured}  ${check.limit}  ${check.word}` : "–")), ratio(...found)]);
    }
    side.replaceChildren(table);
    read(side);
  }
  if (comparison) {
    for (const choice of [one, two]) trials.forEach((trial, index) => trial.groups.time && choice.add(new Option(trial.label, index)));
    // The same claim on something else, where there is such a one.
    const options = [...two.options].map((option) => trials[+option.value]), base = options[0];
    const likeness = (trial) => (trial.names[0] === base.names[0]) * 2 + (trial.sabotage === base.sabotage);
    two.selectedIndex = options.slice(1).reduce((best, trial, i) => (likeness(trial) > likeness(options[best]) ? i + 1 : best), 1);
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
  // What is on the screen at first waits for no observer, which tells nobody's screenshots in time.
  homes.forEach((home) => home.clientWidth && home.getBoundingClientRect().top < innerHeight && draw(home));
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
