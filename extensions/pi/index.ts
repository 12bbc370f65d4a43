/**
 * pagein for pi. Forwards pi's events to `pagein pi`, and applies what it answers. Nothing is decided here, and whatever
 * fails leaves pi as it is without pagein.
 */

import type { ExtensionAPI, ExtensionCommandContext, ExtensionContext } from "@mariozechner/pi-coding-agent";
import type { Answer, OfferedTool, Row } from "./protocol.ts";
import { PageinSession } from "./session.ts";

const COMMANDS = {
	"readcache-status": "Show what pagein knows of the files that the model has read",
	"readcache-refresh": "Show a file in full at its next read: PATH [FIRST-LAST]",
	rlm: "Paging of old results: on, off, status, inspect",
};
const TOOL_SECONDS = 120;
/** Where a copy of the extension says that it is at work: pi may find one in its own folder and one in the project's. */
const AT_WORK = Symbol.for("pagein.pi");

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
	const offered = new Map<string, OfferedTool>();
	const registered = new Set<string>();
	let edits = new Map<string, string>();

	const session = new PageinSession(async (welcome, ctx) => {
		for (const tool of welcome.tools) {
			offered.set(tool.name, tool);
			if (tool.active) register(tool);
		}
		if (welcome.read !== null) await extendRead(welcome.read, ctx);
	});

	/** Gives pi's own `read` further arguments. Without them it is pi's own tool that answers. */
	async function extendRead(more: OfferedTool, ctx: ExtensionContext): Promise<void> {
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

	function register(tool: OfferedTool): void {
		if (registered.has(tool.name)) return;
		registered.add(tool.name);
		pi.registerTool({
			name: tool.name,
			label: tool.label,
			description: tool.description,
			...(tool.snippet ? { promptSnippet: tool.snippet } : {}),
			parameters: tool.parameters as never,
			async execute(id, params, signal, _update, ctx) {
				const call = { id, name: tool.name, input: params as Row };
				const found = await session.demand("tool", ctx, { call }, { seconds: TOOL_SECONDS, signal });
				take(found);
				if (found.level === "error") throw new Error(found.text);
				return { content: [{ type: "text", text: found.text }], details: found.details };
			},
		});
	}

	/** Carries out what an answer asks for: entries in the session, and tools switched on or off. */
	function take(answer: Answer): void {
		for (const entry of answer.entries) pi.appendEntry(entry.type, entry.data);
		if (answer.tools === null) return;
		for (const name of answer.tools) {
			const tool = offered.get(name);
			if (tool) register(tool);
		}
		const others = pi.getActiveTools().filter((name) => !offered.has(name));
		pi.setActiveTools([...others, ...answer.tools]);
	}

	for (const [name, description] of Object.entries(COMMANDS)) {
		pi.registerCommand(name, {
			description,
			async handler(args: string, ctx: ExtensionCommandContext) {
				try {
					const found = await session.demand("command", ctx, { name, args }, { seconds: TOOL_SECONDS });
					take(found);
					show(ctx, found.text, found.level);
				} catch (problem) {
					show(ctx, `/${name}: ${problem instanceof Error ? problem.message : problem}`, "error");
				}
			},
		});
	}

	pi.on("session_start", (_event, ctx) => {
		void session.start(ctx);
	});

	pi.on("before_agent_start", async (_event, ctx) => {
		await session.start(ctx);
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

	pi.on("tool_result", async (event, ctx) => {
		if (!session.watched?.results.includes(event.toolName)) return undefined;
		const content = event.content as Content[];
		if (content.some((one) => one.type !== "text")) return undefined;
		const call = { id: event.toolCallId, name: event.toolName, input: event.input as Row };
		const text = content.map((one) => one.text ?? "").join("");
		const told = { call, text, details: event.details ?? null, error: event.isError };
		const patch = await session.ask("tool_result", ctx, told, { signal: ctx.signal });
		if (patch?.failure) session.tell(ctx, `pagein: ${patch.failure}`);
		if (patch === undefined || (patch.text === null && patch.details === null)) return undefined;
		return {
			...(patch.text === null ? {} : { content: [{ type: "text" as const, text: patch.text }] }),
			...(patch.details === null ? {} : { details: patch.details }),
		};
	});

	pi.on("context", async (event, ctx) => {
		const found = session.watched?.context ? await session.ask("context", ctx, {}) : undefined;
		if (found?.failure) session.tell(ctx, `pagein: ${found.failure}`);
		if (found?.reset) edits = new Map();
		for (const [id, text] of Object.entries(found?.results ?? {})) edits.set(id, text);
		if (edits.size === 0) return undefined;
		const messages = event.messages.map((message) => {
			const text = message.role === "toolResult" ? edits.get(message.toolCallId) : undefined;
			if (message.role !== "toolResult" || text === undefined) return message;
			return {
				...message,
				content: [{ type: "text" as const, text }, ...message.content.filter((one) => one.type !== "text")],
			};
		});
		return { messages };
	});

	pi.on("session_shutdown", async () => {
		(globalThis as { [AT_WORK]?: boolean })[AT_WORK] = false;
		await session.leave();
	});
}

function show(ctx: ExtensionContext, text: string, level: Answer["level"]): void {
	if (ctx.hasUI) ctx.ui.notify(text, level);
	else process.stdout.write(`${text}\n`);
}
