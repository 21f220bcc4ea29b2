/**
 * Epochs and generations are one string, `era.counter`, compared numerically part by part. The era rises only when a store that was rewound is
 * recovered; the counter at every change.
 */
declare const epochBrand: unique symbol;
export type Epoch = string & { readonly [epochBrand]: true };

export const EPOCH_PATTERN = /^(0|[1-9]\d{0,14})\.(0|[1-9]\d{0,14})$/;
/** The highest era, and the highest counter, that the pattern lets through. */
export const MAX_EPOCH_PART = 10 ** 15 - 1;

export function epoch(era: number, counter: number): Epoch {
  return `${era}.${counter}` as Epoch;
}

export const EPOCH_ZERO: Epoch = epoch(0, 0);

export function epochParts(value: Epoch): { readonly era: number; readonly counter: number } {
  const dot = value.indexOf(".");
  return { era: Number(value.slice(0, dot)), counter: Number(value.slice(dot + 1)) };
}

/** Negative when `a` is older than `b`, zero when equal, positive when newer. */
export function compareEpochs(a: Epoch, b: Epoch): number {
  const left = epochParts(a);
  const right = epochParts(b);
  return left.era - right.era || left.counter - right.counter;
}
