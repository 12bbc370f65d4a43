"use strict";
// The page begins, and follows the gateway's events; it asks by itself while there are none.
let heard = 0;
const events = new EventSource("/api/events");
events.onmessage = () => { heard = Date.now(); refresh(); };
document.addEventListener("visibilitychange", refresh);
refresh();
setInterval(() => { if (events.readyState !== EventSource.OPEN || Date.now() - heard > QUIET) { heard = Date.now(); refresh(); } else ask_stored(false); }, EVERY);
