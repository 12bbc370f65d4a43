/**
 * The extension's half of the protocol with `pagein pi`. The other half, with what each field means, is
 * `src/pagein/pi_host/protocol.py`.
 */

export const PROTOCOL = 1;
export const VERSION = "0.1.0";
export const UNKNOWN_ENTRY = "UnknownEntry";

export type Row = Record<string, unknown>;

export interface PiTool {
	name: string;
	label: string;
	description: string;
	parameters: Row;
	snippet: string;
	active: boolean;
}

export interface Welcome {
	protocol: number;
	version: string;
	tools: PiTool[];
	watched: { calls: string[]; results: string[]; context: boolean };
	read: PiTool | null;
	refusal: string;
}

export interface BranchDelta {
	known: string | null;
	entries: unknown[];
}

export interface ModelCall {
	id: string;
	name: string;
	input: Row;
}

export interface CallVerdict {
	input: Row | null;
	block: string;
}

export interface Patch {
	text: string | null;
	details: Row | null;
	failure: string;
}

export interface BranchStart {
	tools: string[] | null;
	prompt: string;
	headers: Record<string, string>;
	notice: string;
	widget: string[] | null;
}

export interface Insert {
	/** Call or timestamp of the message in front; "" for the beginning of the conversation. */
	after: string;
	text: string;
}

export interface WindowEdits {
	reset: boolean;
	results: Record<string, string>;
	inserts: Insert[];
	failure: string;
	widget: string[] | null;
}

export interface CompactionVerdict {
	cancel: boolean;
	reason: string;
}

export interface Answer {
	text: string;
	level: "info" | "warning" | "error";
	details: Row;
	entries: { type: string; data: Row }[];
	tools: string[] | null;
	widget: string[] | null;
	overlay: string;
}

/** What each request gives back, by method. */
export interface Replies {
	hello: Welcome;
	begin: BranchStart;
	tool_call: CallVerdict;
	tool_result: Patch;
	context: WindowEdits;
	compact: CompactionVerdict;
	command: Answer;
	tool: Answer;
	settle: Row;
}

export type Method = keyof Replies;
