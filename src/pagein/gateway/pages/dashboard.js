"use strict";
// Whatever comes from a session is put in as text. Views are made anew and patched into the page, so that scrolling, focus and selection stay.
const EVERY = 2500, QUIET = 10000, SHOWN = 25, TALLEST = 120, WIDE = 8;
const byId = (id) => document.getElementById(id);
let opened = named(), follows = false, shownOnce = false, busy = false, again = false, last = null, redraw = () => {};

function named() {
  try { return decodeURIComponent(location.hash.slice(1)); } catch (problem) { return location.hash.slice(1); }
}
function made(tag, options, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(options || {})) if (value) element.setAttribute(name, value);
  element.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
  return element;
}
function drawn(tag, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}
function show(parent, ...children) {
  const focused = document.activeElement;
  patch(parent, made("div", null, ...children));
  if (focused !== document.activeElement && focused.isConnected) focused.focus({ preventScroll: true });
}
function patch(parent, wanted) {
  let here = parent.firstChild;
  for (const next of [...wanted.childNodes]) {
    let found = here;
    while (found && !(found.nodeName === next.nodeName && keyOf(found) === keyOf(next))) found = found.nextSibling;
    if (!found) { parent.insertBefore(next, here); continue; }
    if (found === here) here = here.nextSibling; else parent.insertBefore(found, here);
    if (found.nodeType === Node.TEXT_NODE) { if (found.data !== next.data) found.data = next.data; } else align(found, next);
  }
  while (here) { const gone = here; here = here.nextSibling; gone.remove(); }
}
const keyOf = (node) => node.dataset ? node.dataset.key || "" : "";
function align(found, next) {
  for (const { name, value } of [...next.attributes]) if (name !== "style" && found.getAttribute(name) !== value) found.setAttribute(name, value);
  for (const { name } of [...found.attributes]) if (name !== "style" && name !== "open" && !next.hasAttribute(name)) found.removeAttribute(name);
  if (found.style.cssText !== next.style.cssText) found.style.cssText = next.style.cssText;
  patch(found, next);
}

// Text with commands between backticks.
const prose = (text) => text.split("`").map((part, index) => index % 2 ? made("code", null, part) : part);
const whole = (number) => Math.round(number).toLocaleString("en");
function amount(number) {
  const size = Math.abs(number);
  if (size >= 1e6) return (number / 1e6).toFixed(2) + "M";
  return size >= 1e4 ? (number / 1e3).toFixed(1) + "k" : whole(number);
}
const plural = (count, word) => whole(count) + " " + word + (count === 1 ? "" : "s");
function ago(then, now) {
  const seconds = Math.max(0, now - then);
  if (seconds < 90) return Math.round(seconds) + " s ago";
  return seconds < 5400 ? Math.round(seconds / 60) + " min ago" : Math.round(seconds / 3600) + " h ago";
}
const clock = (at) => at === null ? "" : new Date(at * 1000).toLocaleTimeString();
const share = (part, all) => all > 0 ? (100 * part / all).toFixed(1) + " %" : "–";
const prompt = (one) => one.read + one.written + one.fresh;
function saving(cost, saved) {
  const before = cost + saved, percent = before > 0 ? 100 * saved / before : 0;
  if (!(before > 0)) return "–";
  if (Math.abs(percent) < 0.05) return "0 %";
  return made("span", { class: percent > 0 ? "good" : "bad" }, (percent > 0 ? "−" : "+") + Math.abs(percent).toFixed(1) + " %");
}
// A column: its head, whether it is text, and what it means.
const column = (head, kind, meaning) => ({ head, kind: kind || "", meaning });
function table(caption, columns, rows, none) {
  if (!rows.length) return made("p", { class: "soft" }, none);
  const side = (one) => one.kind && "text " + one.kind;
  const heads = columns.map((one) => made("th", { scope: "col", role: "columnheader", class: side(one), title: one.meaning }, one.head));
  const cell = (value, one, title) => made("td", { role: "cell", "data-head": one.head, class: side(one) || (value === 0 ? "zero" : ""), title: one.kind === "name" ? title : "" }, value instanceof Node ? value : String(value));
  const body = rows.map((one) => made("tr", { role: "row", "data-key": one.key, class: one.class }, ...one.cells.map((value, index) => cell(value, columns[index], one.title))));
  return made("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption }, made("table", { role: "table", "aria-label": caption }, made("thead", { role: "rowgroup" }, made("tr", { role: "row" }, ...heads)), made("tbody", { role: "rowgroup" }, ...body)));
}
const older_rows = (caption, columns, rows) => rows.length > SHOWN ? [made("details", null, made("summary", null, whole(rows.length - SHOWN) + " older"), table(caption, columns, rows.slice(SHOWN), "none"))] : [];
function tiles(entries) {
  return made("ul", { class: "tiles" }, ...entries.map(([value, label, kind, meaning]) => made("li", { title: meaning }, made("b", { class: kind }, value), made("span", null, label))));
}
function keys(entries) {
  return made("ul", { class: "keys" }, ...entries.map(([kind, text]) => made("li", null, made("i", { class: "k-" + kind }), text)));
}

const BIT = "One prompt token at the full price costs 1 BIT; reads from the cache, writes into it and output cost what the model's price table says.";
const RECKONED = "Reckoned by pagein: what its own decisions spared or cost at these cache prices. No provider tells what would have been.";
const BY_CACHE = "Prompt tokens that the provider read from its cache instead of taking them at the full price.";

function sums(sessions) {
  const total = { calls: 0, read: 0, written: 0, fresh: 0, cost: 0, unbilled: 0, saved: 0, failures: 0, errors: 0, shortfall: 0, usd: 0, saved_usd: 0 };
  for (const one of sessions) for (const name of Object.keys(total)) total[name] += one[name];
  return total;
}
const passes = (one) => one.passed > 0 && one.passed === one.calls;
function setup(clients) {
  return clients.map((one) => made("div", { class: "card" }, made("b", null, one.name), made("span", { class: "soft" }, ", " + one.where), made("pre", null, one.lines.join("\n")), ...one.notes.map((note) => made("p", { class: "soft" }, note))));
}
function nothingYet(state) {
  return [made("h2", null, "No model call came through yet"), made("p", null, "In the gateway's folder, start one by pagein run claude (or codex, opencode, pi, gemini) and work as always; its session appears here with its first answer. To point an agent at this gateway by hand, see below. " + (state.curating ? "" : "This gateway only measures: it changes nothing.")), ...(stored.found && stored.found.sessions && stored.found.sessions.length ? [made("details", null, made("summary", null, "Point an agent here by hand"), ...setup(state.setup))] : setup(state.setup))];
}
function overview(state) {
  const total = sums(state.sessions);
  const bill = [[amount(total.calls), "model calls in " + plural(state.sessions.length, "session")], [total.usd ? dollars(total.usd) : amount(total.cost), total.usd ? "the bill so far, at list prices (" + amount(total.cost) + " BIT)" : "BIT: the bill so far", "", BIT], [total.usd ? saving(total.usd, total.saved_usd) : saving(total.cost, total.saved), "of the bill, by pagein's reckoning", "", RECKONED], [share(total.read, prompt(total)), "of prompts read from the cache", "", BY_CACHE]];
  if (total.unbilled) bill.splice(2, 0, [amount(total.unbilled), "BIT that a key would have cost, on subscriptions", "", "On a subscription nothing is billed by the token. " + BIT]);
  const trouble = [[amount(total.shortfall), "tokens that a cache should have held", total.shortfall ? "warn" : "", "See the session for why."], [whole(total.failures), "failures of pagein", total.failures ? "bad" : "", "The request went out all the same, as it came or as it was last sent."]];
  const columns = [column("session", "name"), column("last call"), column("calls"), column("dollars", "", "Each call at the newest price of its model. Untouched calls are not in it."), column("bill, BIT", "", BIT + " In brackets: what a key would have cost, on a subscription."), column("by pagein", "", RECKONED), column("prompt tokens"), column("from cache", "", BY_CACHE), column("epochs", "", "Times that the window was rewritten, to take old content out in one batch."), column("recalls", "", "Calls of the model's to pagein's own tools."), column("trouble", "brief"), column("model", "brief")];
  const rows = state.sessions.map((one) => ({ key: one.name, title: one.name, class: one.name === opened ? "open" : "", cells: [made("a", { href: "#" + encodeURIComponent(one.name), "aria-current": one.name === opened ? "true" : "" }, title_of(one.name) || (waits_for_title() ? "…" : one.name) || "(no name)"), ago(one.last, state.now), whole(one.calls), one.cost ? dollars(one.usd) : "–", one.unbilled && !one.cost ? "(" + amount(one.unbilled) + ")" : amount(one.cost), one.usd ? saving(one.usd, one.saved_usd) : saving(one.cost, one.saved), amount(prompt(one)), share(one.read, prompt(one)), one.epochs, one.recalls, trouble_of(one), one.model] }));
  return [tiles([...bill, ...trouble]), made("h2", null, "Sessions"), table("Sessions", columns, rows, "none")];
}
function trouble_of(one) {
  const told = [one.passed && whole(one.passed) + " untouched", one.errors && plural(one.errors, "error") + " upstream", one.failures && plural(one.failures, "failure"), one.shortfall && amount(one.shortfall) + " not in cache"];
  return told.filter(Boolean).join(", ");
}
const KINDS = { tools: "tool schemas", images: "images", other: "other", user: "user", assistant: "assistant", thinking: "thinking", arguments: "tool arguments", results: "results, whole", previews: "previews", stubs: "stubs", system: "system" };
const colour = (kind) => ["results", "previews", "stubs", "arguments", "assistant", "thinking", "user", "tools", "system"].includes(kind) ? kind : "other";
function composition(window) {
  const total = Object.values(window).reduce((sum, size) => sum + size, 0);
  const sorted = Object.entries(window).sort((one, other) => other[1] - one[1]);
  const parts = sorted.map(([kind, size]) => { const part = made("div", { "data-key": kind, class: "k-" + colour(kind), title: (KINDS[kind] || kind) + " " + share(size, total) }); part.style.flexGrow = String(size); return part; });
  const words = sorted.map(([kind, size]) => [colour(kind), (KINDS[kind] || kind) + " " + amount(size) + " (" + share(size, total) + ")"]);
  return total ? [made("h3", null, "What fills the window"), made("p", { class: "soft" }, whole(total) + " characters of messages as the model is shown them now; system prompt and tool schemas come on top."), made("div", { class: "bar", role: "img", "aria-label": words.map((one) => one[1]).join(", ") }, ...parts), keys(words)] : [];
}
function picture(calls) {
  const asked = calls.filter((call) => prompt(call)).reverse();
  if (asked.length < 2) return [];
  const most = Math.max(...asked.map(prompt)), height = (tokens) => TALLEST * tokens / most;
  const bars = asked.map((call, index) => {
    const told = clock(call.at) + ": " + whole(call.read) + " read, " + whole(call.written) + " written, " + whole(call.fresh) + " fresh" + (call.epoch ? "; epoch: " + call.epoch : "");
    const bar = drawn("g", {}, drawn("title", {}, told));
    let top = TALLEST + 10;
    for (const kind of ["read", "written", "fresh"]) {
      top -= height(call[kind]);
      bar.append(drawn("rect", { class: kind, x: index * WIDE, y: top.toFixed(2), width: WIDE - 1, height: height(call[kind]).toFixed(2) }));
    }
    if (call.epoch) bar.append(drawn("rect", { class: "epoch", x: index * WIDE, y: 0, width: WIDE - 1, height: 5 }));
    return bar;
  });
  const about = "Prompts of the last " + asked.length + " calls, the oldest left; the tallest has " + whole(most) + " tokens" + (asked.some((call) => call.recalls) ? ". Where the gateway answered recalls within a call, the bar has the prompts of all its requests" : "");
  return [made("h3", null, "What each call sent"), drawn("svg", { viewBox: "0 0 " + Math.max(asked.length, 40) * WIDE + " " + (TALLEST + 10), preserveAspectRatio: "none", role: "img", "aria-label": about }, ...bars), keys([["read", "read from the cache"], ["written", "written into it"], ["fresh", "at the full price"], ["epoch", "an epoch opened"]]), made("p", { class: "soft" }, about + ".")];
}
function verdict(one) {
  const [cost, saved] = one.usd ? [one.usd, one.saved_usd] : [one.cost, one.saved], money = (value) => one.usd ? dollars(value) : amount(value) + " BIT";
  const kept = one.keep_alives ? ", of which " + money(one.keep_alive_cost * cost / one.cost) + " for " + plural(one.keep_alives, "keep-alive request") : "";
  const paid = "These calls cost " + money(cost) + kept + ". ";
  if (one.unbilled > 0) return (one.cost > 0 ? paid : "") + "With an API key " + (one.cost > 0 ? "its other" : "these") + " calls would have cost " + amount(one.unbilled) + " BIT. On a subscription nothing is billed by the token, and pagein changes nothing: it only measures.";
  if (!(one.cost > 0)) return one.passed ? "Its calls passed untouched: nothing is reckoned for them." : "No answer told what it cost.";
  if (last && !last.curating) return paid + "pagein only measures here.";
  if (Math.abs(saved) < 0.0005 * cost) return paid + "Nothing that pagein did has changed the bill yet.";
  if (saved < 0) return paid + "By pagein's reckoning that is " + money(-saved) + " more than with nothing taken out: an investment that has not come back yet.";
  return paid + "By pagein's reckoning they would have cost " + money(cost + saved) + " with nothing taken out: " + share(saved, cost + saved) + " less. It is an estimate, recalls included; the bill itself is from the provider's usage.";
}
const happened = (call) => [call.passed && "passed untouched: " + call.passed, call.failure && "failure of pagein: " + call.failure, call.foreign && "the client changed " + call.foreign, call.epoch && "epoch: " + call.epoch, call.recalls && plural(call.recalls, "recall") + " answered", call.explanation && "cache short of " + whole(call.shortfall) + " tokens: " + call.explanation, !call.finished && "did not come to its end"].filter(Boolean).join("; ");
function doctor(calls, when = clock) {
  const short = calls.filter((call) => call.shortfall || call.told);
  const blame = { client: "the client", us: "pagein", provider: "the provider", nobody: "nobody" };
  const rows = short.slice(0, SHOWN).map((call) => ({ cells: [when(call.at), whole(call.shortfall), blame[call.who] || call.who, [call.explanation, call.told && "the provider says: " + call.told].filter(Boolean).join("; ")] }));
  return [made("h3", null, "Where the cache fell short"), table("Where the cache fell short", [column("at"), column("tokens"), column("whose doing", "plain"), column("why", "wide")], rows, "Each of the calls below read from its cache what was there to be read.")];
}
const hardly = (reasons) => [...new Set(reasons)].map((reason) => plural(reasons.filter((one) => one === reason).length, "read") + " that an edit will hardly quote (" + reason + ")");
function epochs(inside, earlier) {
  const rows = inside.epochs.map((epoch) => ({ key: "epoch " + epoch.number, cells: [epoch.number, clock(epoch.at), [epoch.reason, ...hardly(epoch.unlikely)].join("; "), epoch.frontier, epoch.out, epoch.back, amount(epoch.tokens)] }));
  return [made("h3", null, "Epochs"), table("Epochs", [column("number"), column("at"), column("why", "wide"), column("from message"), column("results out"), column("back"), column("tokens out")], rows, earlier ? "None since the client began its window anew, as after a compaction; those before are below." : "None was opened: nothing old enough was worth a rewrite yet. Big outputs may have entered as previews without one.")];
}
function objects(inside) {
  const columns = [column("stands as", "plain"), column("tool", "plain"), column("what", "wide"), column("tokens", "", "Of the whole text, estimated."), column("id", "plain"), column("marks", "plain", "The user's hand on it, and what protects it.")];
  const rows = inside.objects.slice().reverse().map((item) => ({ key: item.call, cells: [item.form, item.tool, item.description, whole(item.tokens), made("code", null, item.id || item.call), item.marks.join(" ")] }));
  return [made("h3", null, "Tool results, newest first"), made("p", { class: "soft" }, ...prose("`pagein peek ID` shows one that left, `pagein pin`, `drop` and `restore` take the session's name and an id; or choose the result in the window above.")), table("Tool results", columns, rows.slice(0, SHOWN), "none"), ...older_rows("Older tool results", columns, rows)];
}
function calls(list) {
  const columns = [column("at"), column("format", "plain"), column("status"), column("read"), column("written"), column("fresh"), column("output"), column("cost, BIT"), column("dollars"), column("held, ms", "", "How long pagein kept the request before it went on."), column("replaced", "", "Results that stood in it as previews, stubs or markers."), column("what happened", "wide")];
  const rows = list.map((call) => ({ key: call.at + " " + call.took_ms, cells: [clock(call.at), call.route, call.status ? made("span", { class: call.status >= 400 ? "bad" : "" }, String(call.status)) : "client gone", whole(call.read), whole(call.written), whole(call.fresh), whole(call.output), call.cost === null ? "–" : amount(call.cost), dollars(call.usd), call.added_ms.toFixed(1), call.replaced, happened(call)] }));
  return [made("h3", null, "Calls, newest first"), table("Calls", columns, rows.slice(0, SHOWN), "none"), ...older_rows("Older calls", columns, rows)];
}
const SOURCES = { history: "told apart by what it says" };
function told(one, found) {
  const head = [made("h2", { tabindex: "-1" }, "Session " + (one.name || "(no name)")), made("p", { class: "soft" }, [title_of(one.name), one.model, SOURCES[one.source] || "named by " + one.source, "began at " + clock(one.began)].filter(Boolean).join(" · ")), made("p", null, verdict(one))];
  const steers = found.inside && last.curating && !passes(one);
  const drawn_prompt = seen.prompt && !seen.prompt.error;
  const inner = found.inside ? drawn_prompt ? [] : composition(found.inside.window) : [made("p", { class: "soft" }, found.why)];
  const rest = found.inside ? [...(steers ? [...epochs(found.inside, (seen.history || []).some((call) => call.epoch)), ...pay_back(seen.history || [])] : []), ...objects(found.inside)] : [];
  return [...head, ...(steers ? [orders(), file_orders()] : []), ...prompt_picture(found), ...(drawn_prompt ? part_view(steers) : []), ...inner, ...picture(found.calls), ...doctor(found.calls), ...rest, ...calls(found.calls)];
}

async function asked(path) {
  const answer = await fetch(path);
  if (answer.status === 401) throw new Error("open the link that pagein serve printed");
  return answer.json();
}
function about(state) {
  const pill = state.off ? ["off: all passes untouched (" + state.off + ")", "bad"] : state.curating ? ["on", "good"] : ["measuring only", "warn"];
  byId("state").textContent = pill[0];
  byId("state").className = "pill " + pill[1];
  byId("about").textContent = "version " + state.version + " · since " + clock(state.began) + " · " + Object.entries(state.upstreams).map(([name, url]) => name + " → " + url).join(", ");
  show(byId("notices"), ...state.notices.map((text) => made("p", { class: "notice" }, ...prose(text.charAt(0).toUpperCase() + text.slice(1)))));
  byId("search-part").hidden = !state.curating;
}
function order(sessions, now) {
  const live = (one) => now - one.last < 300 ? 1 : 0;
  return sessions.slice().sort((one, other) => live(other) - live(one) || other.began - one.began);
}
async function refresh() {
  if (document.hidden) return;
  if (busy) { again = true; return; }
  busy = true;
  again = false;
  try {
    const state = await asked("/api/state");
    state.sessions = order(state.sessions, state.now);
    if (!opened && !shownOnce && state.sessions.length) opened = state.sessions.reduce((one, other) => other.last > one.last ? other : one).name;
    last = state;
    about(state);
    await ask_titles(state.sessions);
    show(byId("overview"), ...(state.sessions.length ? overview(state) : nothingYet(state)));
    const wanted = opened, one = state.sessions.find((session) => session.name === wanted);
    const found = wanted ? await asked("/api/session?name=" + encodeURIComponent(wanted)) : null;
    if (found && found.calls) await inspected(wanted, found.calls);
    ask_stored(false);
    if (wanted === opened) {
      const gone = wanted ? [made("p", { class: "soft" }, "No session “" + wanted + "” was seen since this gateway started, and the store has none.")] : [];
      redraw = () => show(byId("inside"), ...(found && found.calls ? one ? told(one, found) : past_session(wanted, found) : gone));
      redraw();
      const head = byId("inside").querySelector("h2");
      if (follows && head) { follows = false; head.focus({ preventScroll: true }); head.scrollIntoView({ block: "start" }); } // the chosen session stands above the list
    }
    shownOnce = true;
    show(byId("footer"), ...(state.sessions.length ? [made("details", null, made("summary", null, "Point another agent here"), ...setup(state.setup))] : []), made("p", null, "Counted since this gateway started. ", made("a", { href: "/metrics" }, "Figures for Prometheus"), " · ", made("a", { href: "/healthz" }, "health")));
    document.body.classList.remove("stale");
  } catch (problem) {
    byId("state").textContent = problem instanceof TypeError ? "the gateway does not answer" : problem.message;
    byId("state").className = "pill bad";
    document.body.classList.add("stale");
  } finally {
    busy = false;
  }
  if (opened !== named() && location.hash) { opened = named(); refresh(); } else if (again) refresh();
}
function hits(found, question) {
  if (found.error) return [made("p", { class: "bad" }, found.error)];
  const rows = found.hits.map((hit) => ({ cells: [made("code", null, hit.id), hit.name, hit.line, made("pre", null, hit.text)] }));
  const most = found.hits.length >= found.limit ? " These are the first " + found.limit + "." : "";
  return [made("p", { class: "soft" }, plural(rows.length, "place") + " with “" + question + "”." + most), table("Places", [column("id", "plain"), column("name", "wide"), column("line"), column("text", "wide")], rows, "Nothing that is stored holds it. What stands whole in a window is not stored.")];
}
byId("search").addEventListener("submit", async (event) => {
  event.preventDefault();
  const question = byId("question").value.trim();
  if (!question) return;
  try {
    show(byId("hits"), ...hits(await asked("/api/search?q=" + encodeURIComponent(question)), question));
  } catch (problem) {
    show(byId("hits"), made("p", { class: "bad" }, "The gateway does not answer."));
  }
});
addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || event.target instanceof HTMLInputElement || !last) return;
  event.preventDefault();
  byId("question").focus();
});
addEventListener("hashchange", () => { opened = named(); follows = true; refresh(); });
