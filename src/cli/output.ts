/** Tables for people, JSON and YAML for programs. Colours only on a terminal, and never the only carrier of meaning. */
import colors from "picocolors";
import { stringify } from "yaml";
import { formatDuration } from "../kernel/units.ts";
import { type Instant, parseInstant } from "../kernel/clock.ts";
import type { CliContext, Output } from "./context.ts";

export interface Column<T> {
  readonly head: string;
  readonly cell: (item: T, now: Instant) => string;
  /** Only with `-o wide`. */
  readonly wide?: boolean;
}

/**
 * Rows under a line of heads, two spaces apart, without trailing blanks. `widths` is what the columns had so far, and is brought up to date: rows that
 * follow later stand below those that were printed before.
 */
export function renderTable<T>(
  items: readonly T[],
  columns: readonly Column<T>[],
  options: { readonly now: Instant; readonly isWide?: boolean; readonly hasHead?: boolean; readonly widths?: number[] },
): string {
  const shown = columns.filter((column) => options.isWide || !column.wide);
  const heads = shown.map(({ head }) => head);
  const rows = items.map((item) => shown.map(({ cell }) => cell(item, options.now)));
  const { widths = [] } = options;
  for (const row of [heads, ...rows]) for (const [at, cell] of row.entries()) widths[at] = Math.max(widths[at] ?? 0, cell.length);
  const lines = options.hasHead === false ? rows : [heads, ...rows];
  return lines
    .map(
      (row) =>
        `${row
          .map((cell, at) => cell.padEnd(widths[at] ?? 0))
          .join("  ")
          .trimEnd()}\n`,
    )
    .join("");
}

/** A document, or undefined when a table is wanted. */
export function renderDocument(value: unknown, output: Output): string | undefined {
  if (output === "json") return `${JSON.stringify(value, null, 2)}\n`;
  return output === "yaml" ? stringify(value) : undefined;
}

export type Palette = ReturnType<typeof colors.createColors>;

export function palette({ isTerminal, env }: Pick<CliContext, "isTerminal" | "env">): Palette {
  return colors.createColors(isTerminal && (env.NO_COLOR ?? "") === "");
}

/** As a shell takes it for one word. */
export function shellWord(text: string): string {
  return /^[\w./:=@%+,-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

/** `3m`, `2h`: how long ago, in its largest unit and the next. */
export function ageOf(time: string | null, now: Instant): string {
  const at = time === null ? undefined : parseInstant(time);
  if (at === undefined) return "-";
  return roughly(Math.max(0, now - at));
}

/** `in 3m`, or `3m ago`. */
export function distanceOf(time: string | null, now: Instant): string {
  const at = time === null ? undefined : parseInstant(time);
  if (at === undefined) return "-";
  return at >= now ? `in ${roughly(at - now)}` : `${roughly(now - at)} ago`;
}

function roughly(ms: number): string {
  const unit = ms >= 86_400_000 ? 3_600_000 : ms >= 3_600_000 ? 60_000 : 1_000;
  return formatDuration(Math.floor(ms / unit) * unit);
}

export const dash = (text: string | number | null | undefined): string =>
  text === null || text === undefined || text === "" ? "-" : String(text);
