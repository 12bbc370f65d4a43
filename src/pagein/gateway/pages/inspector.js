"use strict";
// The window as it went out, one part of it, orders about it, and the sessions of the store. Clicks are read from data-act, because patching keeps old elements.
const PARTS_SHOWN = 200, FEW = 3, STORED_EVERY = 20000, PENDING_EVERY = 1200;
const seen = { name: "", at: 0, prompt: null, history: null, off: false, part: null, undo: [], told: "", failed: false };
const stored = { found: null, asked: 0, words: "", by: "day", titles: new Map(), untitled: new Set() };

const dollars = (usd) => usd === null || usd === undefined ? "–" : (usd < 0 ? "−" : "") + (usd !== 0 && Math.abs(usd) < 0.01 ? (100 * Math.abs(usd)).toFixed(2) + " ¢" : "$" + Math.abs(usd).toFixed(2));
const day = (at) => at === null ? "" : new Date(at * 1000).toLocaleString([], { dateStyle: "medium", timeStyle: "short" });

// What is asked beside a session: its last prompt when a call has changed it, and its calls in the store.
async function inspected(name, calls) {
  const at = calls.length ? calls[0].at : 0;
  if (seen.name !== name) Object.assign(seen, { name, at: -1, prompt: null, history: null, off: false, part: null, undo: [], told: "", failed: false });
  if (seen.at === at && seen.history) return;
  const query = encodeURIComponent(name);
  const [prompt, history] = await Promise.all([asked("/api/prompt?name=" + query), last.curating ? asked("/api/history?name=" + query) : { calls: [], off: false }]);
  if (seen.name === name) Object.assign(seen, { at, prompt, history: history.calls || [], off: Boolean(history.off) });
  if (seen.name === name && seen.part) pick(partKey(seen.part)); // what the model sees of it may be another text now
}

const partKey = (part) => part.place + "." + part.block;
const FORMS = { preview: "previews", stub: "stubs" };
function partKind(part, objects) {
  const item = part.kind === "results" ? objects.get(part.call) : null;
  return item ? FORMS[item.form] || "results" : part.kind;
}
function prompt_picture(found) {
  const head = made("h3", null, "The window now");
  const prompt = seen.prompt;
  if (!prompt || prompt.error) return [head, made("p", { class: "soft" }, prompt ? prompt.error : "asking…")];
  const objects = new Map((found.inside ? found.inside.objects : []).map((item) => [item.call, item]));
  const newest = found.inside && found.inside.epochs.length ? found.inside.epochs[0] : null;
  const total = prompt.tokens || 1, sums = new Map();
  let left = 0;
  const bars = [];
  for (const part of prompt.parts) {
    const kind = partKind(part, objects), wide = 1000 * part.tokens / total;
    sums.set(kind, (sums.get(kind) || 0) + part.tokens);
    bars.push(drawn("rect", { class: "p-" + colour(kind), "data-act": "part", "data-part": partKey(part), x: left.toFixed(2), y: 8, width: Math.max(wide, 0.4).toFixed(2), height: 40 }, drawn("title", {}, (KINDS[kind] || kind) + ", " + whole(part.tokens) + " tokens: " + part.title)));
    if (newest && part.place === newest.frontier && part.block === 0) bars.push(drawn("rect", { class: "frontier", x: left.toFixed(2), y: 0, width: 1.5, height: 58 }, drawn("title", {}, "frontier of epoch " + newest.number)));
    left += wide;
    if (part.breakpoint) bars.push(drawn("rect", { class: "mark", x: (left - 1).toFixed(2), y: 2, width: 2, height: 52 }, drawn("title", {}, "cache breakpoint, " + whole(part.breakpoint / 60) + " minutes")));
  }
  const words = [...sums].sort((one, other) => other[1] - one[1]).map(([kind, tokens]) => [colour(kind), (KINDS[kind] || kind) + " " + amount(tokens) + " (" + share(tokens, total) + ")"]);
  const about = "The last prompt as it went out at " + clock(prompt.at) + ": " + plural(prompt.parts.length, "part") + ", " + whole(prompt.tokens) + " tokens by pagein's estimate" + (prompt.counted === null ? "" : ", " + whole(prompt.counted) + " counted by the provider") + ", " + whole(prompt.bytes) + " bytes." + (prompt.automatic ? " The client asks for a breakpoint at its end." : "");
  return [head, made("p", { class: "soft" }, about), drawn("svg", { class: "window", viewBox: "0 0 1000 58", preserveAspectRatio: "none", role: "img", "aria-label": words.map((one) => one[1]).join(", ") }, ...bars), keys([...words, ...(prompt.parts.some((part) => part.breakpoint) ? [["mark", "cache breakpoint"]] : []), ...(newest ? [["frontier", "frontier of the last epoch"]] : [])]), parts_table(prompt, objects)];
}
function parts_table(prompt, objects) {
  const columns = [column("message"), column("kind", "plain"), column("part", "wide"), column("tokens"), column("breakpoint", "plain"), column("marks", "plain")];
  const rows = prompt.parts.map((part) => {
    const kind = partKind(part, objects), item = objects.get(part.call), open = seen.part && partKey(seen.part) === partKey(part);
    const button = made("button", { class: "part", type: "button", "data-act": "part", "data-part": partKey(part), "aria-pressed": open ? "true" : "false" }, part.title || "(empty)");
    return { kind, tokens: part.tokens, key: partKey(part), class: open ? "open" : "", cells: [part.place < 0 ? "–" : part.place, KINDS[kind] || kind, button, whole(part.tokens), part.breakpoint ? whole(part.breakpoint / 60) + " min" : "", item && part.kind === "results" ? item.marks.join(" ") : ""] };
  });
  const schemas = rows.filter((one) => one.kind === "tools"), said = schemas.length > FEW ? rows.filter((one) => one.kind !== "tools") : rows;
  const shown = said.slice(-PARTS_SHOWN), older = said.slice(0, -PARTS_SHOWN);
  const all = [table("Parts of the prompt, in its order", columns, shown, "none")];
  if (older.length) all.unshift(made("details", null, made("summary", null, whole(older.length) + " parts before these"), table("Earlier parts", columns, older, "none")));
  if (schemas.length > FEW) all.unshift(made("details", null, made("summary", null, whole(schemas.length) + " tool schemas, " + whole(schemas.reduce((sum, one) => sum + one.tokens, 0)) + " tokens"), table("Tool schemas", columns, schemas, "none")));
  return made("div", { class: "parts" }, ...all);
}

const ACTS = { pin: ["Pin", "p", "keep it in the window"], unpin: ["Unpin", "u", "take back a pin or a veto"], veto: ["Veto", "v", "never let it leave"], drop: ["Drop", "d", "let it leave with the next epoch"], restore: ["Restore", "r", "bring its text back with the next epoch"], epoch: ["Open an epoch", "e", "the next call rewrites the window, whether it pays or not"], off: ["Switch off here", "o", "pagein decides nothing in this session"], on: ["Switch on again", "o", "pagein decides in this session again"], undo: ["Undo", "z", "take back your last order"] };
const ABOUT = ["pin", "unpin", "veto", "drop", "restore"];
function act_button(act) {
  const [label, key, meaning] = ACTS[act];
  return made("button", { type: "button", "data-act": "order", "data-order": act, "data-key": act, title: meaning, "aria-keyshortcuts": key }, label + " ", made("kbd", { "aria-hidden": "true" }, key));
}
function file_orders() {
  const buttons = ABOUT.map((act) => made("button", { type: "button", "data-act": "file-order", "data-file-order": act, "data-key": "file " + act, title: ACTS[act][2] + ": every result that shows this file" }, ACTS[act][0]));
  return made("div", { class: "orders", role: "group", "aria-label": "Orders about a file" }, made("label", { for: "file" }, "Every result of the file"), made("input", { id: "file", name: "file", placeholder: "app.py", autocomplete: "off", spellcheck: "false" }), ...buttons);
}
function orders() {
  return made("div", { class: "orders", role: "group", "aria-label": "Orders about this session" }, act_button("epoch"), act_button(seen.off ? "on" : "off"), seen.undo.length ? act_button("undo") : null, made("span", { class: seen.failed ? "bad" : "good", role: "status" }, seen.told));
}
function part_view(steers) {
  const part = seen.part;
  if (!part) return [made("p", { class: "soft" }, "Choose a part above to see its text, why it left or stays, and what can be ordered about it.")];
  const result = part.result;
  const head = [made("h3", { id: "part-head" }, KINDS[part.kind] || part.kind, result && result.tool ? ": " + result.tool : ""), made("p", { class: "soft" }, whole(part.tokens) + " tokens as the model sees it" + (result ? "; " + whole(result.tokens) + " as a whole; " + result.form + (result.object ? ", " + result.object : "") : ""))];
  if (result && result.why) head.push(made("p", null, result.why));
  if (result && result.error) head.push(made("p", { class: "soft" }, result.error));
  if (steers && result && !result.error) head.push(made("div", { class: "orders", role: "group", "aria-label": "Orders about this result" }, ...ABOUT.map(act_button)));
  const texts = [made("h4", null, "As the model sees it"), made("div", { class: "text scroll", tabindex: "0", role: "region", "aria-label": "As the model sees it" }, made("pre", null, part.text))];
  if (result && result.stored) texts.push(made("h4", null, "Whole, as stored"), made("div", { class: "text scroll", tabindex: "0", role: "region", "aria-label": "Whole, as stored" }, made("pre", null, result.stored)));
  else if (result && result.missing && part.kind === "results") texts.push(made("p", { class: "soft" }, result.missing));
  return [made("div", { class: "card part-card" }, ...head, ...texts)];
}
async function pick(key) {
  const name = seen.name, part = seen.prompt && seen.prompt.parts && seen.prompt.parts.find((one) => partKey(one) === key);
  if (!part) return;
  const query = "name=" + encodeURIComponent(name);
  const [text, result] = await Promise.all([asked("/api/part?" + query + "&place=" + part.place + "&block=" + part.block), part.kind === "results" && last.curating ? asked("/api/result?" + query + "&call=" + encodeURIComponent(part.call)) : null]);
  if (seen.name !== name) return;
  seen.part = { ...part, text: text.error || text.text, result };
  redraw();
}
async function send(act, target) {
  const answer = await fetch("/api/order", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ session: seen.name, act, target }) });
  return answer.json();
}
async function give(act, file) {
  const target = file !== undefined ? file : seen.part && seen.part.result ? seen.part.result.call : "", about = ABOUT.includes(act);
  if (about && !target) { Object.assign(seen, { told: file === undefined ? "Choose a tool result first." : "Write the name of a file first.", failed: true }); return redraw(); }
  try {
    let answer = null;
    if (act === "undo") {
      const back = seen.undo.pop();
      if (!back) return;
      for (const one of back.orders) { answer = await send(one.act, one.target); if (answer.error) break; }
      if (answer && !answer.error) answer.text = "Taken back: " + ACTS[back.act][0].toLowerCase() + ".";
    } else {
      answer = await send(act, about ? target : "");
      if (!answer.error && answer.undo.length) seen.undo.push({ orders: answer.undo, act });
    }
    Object.assign(seen, { told: answer.error || answer.text, failed: Boolean(answer.error), at: -1 });
  } catch (problem) { Object.assign(seen, { told: "The gateway does not answer.", failed: true }); }
  await refresh();
}
function pay_back(calls) {
  const rows = [];
  calls.forEach((call, index) => {
    if (!call.epoch) return;
    let since = 0, number = 0;
    for (let next = index + 1; next < calls.length && !calls[next].epoch; next += 1) { since += calls[next].saved_usd; number += 1; }
    const price = -call.saved_usd;
    rows.push({ key: "pay " + index, cells: [call.at === null ? "" : day(call.at), call.epoch, call.evicted, call.restored, amount(call.evicted_tokens), dollars(price), dollars(since), made("span", { class: since >= price ? "good" : "warn" }, since >= price ? "paid back" : "not yet")] });
  });
  const columns = [column("at"), column("why", "wide"), column("out"), column("back"), column("tokens out"), column("price", "", "What the call that opened it cost more than without pagein. Negative: it was cheaper."), column("back so far", "", "What the calls after it spared, until the next epoch."), column("balance", "plain")];
  return rows.length ? [made("h3", null, "What epochs cost and brought"), table("What epochs cost and brought", columns, rows.reverse(), "none")] : [];
}
function time_line(calls) {
  const columns = [column("at"), column("model", "plain"), column("read"), column("written"), column("fresh"), column("output"), column("cost, BIT"), column("dollars"), column("saved", "", RECKONED), column("epoch", "wide"), column("recalls")];
  const rows = calls.map((call, index) => ({ key: "stored " + index, cells: [call.at === null ? "" : day(call.at), call.model, whole(call.read), whole(call.written), whole(call.fresh), whole(call.output), call.cost === null ? "–" : amount(call.cost), dollars(call.usd), dollars(call.saved_usd), call.epoch, call.recalls] })).reverse();
  return [made("h3", null, "Time line, newest first"), table("Time line", columns, rows.slice(0, SHOWN), "The store holds no answered call of it."), ...older_rows("Older calls of the time line", columns, rows)];
}
function past_session(name, found) {
  const view = stored.found && stored.found.sessions ? stored.found.sessions.find((one) => one.name === name) : null;
  const head = [made("h2", { tabindex: "-1" }, "Session " + (view && view.title || name)), made("p", { class: "soft" }, [name, view && view.agent, view && view.project, view && view.models.join(", "), "from before this gateway's start"].filter(Boolean).join(" · "))];
  const calls = seen.history || [];
  const inner = found.inside ? [...composition(found.inside.window), ...epochs(found.inside, calls.some((call) => call.epoch)), ...pay_back(calls), ...objects(found.inside)] : [made("p", { class: "soft" }, found.why || found.error)];
  return [...head, ...picture(calls), ...inner, ...doctor([...calls].reverse(), day), ...time_line(calls)];
}

// --- the sessions of the store, and totals ---
const title_of = (name) => stored.titles.get(name) || "";
const waits_for_title = () => last && last.curating && !stored.found; // the store tells titles a moment after the list
function sparkline(days) {
  const worth = days.map((one) => one.cost || 0), most = Math.max(...worth, 1), wide = 1000 / Math.max(days.length, 30);
  const bars = days.map((one, index) => drawn("rect", { class: "written", x: (index * wide).toFixed(2), y: (58 - 56 * worth[index] / most).toFixed(2), width: Math.max(wide - 4, 1).toFixed(2), height: (56 * worth[index] / most + 1).toFixed(2) }, drawn("title", {}, one.name + ": " + amount(worth[index]) + " BIT, " + dollars(one.usd) + ", " + plural(one.calls, "call"))));
  return drawn("svg", { class: "spark", viewBox: "0 0 1000 60", preserveAspectRatio: "none", role: "img", "aria-label": "Cost by day, from " + (days.length ? days[0].name + " to " + days[days.length - 1].name : "none") }, ...bars);
}
const BYS = { day: "day (UTC)", agent: "agent", project: "project", model: "model" };
function totals(found) {
  const all = found.totals, ledger = all.ledger_usd, net = all.whole.saved_usd;
  const tally = tiles([[dollars(all.whole.usd), "in all, " + plural(all.whole.calls, "call"), "", "Of the calls whose model has a price in dollars."], [dollars(net), "saved in all, by pagein's reckoning", net >= 0 ? "good" : "bad", RECKONED], [dollars(ledger.gained), "that calls were cheaper"], [dollars(ledger.spent), "that calls were dearer, for rewrites"], [dollars(ledger.recalling), "for " + plural(ledger.recalls, "recall"), "", "Where the model went on behind what the gateway brought back, a second request was billed."], [dollars(ledger.lost), "of these lost in " + plural(ledger.losing, "session") + " so far", ledger.lost ? "warn" : ""]]);
  const columns = [column(BYS[stored.by], "name"), column("calls"), column("read"), column("written"), column("fresh"), column("output"), column("cost, BIT"), column("dollars"), column("saved", "", RECKONED), column("recalls")];
  const rows = all[stored.by].map((one) => ({ key: one.name, title: one.name, cells: [one.name, whole(one.calls), amount(one.read), amount(one.written), amount(one.fresh), amount(one.output), one.cost === null ? "–" : amount(one.cost), dollars(one.usd), dollars(one.saved_usd), one.recalls] }));
  if (stored.by === "day") rows.reverse();
  const chooser = made("div", { class: "orders", role: "group", "aria-label": "Totals by" }, ...Object.keys(BYS).map((one) => made("button", { type: "button", "data-act": "by", "data-by": one, "data-key": one, "aria-pressed": stored.by === one ? "true" : "false" }, "by " + BYS[one])));
  return [made("h2", null, "Totals of the store"), made("p", { class: "soft" }, "Every answered call that pagein stored, each counted once. Calls that passed untouched are not stored, and not in here." + (found.pending ? " " + plural(found.pending, "session") + " still to be read." : "")), tally, sparkline(all.day.filter((one) => one.name !== "unknown")), chooser, table("Totals by " + BYS[stored.by], columns, rows.slice(0, 60), "No call yet.")];
}
const WITHOUT = "What the same calls would have cost with nothing taken out, by pagein's reckoning: with the settings in force against none.";
function days(found) {
  return tiles([["today", "since midnight", found.today], ["the last seven days", "", found.week]].flatMap(([label, more, one]) => [[dollars(one.usd), label + ", " + plural(one.calls, "call") + " at list prices", "", more], [dollars(one.saved), "saved " + (label === "today" ? "today" : "in these days") + "; without pagein " + dollars(one.usd + one.saved), one.saved < 0 ? "bad" : one.saved > 0 ? "good" : "", WITHOUT]]));
}
function stored_sessions() {
  const found = stored.found;
  if (!found || found.error) return found ? [made("p", { class: "soft" }, found.error)] : [];
  const columns = [column("session", "name"), column("last write"), column("agent", "plain"), column("project", "name"), column("calls"), column("cost, BIT"), column("dollars"), column("saved", "", RECKONED), column("epochs"), column("recalls"), column("models", "brief")];
  const rows = found.sessions.map((one) => ({ key: "stored " + one.name, title: one.title + "\n" + one.name + "\n" + one.project, class: one.name === opened ? "open" : "", cells: [made("a", { href: "#" + encodeURIComponent(one.name), "aria-current": one.name === opened ? "true" : "" }, one.title || one.name), one.last === null ? "" : day(one.last), one.agent, one.project.split(/[\\/]/).filter(Boolean).pop() || "", ...(one.read_yet ? [whole(one.calls), one.cost === null ? "–" : amount(one.cost), dollars(one.usd), dollars(one.saved_usd), one.epochs, one.recalls] : ["…", "…", "…", "…", "…", "…"]), one.models.join(" ")] }));
  return [table("Sessions of the store", columns, rows, stored.words ? "No session has all of these words." : "The store holds no session yet."), found.more ? made("p", { class: "soft" }, "The latest 500 sessions; pagein sessions lists all.") : null];
}
async function ask_stored(force) {
  const now = Date.now(), pending = stored.found && stored.found.pending;
  if (!last || !last.curating || document.hidden || !force && now - stored.asked < (pending ? PENDING_EVERY : STORED_EVERY)) return;
  stored.asked = now;
  const words = stored.words;
  try {
    const found = await asked("/api/stored?q=" + encodeURIComponent(words));
    if (words !== stored.words) return;
    stored.found = found;
    const is_first = !stored.titles.size;
    if (!words) stored.titles = new Map((found.sessions || []).map((one) => [one.name, one.title]));
    byId("stored-part").hidden = false;
    draw_stored();
    if (is_first) refresh();
  } catch (problem) { /* the page says elsewhere that the gateway does not answer */ }
}
async function ask_titles(sessions) {
  const names = sessions.map((one) => one.name).filter((name) => !stored.titles.has(name) && !stored.untitled.has(name));
  if (!names.length) return;
  names.forEach((name) => stored.untitled.add(name)); // each is waited for once, and no longer than a moment
  await Promise.race([ask_stored(true), new Promise((done) => setTimeout(done, PENDING_EVERY))]);
}
function draw_stored() {
  show(byId("stored"), ...stored_sessions());
  show(byId("days"), ...(stored.found && stored.found.week && stored.found.totals.whole.calls ? [days(stored.found)] : []));
  show(byId("totals"), ...(stored.found && stored.found.totals ? totals(stored.found) : []));
}

// --- clicks, keys, events ---
document.addEventListener("click", (event) => {
  const found = event.target instanceof Element ? event.target.closest("[data-act]") : null;
  if (!found) return;
  if (found.dataset.act === "part") {
    const button = byId("inside").querySelector('button[data-part="' + found.dataset.part + '"]');
    if (button && button.closest("details")) button.closest("details").open = true;
    if (button) button.focus({ preventScroll: true }); // a click on the picture leads to the part's row, where the keys work
    pick(found.dataset.part);
  }
  if (found.dataset.act === "order") give(found.dataset.order);
  if (found.dataset.act === "file-order") give(found.dataset.fileOrder, byId("file").value.trim());
  if (found.dataset.act === "by") { stored.by = found.dataset.by; draw_stored(); }
});
addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target instanceof HTMLInputElement || !byId("inside").contains(document.activeElement)) return; // single keys work only where they belong
  const act = Object.keys(ACTS).find((one) => ACTS[one][1] === event.key && byId("inside").querySelector('[data-order="' + one + '"]'));
  if (act) { event.preventDefault(); give(act); }
});
byId("filter").addEventListener("input", (event) => { stored.words = event.target.value; ask_stored(true); });
byId("filter-form").addEventListener("submit", (event) => event.preventDefault());
