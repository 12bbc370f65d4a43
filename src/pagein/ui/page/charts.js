// Charts over model calls: stacked steps or lines, with marks, a tooltip, keyboard and shared zoom. Knows nothing of bills.
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
const make = (tag, attributes = {}, ...children) => {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "background" || name === "border-color") node.style[name === "background" ? "background" : "borderColor"] = value;
    else if (value !== null) node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
};
const amount = (value) => {
  if (value === null || value === undefined) return "-";
  for (const [least, size, letter] of [[999.95e6, 1e9, "G"], [999.95e3, 1e6, "M"], [999.5, 1e3, "k"]]) {
    if (Math.abs(value) >= least) {
      const scaled = value / size;
      return scaled.toFixed(Math.abs(scaled) < 9.995 ? 2 : Math.abs(scaled) < 999.95 ? 1 : 0) + letter;
    }
  }
  return value.toFixed(0);
};
const dollars = (value) => (Math.abs(value) >= 0.1 || value === 0 ? "$" + value.toFixed(2) : "$" + value.toFixed(4));
const tick = (value) => {
  for (const [size, letter] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]])
    if (Math.abs(value) >= size) return +(value / size).toFixed(2) + letter;
  return String(+value.toFixed(2));
};
const span = (seconds) => {
  const whole = Math.round(seconds);
  if (whole < 60) return whole + " s";
  if (whole < 3600) return Math.floor(whole / 60) + " min";
  const hours = Math.floor(whole / 3600);
  return hours < 48 ? hours + " h " + Math.floor((whole % 3600) / 60) + " min" : Math.floor(hours / 24) + " d";
};

const MARKS = {
  epoch: { label: "epoch opened (paged out)", colour: "brand", dash: [6, 3], style: "dashed" },
  pause: { label: "pause longer than the cache lives", colour: "soft", dash: [2, 3], style: "dotted" },
  compaction: { label: "compaction by the host", colour: "bad", dash: [], style: "" },
};

// A series as it looks in the chart: a block of colour, or a piece of its line.
function swatch(series) {
  if (!series.width) return make("i", { background: colour(series.colour) });
  const line = make("i", { class: "line " + (series.dash ? (series.dash[0] > 4 ? "dashed" : "dotted") : "") });
  line.style.borderTopColor = colour(series.colour);
  line.style.borderTopWidth = Math.max(2, Math.round(series.width)) + "px";
  return line;
}

// Charts in one group share the x range, the cursor and the set of hidden series.
class Group {
  constructor(calls, describe) {
    Object.assign(this, { calls, describe, charts: [], range: [0.5, calls + 0.5] });
    this.sync = "calls-" + Group.count++;
  }
  zoom(min, max) {
    const low = Math.max(0.5, min), high = Math.min(this.calls + 0.5, max);
    if (high - low < 1 || (low === this.range[0] && high === this.range[1])) return;
    this.range = [low, high];
    for (const chart of this.charts) chart.plot.setScale("x", { min: low, max: high });
  }
  destroy() {
    for (const chart of this.charts) chart.destroy();
    this.charts = [];
  }
  rebuild() {
    for (const chart of this.charts) chart.build();
  }
}
Group.count = 0;

class Chart {
  // spec: {label, unit, stacked, series: [{key, label, colour, values, width, dash}], hidden: Set, marks: [[call, kind]], top}
  constructor(host, group, spec) {
    Object.assign(this, { host, group, spec, plot: null, at: null, byKey: false });
    this.tip = make("div", { class: "tip", hidden: "" });
    this.watcher = new ResizeObserver(() => this.plot?.setSize(this.size()));
    host.tabIndex = 0;
    host.setAttribute("role", "group");
    host.setAttribute("aria-roledescription", "chart");
    host.setAttribute("aria-label", spec.label + ". Arrow keys move along the calls, plus and minus zoom, Escape shows all.");
    host.onkeydown = (event) => this.key(event);
    host.onblur = () => this.leave();
    this.build();
    this.watcher.observe(host);
    group.charts.push(this);
  }
  size() {
    return { width: Math.max(this.host.clientWidth, 120), height: this.host.clientHeight };
  }
  shown() {
    return this.spec.series.filter((series) => !this.spec.hidden.has(series.key));
  }
  data() {
    const { calls } = this.group;
    if (!this.spec.stacked)
      return [Array.from({ length: calls }, (_, call) => call + 1), ...this.shown().map((series) => series.values)];
    // A step lasts from half before to half after its call; one more point closes the last step.
    const xs = Array.from({ length: calls + 1 }, (_, call) => call + 0.5);
    const sums = new Array(calls + 1).fill(0);
    const stacks = this.shown().map((series) => {
      for (let call = 0; call <= calls; call++) sums[call] += series.values[Math.min(call, calls - 1)] || 0;
      return sums.slice();
    });
    return [xs, ...stacks.reverse()];
  }
  series() {
    const steps = uPlot.paths.stepped({ align: 1 });
    const list = this.spec.stacked ? this.shown().reverse() : this.shown();
    return [{}, ...list.map((series) => this.spec.stacked
      ? { label: series.label, fill: colour(series.colour), width: 0, paths: steps, points: { show: false } }
      : { label: series.label, stroke: colour(series.colour), width: series.width || 1.6, dash: series.dash, points: { show: false } })];
  }
  axes() {
    const common = { stroke: colour("soft"), font: "12px system-ui, sans-serif", labelFont: "12px system-ui, sans-serif", labelSize: 20, ticks: { show: false } };
    const whole = (plot, splits) => splits.map((value) => (Number.isInteger(value) ? value : ""));
    return [
      { ...common, label: "model call", size: 30, grid: { show: false }, values: whole },
      { ...common, label: this.spec.unit, size: 52, grid: { stroke: colour("grid"), width: 1 }, values: (plot, splits) => splits.map(tick) },
    ];
  }
  build() {
    this.plot?.destroy();
    const [min, max] = this.group.range;
    const top = this.spec.top;
    this.plot = new uPlot({
      ...this.size(),
      padding: [10, 10, 0, 0],
      legend: { show: false },
      scales: {
        x: { time: false, min, max, range: (plot, low, high) => [low <= 1 ? 0.5 : low, high >= this.group.calls ? this.group.calls + 0.5 : high] },
        y: { range: (plot, low, high) => [0, (top || high || 1) * 1.04] },
      },
      series: this.series(),
      axes: this.axes(),
      cursor: { y: false, points: { show: !this.spec.stacked, size: 6 }, drag: { x: true, y: false }, sync: { key: this.group.sync, scales: ["x", null], setSeries: false } },
      hooks: {
        draw: [(plot) => this.marks(plot)],
        setCursor: [(plot) => this.point(plot)],
        setScale: [(plot, scale) => scale === "x" && this.group.charts.length && this.group.zoom(plot.scales.x.min, plot.scales.x.max)],
      },
    }, this.data(), this.host);
    this.plot.setScale("x", { min, max });
    this.host.append(this.tip);
  }
  marks(plot) {
    const { ctx, bbox } = plot;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    for (const [call, kind] of this.spec.marks) {
      const x = Math.round(plot.valToPos(call + 0.5, "x", true)) + 0.5, mark = MARKS[kind];
      ctx.strokeStyle = colour(mark.colour);
      ctx.lineWidth = uPlot.pxRatio * (kind === "pause" ? 1 : 1.5);
      ctx.setLineDash(mark.dash.map((part) => part * uPlot.pxRatio));
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
    }
    ctx.restore();
  }
  point(plot) {
    const { left, event } = plot.cursor;
    if (!(left >= 0) || !(event || this.byKey)) return this.leave();
    this.at = Math.min(Math.max(Math.round(plot.posToVal(left, "x")) - 1, 0), this.group.calls - 1);
    const lines = this.lines(this.at);
    this.tip.replaceChildren(make("strong", {}, "call " + (this.at + 1)), ...this.group.describe(this.at).map((text) => make("em", {}, text)), lines);
    this.tip.hidden = false;
    const over = plot.over, x = over.offsetLeft + left, wide = this.tip.offsetWidth, room = this.host.clientWidth;
    const beside = x + 16 + wide < room ? x + 16 : x - 16 - wide;
    this.tip.style.left = Math.max(0, Math.min(beside, room - wide)) + "px";
    this.tip.style.top = Math.max(4, Math.min(12, this.host.clientHeight - this.tip.offsetHeight)) + "px";
  }
  lines(at) {
    const list = make("dl");
    const shown = this.shown(), sum = shown.reduce((total, series) => total + (series.values[at] || 0), 0);
    const ordered = this.spec.stacked ? shown.slice().reverse() : shown.slice().sort((one, other) => other.values[at] - one.values[at]);
    for (const series of ordered)
      if (!this.spec.stacked || series.values[at])
        list.append(swatch(series), make("dt", {}, series.label), make("dd", {}, (this.spec.say || amount)(series.values[at])));
    if (this.spec.stacked) list.append(make("i"), make("dt", {}, "together"), make("dd", {}, make("b", {}, amount(sum))));
    return list;
  }
  leave() {
    this.tip.hidden = true;
    this.byKey = false;
  }
  key(event) {
    const [low, high] = this.group.range, last = this.group.calls - 1, page = Math.max(1, Math.round((high - low) / 10));
    const from = this.at ?? Math.round(low) - 1;
    const moves = { ArrowLeft: from - 1, ArrowRight: from + 1, PageUp: from - page, PageDown: from + page, Home: Math.ceil(low) - 1, End: Math.floor(high) - 1 };
    const zooms = { "+": 0.5, "=": 0.5, "-": 2 };
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key in moves) this.move(Math.min(Math.max(moves[event.key], 0), last));
    else if (event.key in zooms) this.group.zoom(from + 1 - (from + 1 - low) * zooms[event.key], from + 1 + (high - from - 1) * zooms[event.key]);
    else if (event.key === "Escape") this.group.zoom(0.5, this.group.calls + 0.5), this.leave();
    else return;
    event.preventDefault();
  }
  move(at) {
    const [low, high] = this.group.range, wide = high - low;
    if (at + 1 < low || at + 1 > high) this.group.zoom(at + 1 - wide / 2, at + 1 + wide / 2);
    this.byKey = true;
    queueMicrotask(() => {
      this.byKey = true;
      this.plot.setCursor({ left: this.plot.valToPos(at + 1, "x"), top: 20 });
      const said = this.shown().map((series) => series.label + " " + (this.spec.say || amount)(series.values[at]));
      document.getElementById("spoken").textContent = ["call " + (at + 1), ...this.group.describe(at), ...said].join(", ");
    });
  }
  destroy() {
    this.watcher.disconnect();
    this.plot.destroy();
    this.tip.remove();
  }
}

// Buttons that show and hide series, and the key to the marks.
function keys(list, series, hidden, marks, changed) {
  list.replaceChildren(...series.map((each) => {
    const button = make("button", { type: "button", "aria-pressed": String(!hidden.has(each.key)) }, swatch(each), each.label);
    button.onclick = () => {
      hidden.has(each.key) ? hidden.delete(each.key) : hidden.add(each.key);
      button.setAttribute("aria-pressed", String(!hidden.has(each.key)));
      changed();
    };
    return make("li", {}, button);
  }), ...[...new Set(marks)].map((kind) => make("li", {}, make("span", {}, make("i", { class: "stroke " + MARKS[kind].style, "border-color": colour(MARKS[kind].colour) }), MARKS[kind].label))));
}
