/** One session of pi with its `pagein pi` process: starts it when it is needed, and again when it has ended. */

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { ExtensionContext } from "@mariozechner/pi-coding-agent";
import { Bridge, BridgeEnded } from "./bridge.ts";
import {
	type BranchDelta,
	type Method,
	PROTOCOL,
	type Replies,
	type Row,
	UNKNOWN_ENTRY,
	VERSION,
	type Welcome,
} from "./protocol.ts";

const LONGEST_REST = 60;

interface Launch {
	/** The command that starts pagein. */
	command: string[];
	/** Seconds that an answer may take before pi goes on without it. */
	patience: number;
}

/** Reads how pagein is started, as `pagein install pi` wrote it. */
function launch(): Launch {
	const usual: Launch = { command: ["pagein", "pi"], patience: 5 };
	try {
		return { ...usual, ...JSON.parse(readFileSync(fileURLToPath(new URL("launch.json", import.meta.url)), "utf8")) };
	} catch {
		return usual;
	}
}

/** How long a request may take, in seconds, and what cancels it. */
export interface More {
	seconds?: number;
	signal?: AbortSignal | undefined;
}

export class PageinSession {
	private readonly launch = launch();
	private bridge: Bridge | undefined;
	private greeting: Promise<Welcome> | undefined;
	private readonly known = new Set<string>();
	private failures = 0;
	private restsUntil = 0;
	private refused = false;
	private isGreeted = false;
	private hasTold = false;
	private why = "";
	private shown = "";

	/** `welcomed` is called with each greeting, before anything else is asked. */
	constructor(private readonly welcomed: (welcome: Welcome, ctx: ExtensionContext) => void | Promise<void>) {}

	/** What pagein wants to be told of; undefined before the first greeting. */
	watched: Welcome["watched"] | undefined;

	/** Starts pagein, if it does not run. Never throws. */
	async start(ctx: ExtensionContext): Promise<void> {
		const begun = this.greet(ctx).then(
			() => undefined,
			(problem) => this.fail(ctx, problem),
		);
		// after a failure nobody waits for a process that may hang as well
		if (this.failures === 0) await begun;
	}

	/** Asks with what is new on the branch; undefined if pagein cannot answer. Never throws. */
	async ask<M extends Method>(
		method: M,
		ctx: ExtensionContext,
		params: Row,
		more: More = {},
	): Promise<Replies[M] | undefined> {
		try {
			if (this.failures > 0 && !this.isGreeted) {
				void this.start(ctx);
				return undefined;
			}
			return await this.demand(method, ctx, params, more);
		} catch {
			return undefined;
		}
	}

	/** As `ask`, but waits for a process that starts, and throws what went wrong. */
	async demand<M extends Method>(method: M, ctx: ExtensionContext, params: Row, more: More = {}): Promise<Replies[M]> {
		for (let again = this.failures === 0; ; again = false) {
			try {
				await this.greet(ctx);
				const bridge = this.bridge;
				if (bridge === undefined) throw new BridgeEnded("it does not run", false);
				const told = { branch: this.news(ctx), ...params };
				const found = await bridge.call(method, told, more.seconds ?? this.launch.patience, more.signal);
				this.failures = 0;
				return found;
			} catch (problem) {
				const isLost = problem instanceof BridgeEnded && !problem.late;
				const isUnknown = problem instanceof Error && problem.message.startsWith(UNKNOWN_ENTRY);
				if (isUnknown) this.known.clear();
				if (again && (isLost || isUnknown)) continue;
				this.fail(ctx, problem);
				throw problem;
			}
		}
	}

	/** Waits until everything is stored, for two seconds at most, and lets the process end. Never throws. */
	async leave(): Promise<void> {
		const bridge = this.bridge;
		this.bridge = this.greeting = undefined;
		if (bridge === undefined) return;
		await bridge.call("settle", {}, 2).catch(() => undefined);
		bridge.close();
	}

	private greet(ctx: ExtensionContext): Promise<Welcome> {
		if (this.greeting !== undefined && this.bridge?.isAlive) return this.greeting;
		if (this.refused || Date.now() < this.restsUntil) {
			return Promise.reject(new BridgeEnded(this.why, true));
		}
		this.known.clear();
		this.isGreeted = false;
		const bridge = new Bridge(this.launch.command, ctx.cwd, (method, params) => this.answer(ctx, method, params));
		this.bridge = bridge;
		this.greeting = this.exchange(bridge, ctx);
		return this.greeting;
	}

	private async exchange(bridge: Bridge, ctx: ExtensionContext): Promise<Welcome> {
		const session = ctx.sessionManager.getSessionId();
		const window = ctx.model?.contextWindow || null;
		const hello = { protocol: PROTOCOL, extension: VERSION, session, cwd: ctx.cwd, window };
		let welcome: Welcome;
		try {
			welcome = await bridge.call("hello", hello, 2 * this.launch.patience);
		} catch (problem) {
			throw problem instanceof BridgeEnded ? problem : new BridgeEnded(String(problem), true);
		}
		if (typeof welcome?.refusal !== "string") throw new BridgeEnded("what runs is not pagein", true);
		if (welcome.refusal !== "") {
			this.refused = true;
			bridge.close();
			throw new BridgeEnded(welcome.refusal, true);
		}
		this.watched = welcome.watched;
		await this.welcomed(welcome, ctx);
		this.isGreeted = true;
		return welcome;
	}

	/** What is new on the branch since pagein was told last. */
	private news(ctx: ExtensionContext): BranchDelta {
		const branch = ctx.sessionManager.getBranch();
		let first = branch.length;
		while (first > 0 && !this.known.has(branch[first - 1]?.id ?? "")) first--;
		const entries = branch.slice(first);
		for (const entry of entries) this.known.add(entry.id);
		return { known: branch[first - 1]?.id ?? null, entries };
	}

	private fail(ctx: ExtensionContext, problem: unknown): void {
		if (problem instanceof BridgeEnded) {
			if (Date.now() < this.restsUntil) return;
			this.bridge?.kill();
			this.bridge = this.greeting = undefined;
			this.isGreeted = false;
			this.failures++;
			this.restsUntil = Date.now() + 1000 * Math.min(LONGEST_REST, 2 ** this.failures);
		}
		this.why = problem instanceof Error ? problem.message : String(problem);
		this.tell(ctx, this.refused ? this.why : `pagein does not answer, so pi works without it: ${this.why}`);
	}

	/** Tells a failure once in a session. */
	tell(ctx: ExtensionContext, message: string): void {
		if (this.hasTold) return;
		this.hasTold = true;
		if (ctx.hasUI) ctx.ui.notify(message, "warning");
		else process.stderr.write(`${message}\n`);
	}

	/** Shows what pagein does beside pi's editor, if it changed; no lines take it away. */
	show(ctx: ExtensionContext, lines: string[] | null): void {
		const now = (lines ?? []).join("\n");
		if (lines === null || !ctx.hasUI || now === this.shown) return;
		this.shown = now;
		ctx.ui.setWidget("pagein", lines.length > 0 ? lines : undefined);
	}

	private async answer(ctx: ExtensionContext, method: string, params: Row): Promise<unknown> {
		if (method === "widget") this.show(ctx, params.lines as string[]);
		if (method !== "confirm" || !ctx.hasUI) return false;
		return ctx.ui.confirm(String(params.title), String(params.message));
	}
}
