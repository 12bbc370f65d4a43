/** A `pagein pi` process: started, spoken to in lines of JSON, and ended. It never keeps pi alive. */

import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import type { Method, Replies, Row } from "./protocol.ts";

/** Answers what pagein asks of the person at pi. */
export type Asked = (method: string, params: Row) => Promise<unknown>;

/** The process ended, or did not answer in time. `late` tells the two apart. */
export class BridgeEnded extends Error {
	constructor(
		message: string,
		readonly late: boolean,
	) {
		super(message);
	}
}

interface Waiting {
	resolve: (value: unknown) => void;
	reject: (reason: Error) => void;
}

const LONGEST_COMPLAINT = 500;

export class Bridge {
	private readonly child: ChildProcessWithoutNullStreams;
	private readonly waiting = new Map<number, Waiting>();
	private chunks: Buffer[] = [];
	private last = 0;
	private ended: string | undefined;
	private complaint = "";

	constructor(
		command: readonly string[],
		folder: string,
		private readonly asked: Asked,
	) {
		const [program = "pagein", ...args] = command;
		this.child = spawn(program, args, { cwd: folder, stdio: ["pipe", "pipe", "pipe"] });
		this.child.on("error", (problem) => this.end(problem.message));
		this.child.on("exit", (code, signal) => this.end(`it ended with ${signal ?? code}`));
		this.child.stdin.on("error", () => undefined); // that it ended is told by its exit
		this.child.stdout.on("data", (chunk: Buffer) => this.take(chunk));
		this.child.stderr.on("data", (chunk: Buffer) => {
			this.complaint = (this.complaint + chunk.toString("utf8")).slice(-LONGEST_COMPLAINT);
		});
		this.child.unref();
		for (const stream of [this.child.stdin, this.child.stdout, this.child.stderr]) {
			(stream as unknown as { unref?: () => void }).unref?.();
		}
	}

	get isAlive(): boolean {
		return this.ended === undefined;
	}

	/** Sends a request. Rejects with BridgeEnded, or with what pagein says against it. */
	call<M extends Method>(method: M, params: Row, seconds: number, signal?: AbortSignal): Promise<Replies[M]> {
		if (this.ended !== undefined) return Promise.reject(new BridgeEnded(this.ended, false));
		const id = ++this.last;
		return new Promise<Replies[M]>((resolve, reject) => {
			const cancel = () => this.send({ method: "cancel", params: { request: id } });
			const timer = setTimeout(() => {
				this.waiting.delete(id);
				reject(new BridgeEnded(`it did not answer within ${seconds} seconds`, true));
			}, seconds * 1000);
			const done = () => {
				clearTimeout(timer);
				signal?.removeEventListener("abort", cancel);
			};
			this.waiting.set(id, {
				resolve: (value) => {
					done();
					resolve(value as Replies[M]);
				},
				reject: (reason) => {
					done();
					reject(reason);
				},
			});
			signal?.addEventListener("abort", cancel, { once: true });
			this.send({ id, method, params });
		});
	}

	/** Lets the process end by itself: it does at the end of its input. */
	close(): void {
		this.child.stdin.end();
	}

	kill(): void {
		this.end("it was ended");
		this.child.kill("SIGKILL");
	}

	private send(message: Row): void {
		if (this.ended === undefined) this.child.stdin.write(`${JSON.stringify(message)}\n`);
	}

	private take(chunk: Buffer): void {
		let start = 0;
		for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, start)) {
			this.chunks.push(chunk.subarray(start, end));
			const line = Buffer.concat(this.chunks).toString("utf8");
			this.chunks = [];
			start = end + 1;
			this.receive(line);
		}
		if (start < chunk.length) this.chunks.push(chunk.subarray(start));
	}

	private receive(line: string): void {
		let message: { id?: unknown; method?: string; params?: Row; result?: unknown; error?: string } | null;
		try {
			message = JSON.parse(line);
		} catch {
			return;
		}
		if (typeof message !== "object" || message === null) return; // JSON, but none of pagein's: a throw here would end pi
		if (message.method !== undefined) {
			this.asked(message.method, message.params ?? {}).then(
				(result) => this.send({ id: message.id, result }),
				() => this.send({ id: message.id, result: null }),
			);
			return;
		}
		const found = this.waiting.get(message.id as number);
		this.waiting.delete(message.id as number);
		if (message.error !== undefined) found?.reject(new Error(message.error));
		else found?.resolve(message.result);
	}

	private end(why: string): void {
		if (this.ended !== undefined) return;
		const said = this.complaint.trim().split("\n").pop();
		this.ended = said ? `${why}: ${said}` : why;
		for (const one of this.waiting.values()) one.reject(new BridgeEnded(this.ended, false));
		this.waiting.clear();
	}
}
