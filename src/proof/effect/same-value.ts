/** Whether two texts are one value: a server writes `8.00h` for `8h` and `1048576B` for `1MB`. */
const QUANTITY = /^(\d+(?:\.\d+)?)\s*([a-zA-Z]+)$/;
/** Of a duration in ms, of a size in bytes; as airlift's Duration and DataSize write them. */
const DURATION_UNITS: Readonly<Record<string, number>> = {
  ...{ ns: 1e-6, us: 1e-3, ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 },
};
const SIZE_UNITS: Readonly<Record<string, number>> = { B: 1, kB: 2 ** 10, KB: 2 ** 10, MB: 2 ** 20, GB: 2 ** 30, TB: 2 ** 40, PB: 2 ** 50 };
/** A server writes two digits after the point. */
const ROUNDING = 0.005;

export function isSameValue(a: string, b: string): boolean {
  const [left, right] = [a.trim(), b.trim()];
  if (left === right) return true;
  if (isWord(left) && isWord(right) && left.toLowerCase() === right.toLowerCase()) return true;
  return isSameQuantity(left, right, DURATION_UNITS) || isSameQuantity(left, right, SIZE_UNITS);
}

/** `true`, `TASK`: enums and booleans are read without regard to case. */
function isWord(text: string): boolean {
  return /^[A-Za-z_]+$/.test(text);
}

function isSameQuantity(a: string, b: string, units: Readonly<Record<string, number>>): boolean {
  const [left, right] = [quantityOf(a, units), quantityOf(b, units)];
  if (left === undefined || right === undefined) return false;
  return Math.abs(left.amount - right.amount) <= ROUNDING * Math.max(left.roundedTo, right.roundedTo);
}

/** `roundedTo`: the unit of a number that was written with digits after the point; 0 of a whole one. */
function quantityOf(
  text: string,
  units: Readonly<Record<string, number>>,
): { readonly amount: number; readonly roundedTo: number } | undefined {
  const [, number = "", unit = ""] = QUANTITY.exec(text) ?? [];
  const factor = units[unit];
  return factor === undefined ? undefined : { amount: Number(number) * factor, roundedTo: number.includes(".") ? factor : 0 };
}
