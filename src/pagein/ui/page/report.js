// The page of a replay: which session is shown, and what its charts are made of.
const facts = JSON.parse(document.getElementById("facts").textContent);
const KINDS = [
  ["floor", "system and tools"], ["hidden", "hidden (thinking, reminders)"], ["user", "user"], ["assistant", "assistant"],
  ["arguments", "tool arguments"], ["stubs", "stubs"], ["recalled", "recalled"], ["results", "tool results"],
];
const BILLED = [["read", "read from cache"], ["written", "written to cache"], ["fresh", "neither"]];
const STROKES = {
  none: ["bad", 1.4], append: ["ink", 2.2], "append-5m": ["p2", 1.4], "append-1h": ["p4", 1.4], rolling: ["p5", 1.4], clear: ["p3", 1.4],
  compact: ["p7", 1.4], pagein: ["p1", 3], optimum: ["p6", 2, [8, 4]], bound: ["p6", 2, [2, 4]],
};
// A policy this much dearer than the baseline would flatten the others; its line waits behind its button.
const TOWERING = 1.5;

// Bars in the list of residents.
const RESIDENTS = 20;

const $ = (id) => document.getElementById(id);
const last = (list) => list[list.length - 1];
let group = null;

function rank(name) {
  return name === facts.engine ? 2 : name === facts.baseline ? 1 : 0;
}

// A price of a session: in dollars where they are known, else in BIT, the price of one input token without a cache.
function money(session, bit) {
  return session.usd_per_bit ? dollars(bit * session.usd_per_bit) : amount(bit) + " BIT";
}

function running(costs) {
  let sum = 0;
  return costs.map((cost) => (sum += cost));
}

function marksOf(session, ...kinds) {
  const found = { epoch: session.epochs.map((epoch) => epoch.call), pause: session.pauses, compaction: session.compactions };
  return kinds.flatMap((kind) => found[kind].map((call) => [call, kind]));
}

function describe(session) {
  const pauses = new Set(session.pauses), compactions = new Set(session.compactions);
  const epochs = new Map(session.epochs.map((epoch) => [epoch.call, epoch]));
  return (at) => {
    const said = session.times.length ? [span(session.times[at] - session.times[0]) + " in"] : [];
    if (pauses.has(at)) said.push("after a pause of " + span(session.times[at] - session.times[at - 1]));
    if (compactions.has(at)) said.push("the host had compacted");
    const epoch = epochs.get(at);
    if (epoch) said.push(`epoch: ${epoch.paged} paged out, ${amount(epoch.tokens)} tokens`);
    return said;
  };
}

function chartPair(prefix, session, names, specOf) {
  for (const [index, name] of names.entries()) {
    const host = $(prefix + index);
    host.replaceChildren();
    host.parentElement.hidden = !name;
    if (name) new Chart(host, group, specOf(name));
  }
}

function showComposition(session) {
  const names = [session.composition[facts.baseline] ? facts.baseline : "append", facts.engine].filter((name, index, all) => session.composition[name] && all.indexOf(name) === index);
  $("composition").hidden = !names.length;
  if (!names.length) return;
  const present = KINDS.filter(([kind]) => names.some((name) => session.composition[name].tokens[kind]?.some(Boolean)));
  const series = (name) => present.map(([kind, label]) => ({ key: kind, label, colour: kind, values: session.composition[name].tokens[kind] || [] }));
  const tops = names.flatMap((name) => session.times.map((_, call) => present.reduce((sum, [kind]) => sum + (session.composition[name].tokens[kind]?.[call] || 0), 0)));
  const hidden = new Set();
  const top = tops.reduce((high, value) => Math.max(high, value), 1);
  names.forEach((name, index) => ($("composition-name" + index).textContent = name));
  chartPair("composition", session, [names[0], names[1]], (name) => ({
    label: "Prompt composition per call, " + name, unit: "tokens in the prompt", stacked: true, series: series(name), hidden, top,
    marks: marksOf(session, ...(name === facts.engine ? ["compaction", "epoch"] : ["compaction"])),
  }));
  const marks = marksOf(session, "compaction", "epoch").map(([, kind]) => kind);
  keys($("composition-keys"), series(names[0]), hidden, marks, () => group.rebuild());
}

function showCosts(session) {
  const names = Object.keys(session.traces).filter((name) => session.traces[name].cost.length === session.times.length), base = last(running(session.traces[facts.baseline]?.cost || [])) * (session.usd_per_bit || 1) || Infinity;
  const series = names.map((name) => {
    const [stroke, width, dash] = STROKES[name] || ["p0", 1.4];
    return { key: name, label: name, colour: stroke, width, dash, values: running(session.traces[name].cost).map((cost) => cost * (session.usd_per_bit || 1)) };
  });
  // The two that matter are drawn last, so that no line of equal cost covers them.
  const drawn = series.slice().sort((one, other) => rank(one.key) - rank(other.key));
  const hidden = new Set(series.filter((each) => last(each.values) > TOWERING * base).map((each) => each.key));
  const spec = { label: "Cost so far per policy", unit: session.usd_per_bit ? "dollars so far" : "BIT so far", say: session.usd_per_bit ? dollars : amount, stacked: false, series: drawn, hidden, marks: marksOf(session, "pause") };
  $("costs0").replaceChildren();
  new Chart($("costs0"), group, spec);
  keys($("costs-keys"), series, hidden, session.pauses.length ? ["pause"] : [], () => group.rebuild());
}

function showCache(session) {
  const detailed = Object.keys(session.traces).filter((name) => session.traces[name].read.length === session.times.length);
  const right = detailed.includes(facts.engine) ? facts.engine : detailed.find((name) => name !== facts.baseline);
  const picker = $("cache-policy");
  picker.replaceChildren(...detailed.filter((name) => name !== facts.baseline).map((name) => make("option", { value: name }, name)));
  picker.value = right || "";
  const hidden = new Set();
  const series = (name) => BILLED.map(([key, label]) => ({ key, label, colour: key, values: session.traces[name][key] }));
  const highest = (name) => session.traces[name].read.reduce((high, read, call) => Math.max(high, read + session.traces[name].written[call] + session.traces[name].fresh[call]), 1);
  const top = Math.max(...[facts.baseline, right].filter((name) => session.traces[name]?.read.length).map(highest), 1);
  const specOf = (name) => ({
    label: "Cache read and written per call, " + name, unit: "prompt tokens", stacked: true, series: series(name), hidden, top,
    marks: marksOf(session, ...(name === facts.engine ? ["pause", "compaction", "epoch"] : ["pause", "compaction"])),
  });
  $("cache-name0").textContent = facts.baseline;
  chartPair("cache", session, [session.traces[facts.baseline]?.read.length ? facts.baseline : null, right], specOf);
  const shown = group.charts[group.charts.length - 1];
  picker.onchange = () => {
    Object.assign(shown.spec, specOf(picker.value));
    shown.host.setAttribute("aria-label", shown.spec.label);
    shown.build();
  };
  if (detailed.length) keys($("cache-keys"), series(detailed[0]), hidden, marksOf(session, "pause", "compaction", "epoch").map(([, kind]) => kind), () => group.rebuild());
}

function showResidents(session) {
  const most = Math.max(...session.residents.map((each) => each.carried), 1);
  $("residents").replaceChildren(...session.residents.slice(0, RESIDENTS).map((each) => {
    const bar = make("i");
    bar.style.width = (100 * each.carried) / most + "%";
    const size = make("span", { class: "size" }, make("b", {}, amount(each.carried)), ` (${amount(each.tokens)} from call ${each.born + 1})`);
    return make("li", {}, make("span", { class: "label", title: each.label }, each.label), make("span", { class: "track" }, bar), size);
  }));
  if (!session.residents.length) $("residents").replaceChildren(make("li", {}, "Nothing large stayed in this window."));
}

// A narrow page shows each value behind the name of its column.
function nameCells(table) {
  const names = [...table.tHead.rows[0].cells].map((cell) => cell.textContent);
  for (const row of table.tBodies[0].rows) [...row.cells].forEach((cell, index) => (cell.dataset.head = names[index]));
  return table;
}

function table(head, rows) {
  const cells = (values, tag) => make("tr", {}, ...values.map((value, index) => make(index ? tag : "th", index ? {} : { scope: tag === "th" ? "col" : "row" }, String(value))));
  return nameCells(make("table", { class: "numbered" }, make("thead", {}, cells(head, "th")), make("tbody", {}, ...rows.map((row) => cells(row, "td")))));
}

function whyOf(session) {
  const decisions = session.why ? session.why.decisions : [];
  const head = ["at call", "what", "results", "tokens", "why", "expected to save", "saved", "in hand before"];
  const row = (one) => [one.call + 1, one.kind, one.paged, amount(one.tokens), one.reason, money(session, one.expected), one.realised === null ? "-" : money(session, one.realised), money(session, one.bankroll)];
  const made = decisions.length ? table(head, decisions.map(row))
    : make("p", { class: "note" }, session.why ? "Nothing was paged out." : "pagein was not replayed.");
  return session.why && session.why.idle ? [made, make("p", { class: "note" }, `In the end ${session.why.idle}.`)] : [made];
}

function showNumbers(session) {
  $("epochs").replaceChildren(...whyOf(session));
  const details = $("numbers");
  details.open = false;
  details.ontoggle = () => {
    if (!details.open) return;
    const names = [facts.baseline, facts.engine].filter((name) => session.traces[name]?.read.length);
    const head = ["call", "second", ...names.flatMap((name) => ["read", "written", "fresh", "cost"].map((part) => name + " " + part))];
    const rows = session.times.map((time, call) => [call + 1, Math.round(time - session.times[0]), ...names.flatMap((name) => ["read", "written", "fresh", "cost"].map((part) => Math.round(session.traces[name][part][call])))]);
    $("numbers-table").replaceChildren(table(head, rows));
  };
}

function showFacts(session) {
  const calls = session.times.length, totals = (name) => (session.traces[name] ? last(running(session.traces[name].cost)) : null);
  const base = totals(facts.baseline);
  const beside = (name) => (totals(name) !== null && base ? [`${money(session, totals(name))} (${(100 * (totals(name) / base - 1)).toFixed(1)} %)`, name] : null);
  const said = [
    [calls, calls === 1 ? "call" : "calls"], [calls ? span(last(session.times) - session.times[0]) : "-", "long"], [base === null ? "-" : money(session, base), facts.baseline],
    beside(facts.by_default), beside(facts.engine),
    ...[["epochs", "epoch"], ["pauses", "pause"], ["compactions", "compaction"]].map(([key, one]) => [session[key].length, session[key].length === 1 ? one : key]),
  ];
  $("session-facts").replaceChildren(...said.filter(Boolean).map(([value, what]) => make("li", {}, make("b", {}, String(value)), " " + what)));
}

function show(index) {
  const session = facts.sessions[index];
  group?.destroy();
  group = new Group(session.times.length, describe(session));
  showFacts(session);
  if (session.times.length) [showComposition, showCosts, showCache].forEach((draw) => draw(session));
  showResidents(session);
  showNumbers(session);
}

function bars() {
  for (const bar of document.querySelectorAll(".bar[data-share]")) {
    const fill = make("i"), line = make("u");
    fill.style.width = Math.min(100, 100 * bar.dataset.share) + "%";
    line.style.left = 100 * bar.dataset.line + "%";
    bar.classList.toggle("over", bar.dataset.share > 1);
    bar.replaceChildren(fill, line);
  }
}

// The picture leaves the page as a file: as it is, or drawn on a canvas of twice its size.
function save(name, address) {
  make("a", { href: address, download: name }).click();
}

function sharing() {
  const drawn = document.querySelector("#share svg");
  if (!drawn) return;
  const address = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(new XMLSerializer().serializeToString(drawn));
  $("save-svg").onclick = () => save("pagein.svg", address);
  $("save-png").onclick = () => {
    const picture = new Image(), canvas = make("canvas", { width: 2400, height: 1260 });
    picture.onload = () => {
      canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height);
      save("pagein.png", canvas.toDataURL("image/png"));
    };
    picture.src = address;
  };
}

function start() {
  document.querySelectorAll(".scroll > table").forEach(nameCells);
  bars();
  sharing();
  if (!facts.sessions.length) return;
  const picker = $("session");
  const fromHash = () => {
    const wanted = Number((location.hash.match(/^#session-(\d+)$/) || [])[1]);
    if (!(wanted >= 1 && wanted <= facts.sessions.length)) return false;
    picker.value = String(wanted - 1);
    show(wanted - 1);
    return true;
  };
  picker.onchange = () => {
    history.replaceState(null, "", "#session-" + (Number(picker.value) + 1));
    show(Number(picker.value));
  };
  addEventListener("hashchange", () => fromHash() && $("one").scrollIntoView());
  if (!fromHash()) show(0);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => show(Number(picker.value)));
}
start();
