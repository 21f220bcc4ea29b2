/** Whether a query gave the rows that it should, in any order. */
import type { Row } from "./ports.ts";

/** More are no answer that can be compared: an aggregate is asked for. */
export const MOST_ROWS = 10_000;

/** In what they differ, for people; null when they do not. */
export function differenceOf(expected: readonly Row[], found: readonly Row[]): string | null {
  const missing = new Map<string, number>();
  for (const row of expected) count(missing, row, 1);
  const surplus = new Map<string, number>();
  for (const row of found) {
    const key = keyOf(row);
    if ((missing.get(key) ?? 0) > 0) count(missing, row, -1);
    else count(surplus, row, 1);
  }
  const lacking = total(missing);
  const more = total(surplus);
  if (lacking === 0 && more === 0) return null;
  const example = [...missing].find(([, times]) => times > 0)?.[0];
  const other = [...surplus].find(([, times]) => times > 0)?.[0];
  const parts = [
    `${found.length} rows instead of ${expected.length}`,
    ...(example === undefined ? [] : [`${lacking} missing, such as ${shortened(example)}`]),
    ...(other === undefined ? [] : [`${more} not expected, such as ${shortened(other)}`]),
  ];
  return parts.join("; ");
}

function count(into: Map<string, number>, row: Row, by: number): void {
  const key = keyOf(row);
  into.set(key, (into.get(key) ?? 0) + by);
}

/** An integer that a number does not hold exactly is given as its digits; a document can expect it as text. */
function keyOf(row: Row): string {
  return JSON.stringify(row, (_key, value: unknown) => (typeof value === "bigint" ? String(value) : value));
}

function total(counts: ReadonlyMap<string, number>): number {
  let sum = 0;
  for (const times of counts.values()) sum += times;
  return sum;
}

function shortened(text: string): string {
  return text.length <= 100 ? text : `${text.slice(0, 99)}…`;
}
