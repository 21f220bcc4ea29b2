/** One table for what a check of a pool found: its preflight, and how far each of its settings has come. */
import type { EffectReport, EffectRow } from "../../model/effect.ts";
import type { PreflightView } from "../../server/scale-views.ts";
import type { CliContext } from "../context.ts";
import { palette } from "../output.ts";

export interface Checked {
  readonly pool: string;
  readonly rows: readonly PreflightView[];
  /** Of a pool whose instances run. */
  readonly effect: EffectReport;
}

/** Cells of one line; `bad`: what is to be done about it stands in it. */
interface Line {
  readonly cells: readonly string[];
  readonly state: string;
  readonly message: string;
  readonly kind: "good" | "doubtful" | "bad";
}

/** `isWide`: each key with each hop; else of those that are effective only how many they are. */
export function checkTable(context: CliContext, { pool, rows, effect }: Checked, isWide: boolean): string {
  const { green, yellow, red } = palette(context);
  const hasEffect = effect.rows.length > 0 || effect.notes.length > 0;
  const lines = [...preflightLines(rows, hasEffect), ...(hasEffect ? effectLines(effect, isWide) : [])];
  const head = hasEffect ? ["PHASE", "WHERE", "CHECK"] : ["SITE", "CHECK"];
  const widths = head.map((title, index) => Math.max(title.length, ...lines.map(({ cells }) => cells[index]?.length ?? 0)));
  const widthOfState = Math.max(7, ...lines.map(({ state }) => state.length));
  if (!hasEffect) widths[1] = 11;
  const colours = { good: green, doubtful: yellow, bad: red };
  const row = (cells: readonly string[], state: string, message: string, colour: (text: string) => string): string =>
    [...cells.map((cell, index) => cell.padEnd(widths[index] ?? 0)), colour(state.padEnd(widthOfState)), message].join("  ").trimEnd();
  return [
    `pool ${pool}`,
    row(head, "STATE", "FOUND", (text) => text),
    ...lines.map(({ cells, state, message, kind }) => row(cells, state, message, colours[kind])),
    ...conclusions(rows, effect),
    "",
  ].join("\n");
}

function preflightLines(rows: readonly PreflightView[], hasPhase: boolean): readonly Line[] {
  return rows.map(({ site, check, state, message, todo }) => ({
    cells: hasPhase ? ["preflight", site, check] : [site, check],
    state,
    message: withTodo(message, todo),
    kind: state === "ok" ? "good" : state === "refused" ? "bad" : "doubtful",
  }));
}

function effectLines({ rows, notes }: EffectReport, isWide: boolean): readonly Line[] {
  const shown = isWide ? rows : rows.filter(({ state }) => state !== "effective");
  return [
    ...notes.map(
      ({ instance, message, todo }): Line => ({
        cells: ["effect", instance, "owner"],
        ...{ state: "held", message: withTodo(message, todo), kind: "doubtful" },
      }),
    ),
    ...shown.flatMap((row) => linesOf(row, isWide)),
    ...(isWide ? [] : summaries(rows)),
  ];
}

function linesOf(row: EffectRow, isWide: boolean): readonly Line[] {
  const { instance, pod, file, name, hops, state, message, todo } = row;
  const kind = state === "effective" ? "good" : state === "dropped" || state === "stale" ? "bad" : "doubtful";
  const first: Line = { cells: ["effect", pod ?? instance, `${file} ${name}`], state, message: withTodo(message, todo), kind };
  if (!isWide) return [first];
  return [
    first,
    ...hops.map(
      ({ hop, value, where }): Line => ({ cells: ["", "", `  ${hop}`], state: "", message: `${value ?? "-"}  (${where})`, kind: "good" }),
    ),
  ];
}

/** Of each instance: how many are as they should be. */
function summaries(rows: readonly EffectRow[]): readonly Line[] {
  return [...Map.groupBy(rows, ({ instance }) => instance)].map(([instance, all]) => {
    const effective = all.filter(({ state }) => state === "effective").length;
    return {
      cells: ["effect", instance, "all"],
      state: `${effective}/${all.length}`,
      message: "effective",
      kind: effective === all.length ? "good" : "doubtful",
    };
  });
}

function conclusions(rows: readonly PreflightView[], { rows: keys, notes }: EffectReport): readonly string[] {
  const refused = rows.filter(({ state }) => state === "refused").length;
  const short = keys.filter(({ state }) => state !== "effective").length;
  const ofPreflight =
    refused > 0 ? [`${refused} ${refused === 1 ? "check refuses" : "checks refuse"}: leave the size to who has it now`] : [];
  const ofEffect = [
    ...(short > 0
      ? [`${short} of ${keys.length} settings ${short === 1 ? "is" : "are"} not effective: nothing relies on what is not`]
      : []),
    ...(notes.length > 0 ? ["somebody stopped or paused an owner: what is declared meanwhile has no effect"] : []),
  ];
  const all = [...ofPreflight, ...ofEffect];
  return all.length === 0 ? ["nothing stands in the way"] : all;
}

function withTodo(message: string, todo: string | null): string {
  return todo === null ? message : `${message}; ${todo}`;
}
