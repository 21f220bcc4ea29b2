/** Bodies for the fuzz tests of parsers: samples with a value put anywhere in them, or something taken out, and noise. fast-check prints its seed. */
import * as fc from "fast-check";

export function aBody(samples: readonly string[]): fc.Arbitrary<string> {
  const mutated = fc
    .record({
      sample: fc.constantFrom(...samples),
      steps: fc.array(fc.nat(40), { minLength: 1, maxLength: 4 }),
      value: fc.option(fc.jsonValue(), { nil: undefined }),
    })
    .map(mutate);
  return fc.oneof(mutated, fc.string(), fc.json());
}

interface Mutation {
  readonly sample: string;
  /** At each level the key with this number, modulo the number of keys. */
  readonly steps: readonly number[];
  /** Undefined takes the key away. */
  readonly value: unknown;
}

function mutate({ sample, steps, value }: Mutation): string {
  const message = JSON.parse(sample) as Record<string, unknown>;
  let at: Record<string, unknown> = message;
  for (const [index, step] of steps.entries()) {
    const keys = Object.keys(at);
    const key = keys[step % Math.max(1, keys.length)];
    if (key === undefined) break;
    const below = at[key];
    if (index === steps.length - 1 || typeof below !== "object" || below === null) {
      at[key] = value;
      break;
    }
    at = below as Record<string, unknown>;
  }
  return JSON.stringify(message);
}
