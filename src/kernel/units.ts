/** Durations as people write them (`90s`, `2m`, `1h30m`, `250ms`) and Kubernetes quantities (`250m`, `2Gi`). */

const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Milliseconds, or undefined when the text is no duration. */
export function parseDuration(text: string): number | undefined {
  if (!/^(\d+(?:\.\d+)?(?:ms|s|m|h|d))+$/.test(text)) return undefined;
  let total = 0;
  for (const [, amount, unit] of text.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h|d)/g)) total += Number(amount) * (UNIT_MS[unit ?? ""] ?? 0);
  return total;
}

/** The shortest exact spelling: 90000 → `1m30s`. */
export function formatDuration(ms: number): string {
  if (ms === 0) return "0s";
  let rest = Math.round(ms);
  let text = "";
  for (const unit of ["d", "h", "m", "s", "ms"]) {
    const size = UNIT_MS[unit] ?? 1;
    const amount = Math.floor(rest / size);
    if (amount > 0) text += `${amount}${unit}`;
    rest -= amount * size;
  }
  return text;
}

const QUANTITY_FACTOR: Readonly<Record<string, number>> = {
  n: 1e-9,
  u: 1e-6,
  m: 1e-3,
  "": 1,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  P: 1e15,
  E: 1e18,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
  Pi: 2 ** 50,
  Ei: 2 ** 60,
};

/** A Kubernetes quantity in its base unit (cores, bytes, items), or undefined. */
export function parseQuantity(text: string | number): number | undefined {
  const match = /^([+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)(n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?$/.exec(String(text));
  if (!match) return undefined;
  return Number(match[1]) * (QUANTITY_FACTOR[match[2] ?? ""] ?? 1);
}
