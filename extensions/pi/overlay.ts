/** A text to scroll through, over pi's screen, until the person closes it. */

import type { ExtensionContext } from "@mariozechner/pi-coding-agent";

const BORDER_LINES = 4;
const SHARE = 0.8;

/** Shows a text. Resolves when it was closed; with false, at once, where pi has no screen. Never throws. */
export async function showOverlay(ctx: ExtensionContext, title: string, text: string): Promise<boolean> {
	try {
		if (!ctx.hasUI) return false;
		const { matchesKey, truncateToWidth } = await import("@mariozechner/pi-tui");
		const lines = text.split("\n");
		let first = 0;
		const closed = await ctx.ui.custom<true>(
			(tui, theme, _keys, done) => {
				const height = () => Math.max(1, Math.floor(tui.terminal.rows * SHARE) - BORDER_LINES);
				const scroll = (by: number) => {
					first = Math.max(0, Math.min(first + by, lines.length - height()));
					tui.requestRender();
				};
				return {
					render(width: number): string[] {
						const inner = width - 4;
						const row = (line: string) =>
							`${theme.fg("border", "│")} ${truncateToWidth(line, inner, "…", true)} ${theme.fg("border", "│")}`;
						const edge = (left: string, right: string) => theme.fg("border", left + "─".repeat(width - 2) + right);
						const shown = lines.slice(first, first + height());
						const place = `${first + 1} to ${first + shown.length} of ${lines.length} lines`;
						const keys = theme.fg("dim", `Escape closes, arrows and page keys scroll: ${place}`);
						return [
							edge("╭", "╮"),
							row(theme.fg("accent", title)),
							...shown.map((line) => row(line.replaceAll("\t", "    "))),
							row(keys),
							edge("╰", "╯"),
						];
					},
					handleInput(data: string): void {
						if (["escape", "ctrl+c", "q"].some((key) => matchesKey(data, key as "escape"))) done(true);
						else if (matchesKey(data, "up")) scroll(-1);
						else if (matchesKey(data, "down")) scroll(1);
						else if (matchesKey(data, "pageUp")) scroll(-height());
						else if (matchesKey(data, "pageDown")) scroll(height());
						else if (matchesKey(data, "home")) scroll(-lines.length);
						else if (matchesKey(data, "end")) scroll(lines.length);
					},
					invalidate(): void {},
				};
			},
			{ overlay: true, overlayOptions: { width: "90%", maxHeight: "80%" } },
		);
		return closed === true;
	} catch {
		return false;
	}
}
