"use strict";
// The trees of calls to child models, asked for often while one runs.
const CHILDREN_EVERY = 700;
const MARKS = { running: "…", success: "✓", error: "✗", timeout: "⏱", cancelled: "–" };
let asking_children = false, children_busy = false;

function child_tree(one) {
  const failed = one.failed ? ", " + whole(one.failed) + " without answer" : "";
  const head = made("p", null, made("b", null, one.kind), " “" + one.question + "”: " + whole(one.done) + " of " + whole(one.total) + failed + "; " + one.actual + " of at most " + one.estimated + " ");
  if (one.running) head.append(made("button", { type: "button", "data-act": "cancel-children", "data-operation": one.id, title: "No child is asked any more; what is answered is kept" }, "Cancel"));
  const rows = one.calls.map((call) => ({ key: call.call, cells: [made("span", { class: call.status === "success" || call.status === "running" ? "" : "bad" }, "  ".repeat(call.level) + (call.level ? "└ " : "") + (MARKS[call.status] || call.status)), call.targets.join(", ") + (call.more ? " and " + whole(call.more) + " more" : ""), call.doing, call.model, call.seconds === null ? "" : call.seconds.toFixed(1), whole(call.tokens), call.usd === null ? "–" : dollars(call.usd)] }));
  const columns = [column("", "plain"), column("about", "wide"), column("does", "wide"), column("model", "plain"), column("seconds"), column("tokens"), column("dollars", "", "– for a model without a price.")];
  const parts = [head, table("Calls of " + one.id, columns, rows, "No child was asked yet.")];
  if (one.hidden) parts.push(made("p", { class: "soft" }, whole(one.hidden) + " more calls"));
  return one.running ? made("div", { class: "card", "data-key": one.id }, ...parts) : made("details", { class: "card", "data-key": one.id }, made("summary", null, one.kind + " “" + one.question + "”: " + whole(one.done) + " of " + whole(one.total) + failed + "; " + one.actual), ...parts.slice(1));
}
async function refresh_children() {
  if (document.hidden || children_busy) return;
  children_busy = true;
  try {
    const found = await asked("/api/children");
    asking_children = found.operations.some((one) => one.running);
    show(byId("children"), ...(found.operations.length ? [made("h2", null, asking_children ? "Children at work" : "Children"), ...found.operations.map(child_tree)] : []));
  } catch (problem) {
    asking_children = false; // the rest of the page says so
  } finally {
    children_busy = false;
  }
}
document.addEventListener("click", async (event) => {
  const button = event.target instanceof Element ? event.target.closest("[data-act=cancel-children]") : null;
  if (!button) return;
  await fetch("/api/children/cancel", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ operation: button.dataset.operation }) });
  refresh_children();
});
refresh_children();
setInterval(() => { if (asking_children) refresh_children(); }, CHILDREN_EVERY);
setInterval(refresh_children, EVERY);
