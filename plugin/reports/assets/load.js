"use strict";
// The charts of TPC-C: runs second by second, and ramps over warehouses. What draws them comes from page.js.
const loadCharts = ({ chart, line, bands, lanes, clock, number, bars, dots, logarithmic, upwards, withRoom, xs, speak }) => {
  const STYLES = [["a"], ["b", [8, 3]], ["c", [2, 2]], ["good", [10, 3, 2, 3]], ["unsure", [5, 5]], ["bad", [1, 3]], ["ink", [12, 4]], ["quiet", [4, 2]]];
  const styled = (names, unit, extra = {}) => names.map((name, i) => {
    const [stroke, dash] = STYLES[i % STYLES.length];
    return line(name, stroke, unit, { ...(dash ? { dash } : {}), ...extra });
  });
  // An arm's name below itself where it is longer than its axis is wide, long words (versions) broken after a dash or dot.
  const broken = (word, most) => (word.length <= most ? [word] : word.match(new RegExp(`.{1,${most - 1}}[-.]|.{1,${most}}`, "g")));
  const folded = (name, most) => name.split(" ").flatMap((word) => broken(word, most)).reduce((rows, word) => {
    const last = rows[rows.length - 1];
    if (last && (last + " " + word).length <= most) rows[rows.length - 1] = last + " " + word;
    else rows.push(word);
    return rows;
  }, []).slice(0, most < 10 ? 2 : 3).join("\n");

  function runs(home, arm) {
    const s = arm.series, l = s.load, x = xs(s.seconds), group = "arm" + home.dataset.arm, narrow = home.clientWidth < 500, size = narrow ? 66 : 100, charts = [];
    const each = l.every > 1 ? `, means of ${l.every} s` : "";
    const behind = bands([]);
    const rows = Object.entries(l.lanes).map(([name, states]) => ({ name, states }));
    const left = (y) => ({ ...y, axis: { ...(y.axis || {}), size } });
    charts.push(chart(home, group, { title: "What ran when (r01: the first run)", quiet: true, height: 60 + 40 * rows.length, draw: lanes(rows), data: [x, Array(s.seconds).fill(null)], series: [{ show: false, label: "" }],
      y: { scale: { range: [0, Math.max(1, rows.length)] }, axis: { size, splits: () => rows.map((_, i) => rows.length - i - 0.5), values: () => rows.map((row) => folded(row.name, narrow ? 8 : 14)), grid: { show: false }, ticks: { show: false } } } }));
    charts.push(chart(home, group, { title: `New-orders a minute (tpmC${each})`, height: 190, draw: behind, y: left(upwards),
      data: [x, l.tpmc], series: [line("tpmC", "a")] }));
    charts.push(chart(home, group, { title: `Latency of all transactions, from when each was due (logarithmic${each ? `, stretches of ${l.every} s` : ""})`, height: 190, draw: behind, y: left(logarithmic),
      data: [x, l.latency.p50, l.latency.p90, l.latency.p99],
      series: [line("p50", "a", "ms", {}), line("p90", "c", "ms", { dash: [8, 3] }), line("p99", "b", "ms", { dash: [2, 2] })] }));
    charts.push(chart(home, group, { title: "Transactions a second that failed or whose outcome is unknown, and attempts made again", height: 140, draw: behind, y: left(withRoom),
      data: [x, l.failed, l.retried],
      series: [line("failed or unknown", "b", "", { paths: bars, fill: "transparent", ...dots }), line("made again", "c", "", { dash: [2, 2], ...dots })] }));
    speak(home, charts, (second) => {
      const doing = rows.map((row) => [row.name, row.states.find((b) => b.begin <= second + 0.5 && second + 0.5 < b.end)]).filter(([, band]) => band).map(([name, band]) => `${name}: ${band.name}`).join(", ");
      const at = (values, what, unit) => (values[second] == null ? "" : `${what} ${number(values[second], unit)}`);
      return [`${clock(second)}: ${doing || "no run"}`, at(l.tpmc, "tpmC", ""), ...["p50", "p90", "p99"].map((p) => at(l.latency[p], p, "ms")), l.failed[second] ? at(l.failed, "failed a second", "") : ""].filter(Boolean).join(" · ");
    });
  }

  function ramp(home, r) {
    const w = r.warehouses, group = `ramp${home.dataset.arm}-${home.dataset.ramp}`, last = w[w.length - 1], one = r.marks.length === 1;
    const known = r.marks.filter((mark) => mark.capacity);
    const marks = one && known.length && !known[0].open ? [{ begin: known[0].capacity, end: last, name: "does not pass", style: "fault" }] : [];
    for (const mark of known) marks.push({ begin: mark.capacity, end: mark.capacity, name: `${one ? "capacity" : mark.arm}: ${mark.capacity}${mark.open ? " or more" : ""}`, style: "bad" });
    if (one && !known.length) marks.push({ begin: w[0], end: last, name: "no load passes", style: "fault" });
    const behind = bands(marks), across = { size: 36, space: 60, values: (_, vs) => vs.map((v) => number(v, "")) };
    const x = { label: "warehouses", value: (_, v) => (v == null ? "–" : `${v}`) }, seen = { points: { show: true, size: 7 } };
    const y = { ...upwards, axis: { size: 72 } };
    const charts = [chart(home, group, { title: `tpmC over warehouses, ${r.title}`, height: 260, draw: behind, x, across, y,
      data: [w, ...Object.values(r.tpmc), w.map((v) => v * r.ideal), w.map((v) => v * r.least)],
      series: [...styled(Object.keys(r.tpmc), "", seen), line(`ideal: ${r.ideal} a warehouse`, "quiet", "", { dash: [6, 4], width: 1, ...dots }), line(`asked: ${r.least} a warehouse (85 % of 12.605)`, "unsure", "", { dash: [2, 3], width: 1, ...dots })] })];
    if (Object.keys(r.latency).length)
      charts.push(chart(home, group, { title: `Latency over warehouses, ${r.title} (logarithmic)`, height: 220, draw: bands(marks.map((mark) => ({ ...mark, name: "" }))), x, across, y: { ...logarithmic, axis: { ...logarithmic.axis, size: 72 } },
        data: [w, ...Object.values(r.latency), w.map(() => r.limit)],
        series: [...styled(Object.keys(r.latency), "ms", seen), line("p90 asked (stock-level 20 s)", "unsure", "ms", { dash: [2, 3], width: 1, ...dots })] }));
    speak(home, charts, (i) => [`${w[i]} warehouses`, ...Object.entries(r.tpmc).map(([name, values]) => values[i] != null && `${name} ${number(values[i], "")} tpmC, ${((100 * values[i]) / (r.ideal * w[i])).toFixed(1)} % of ideal`.replace(/^tpmC /, "")),
      ...Object.entries(r.latency).map(([name, values]) => values[i] != null && `${name} ${number(values[i], "ms")}`)].filter(Boolean).join(" · "));
  }
  return { runs, ramp };
};
