/** Fails at once when what must hold does not: a broken invariant is a fault of ours, never of the input. */
export function assert(condition: unknown, sentence: string): asserts condition {
  if (!condition) throw new AssertionFailure(sentence);
}

export class AssertionFailure extends Error {
  override readonly name = "AssertionFailure";
}
