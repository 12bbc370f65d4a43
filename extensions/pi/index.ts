/**
 * pagein for pi. Forwards pi's events to `pagein pi`, and applies what it answers. Nothing is decided here, and whatever
 * fails leaves pi as it is without pagein.
 */

import type { ExtensionAPI, ExtensionCommandContext, ExtensionContext, Theme } from "@mariozechner/pi-coding-agent";
import { showOverlay } from "./overlay.ts";
import type { Answer, Insert, PiTool, Row } from "./protocol.ts";
import { PageinSession } from "./session.ts";

const RLM_WORDS = "on, off, status, cancel, config, inspect, externalize, store, trace, prompt, clear, resume";
const COMMANDS = {
	"readcache-status": "Show what pagein knows of the files that the model has read",
	"readcache-refresh": "Show a file in full at its next read: PATH [FIRST-LAST]",
	rlm: `Paging of old results: ${RLM_WORDS}`,
};
/** Characters of a call's arguments on pi's screen. */
const LONGEST_CALL = 200;
const TOOL_SECONDS = 120;
/** Children may take longer than a look-up; pagein itself ends them earlier, by its settings. */
const CHILD_SECONDS = 3600;
const ASKS_CHILDREN = /^rlm_(query|batch|extract)$/;
/** How headers for a gateway begin, which sends none of them on. */
const OURS = "x-pagein-";
/** Where a copy of the extension says that it is at work: pi may find one in its own folder and one in the project's. */
const AT_WORK = Symbol.for("pagein.pi");

/** Fields by which a request asks its provider to take earlier results out, after the payload of another extension, say. */
const EDITING = ["context_management", "truncation"];

type Content = { type: string; text?: string };

export default function pagein(pi: ExtensionAPI): void {
	try {
		const there = globalThis as { [AT_WORK]?: boolean };
		if (there[AT_WORK]) return;
		there[AT_WORK] = true;
		attach(pi);
	} catch {
		// an extension that throws stops pi from starting
	}
}

function attach(pi: ExtensionAPI): void {
	const offered = new Map<string, PiTool>();
	const registered = new Set<string>();
	let edits = new Map<string, string>();
	let inserts: Insert[] = [];
	let hasToldCompaction = false;
	let edited: Row = {};
	let tui: typeof import("@mariozechner/pi-tui") | undefined;

	const session = new PageinSession(async (welcome, ctx) => {
		tui ??= await import("@mariozechner/pi-tui").catch(() => undefined);
		for (const tool of welcome.tools) {
			offered.set(tool.name, tool);
			if (tool.active) register(tool);
		}
		if (welcome.read !== null) await extendRead(welcome.read, ctx);
	});

	/** Gives pi's own `read` further arguments. Without them it is pi's own tool that answers. */
	async function extendRead(more: PiTool, ctx: ExtensionContext): Promise<void> {
		if (registered.has(more.name)) return;
		registered.add(more.name);
		const { createReadToolDefinition } = await import("@mariozechner/pi-coding-agent");
		const own = createReadToolDefinition(ctx.cwd);
		const added = more.parameters.properties as Row;
		const parameters = { ...own.parameters, properties: { ...own.parameters.properties, ...added } };
		pi.registerTool({
			...own,
			description: own.description + more.description,
			parameters: parameters as typeof own.parameters,
			async execute(id, params, signal, update, context) {
				const asked = Object.entries(params).filter(
					([name, value]) => name in added && !(name === "mode" && value === "file"),
				);
				if (asked.length === 0) return own.execute(id, params, signal, update, context);
				const call = { id, name: own.name, input: params as Row };
				const found = await session.demand("tool", context, { call }, { seconds: TOOL_SECONDS, signal });
				if (found.level === "error") throw new Error(found.text);
				return { content: [{ type: "text", text: found.text }], details: found.details as never };
			},
		});
	}

	function register(tool: PiTool): void {
		if (registered.has(tool.name)) return;
		registered.add(tool.name);
		const Text = tui?.Text;
		pi.registerTool({
			name: tool.name,
			label: tool.label,
			description: tool.description,
			...(tool.snippet ? { promptSnippet: tool.snippet } : {}),
			parameters: tool.parameters as never,
			...(Text && {
				renderCall(args: Row, theme: Theme) {
					const told = theme.fg("muted", spelled(args));
					return new Text(`${theme.fg("toolTitle", theme.bold(tool.label))} ${told}`, 0, 0);
				},
			}),
			async execute(id, params, signal, _update, ctx) {
				const call = { id, name: tool.name, input: params as Row };
				const seconds = ASKS_CHILDREN.test(tool.name) ? CHILD_SECONDS : TOOL_SECONDS;
				const found = await session.demand("tool", ctx, { call }, { seconds, signal });
				take(found, ctx);
				if (found.level === "error") throw new Error(found.text);
				return { content: [{ type: "text", text: found.text }], details: found.details };
			},
		});
	}

	/** Tells other extensions; docs/reference/pi.md has the channels. A listener that fails changes nothing here. */
	function announce(channel: string, data: Row): void {
		try {
			pi.events.emit(`pagein:${channel}`, data);
		} catch {
			// the listener's own business
		}
	}

	/** Carries out what an answer asks for: entries in the session, and tools switched on or off. */
	function take(answer: Answer, ctx: ExtensionContext): void {
		for (const entry of answer.entries) pi.appendEntry(entry.type, entry.data);
		activate(answer.tools);
		session.show(ctx, answer.widget);
	}

	/** Makes these of pagein's tools the active ones. Tells whether that changed anything. */
	function activate(tools: string[] | null): boolean {
		if (tools === null) return false;
		for (const name of tools) {
			const tool = offered.get(name);
			if (tool) register(tool);
		}
		const active = pi.getActiveTools();
		const wanted = [...active.filter((name) => !offered.has(name)), ...tools];
		if (wanted.length === active.length && wanted.every((name) => active.includes(name))) return false;
		pi.setActiveTools(wanted);
		return true;
	}

	/** Switches on the tools that this branch has. Gives what belongs to the system prompt, and whether its own tools changed. */
	async function begin(ctx: ExtensionContext): Promise<{ prompt: string; changed: boolean }> {
		await session.start(ctx);
		const model = ctx.model;
		const found = await session.ask("begin", ctx, { address: model?.baseUrl ?? "", usage: usage(ctx) });
		if (model !== undefined && found !== undefined) putHeaders(model, found.headers);
		session.show(ctx, found?.widget ?? null);
		if (found?.notice && ctx.hasUI) ctx.ui.notify(found.notice, "info");
		return { prompt: found?.prompt ?? "", changed: activate(found?.tools ?? null) };
	}

	for (const [name, description] of Object.entries(COMMANDS)) {
		pi.registerCommand(name, {
			description,
			getArgumentCompletions: (prefix: string) => (name === "rlm" ? wordsOfRlm(prefix) : null),
			async handler(args: string, ctx: ExtensionCommandContext) {
				try {
					const found = await session.demand("command", ctx, { name, args }, { seconds: TOOL_SECONDS });
					take(found, ctx);
					if (found.overlay !== "" && (await showOverlay(ctx, found.overlay, found.text))) return;
					show(ctx, found.text, found.level);
				} catch (problem) {
					show(ctx, `/${name}: ${problem instanceof Error ? problem.message : problem}`, "error");
				}
			},
		});
	}

	pi.on("session_start", (_event, ctx) => {
		begin(ctx).catch(() => undefined);
	});

	pi.on("model_select", (_event, ctx) => {
		begin(ctx).catch(() => undefined);
	});

	pi.on("session_tree", (_event, ctx) => {
		begin(ctx).catch(() => undefined);
	});

	pi.on("before_agent_start", async (event, ctx) => {
		try {
			const { prompt, changed } = await begin(ctx);
			if (prompt === "") return undefined;
			const own = changed ? ctx.getSystemPrompt() : event.systemPrompt; // pi made it before the tools changed
			return { systemPrompt: `${own}\n\n${prompt}` };
		} catch {
			return undefined;
		}
	});

	pi.on("session_before_compact", async (_event, ctx) => {
		const verdict = await session.ask("compact", ctx, { usage: usage(ctx) });
		if (!verdict?.cancel) return undefined;
		announce("compaction", { reason: verdict.reason });
		if (ctx.hasUI && !hasToldCompaction) ctx.ui.notify(verdict.reason, "info");
		hasToldCompaction = true;
		return { cancel: true };
	});

	pi.on("tool_call", async (event, ctx) => {
		try {
			if (!session.watched?.calls.includes(event.toolName)) return undefined;
			const call = { id: event.toolCallId, name: event.toolName, input: event.input as Row };
			const verdict = await session.ask("tool_call", ctx, { call });
			if (verdict?.block) return { block: true, reason: verdict.block };
			if (verdict?.input) Object.assign(event.input, verdict.input);
		} catch {
			// a handler that throws blocks the call
		}
		return undefined;
	});

	pi.on("before_provider_request", (event) => {
		const asked = (event.payload ?? {}) as Row;
		edited = Object.fromEntries(EDITING.filter((name) => name in asked).map((name) => [name, asked[name]]));
	});

	pi.on("tool_result", async (event, ctx) => {
		if (!session.watched?.results.includes(event.toolName)) return undefined;
		const content = event.content as Content[];
		if (content.some((one) => one.type !== "text")) return undefined;
		const call = { id: event.toolCallId, name: event.toolName, input: event.input as Row };
		const text = content.map((one) => one.text ?? "").join("");
		const told = { call, text, details: event.details ?? null, error: event.isError, edited };
		const patch = await session.ask("tool_result", ctx, told, { signal: ctx.signal });
		if (patch?.failure) session.tell(ctx, `pagein: ${patch.failure}`);
		if (patch === undefined || (patch.text === null && patch.details === null)) return undefined;
		const record = patch.details?.readcache;
		announce("answer", { call: call.id, tool: call.name, changed: patch.text !== null, record });
		return {
			...(patch.text === null ? {} : { content: [{ type: "text" as const, text: patch.text }] }),
			...(patch.details === null ? {} : { details: patch.details }),
		};
	});

	pi.on("context", async (event, ctx) => {
		const asked = { usage: usage(ctx), edited };
		const found = session.watched?.context ? await session.ask("context", ctx, asked) : undefined;
		if (found?.failure) session.tell(ctx, `pagein: ${found.failure}`);
		if (found?.reset) {
			edits = new Map();
			inserts = [];
		}
		for (const [id, text] of Object.entries(found?.results ?? {})) edits.set(id, text);
		inserts.push(...(found?.inserts ?? []));
		session.show(ctx, found?.widget ?? null);
		const told = found && { results: Object.keys(found.results), inserts: found.inserts.length, anew: found.reset };
		if (told && (told.results.length > 0 || told.inserts > 0)) announce("window", told);
		if (edits.size === 0 && inserts.length === 0) return undefined;
		const messages = event.messages.flatMap((message) => {
			const isResult = message.role === "toolResult";
			const name = isResult ? message.toolCallId : message.role === "user" ? String(message.timestamp) : "";
			const behind = inserts.filter((one) => one.after === name && name !== "");
			const told = behind.map(({ text }) => ours(text, message.timestamp));
			const text = isResult ? edits.get(message.toolCallId) : undefined;
			if (!isResult || text === undefined) return [message, ...told];
			const others = message.content.filter((one) => one.type !== "text");
			return [{ ...message, content: [{ type: "text" as const, text }, ...others] }, ...told];
		});
		const front = inserts.filter((one) => one.after === "");
		const begun = event.messages[0]?.timestamp ?? 0;
		return { messages: [...front.map(({ text }) => ours(text, begun)), ...messages] };
	});

	pi.on("session_shutdown", async () => {
		(globalThis as { [AT_WORK]?: boolean })[AT_WORK] = false;
		await session.leave();
	});
}

/** Gives a model's requests these headers in place of those that pagein gave them before. */
function putHeaders(model: { headers?: Record<string, string> }, headers: Record<string, string>): void {
	const others = Object.entries(model.headers ?? {}).filter(([name]) => !name.startsWith(OURS));
	if (others.length === 0 && Object.keys(headers).length === 0) delete model.headers;
	else model.headers = { ...Object.fromEntries(others), ...headers };
}

/** The arguments of a call on a line. Control characters are escaped. */
function spelled(args: Row | undefined): string {
	const told = Object.entries(args ?? {}).map(([name, value]) => `${name}=${JSON.stringify(value)}`);
	const line = told.join(" ");
	return line.length > LONGEST_CALL ? `${line.slice(0, LONGEST_CALL)} ...` : line;
}

/** What may follow `/rlm`; null behind a whole word, where Enter is to send it. */
function wordsOfRlm(prefix: string): { value: string; label: string }[] | null {
	const found = RLM_WORDS.split(", ").filter((word) => word.startsWith(prefix) && word !== prefix);
	return found.length > 0 ? found.map((word) => ({ value: word, label: word })) : null;
}

/** A text of pagein's own, as a message of the user. */
function ours(text: string, timestamp: number) {
	return { role: "user" as const, content: [{ type: "text" as const, text }], timestamp };
}

/** How full pi says that the window is; null while it does not know. */
function usage(ctx: ExtensionContext): { tokens: number; window: number } | null {
	const found = ctx.getContextUsage();
	if (!found || found.tokens === null) return null;
	return { tokens: found.tokens, window: found.contextWindow };
}

function show(ctx: ExtensionContext, text: string, level: Answer["level"]): void {
	if (ctx.hasUI) ctx.ui.notify(text, level);
	else process.stdout.write(`${text}\n`);
}
