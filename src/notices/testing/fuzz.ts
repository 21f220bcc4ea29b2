/** Bodies for the fuzz tests of parsers: samples with a value put anywhere in them, or something taken out, and noise. fast-check prints its seed. */
import * as fc from "fast-check";

export function aBody(samples: readonly string[]): fc.Arbitrary<string> {
  const mutated = fc
    .record({
      sample: fc.constantFrom(...samples),
      steps: fc.array(fc.nat(40), { minLength: 1, maxLength: 4 }),
      value: fc.option(fc.oneof(fc.jsonValue(), fc.constantFrom(...ODD)), { nil: undefined }),
    })
    .map(mutate);
  return fc.oneof(mutated, fc.string(), fc.json());
}

/** What has broken parsers: depth, halves of characters, zero bytes, names of a prototype's fields, times and numbers at the ends of their ranges. */
const ODD: readonly unknown[] = [
  Array.from({ length: 1_000 }).reduce<unknown>((inner) => ({ a: [inner] }), 1),
  "\ud800",
  "a\0b",
  "#%",
  "__proto__",
  "constructor",
  "x".repeat(3_000),
  "9999-12-31T23:59:59Z",
  "0000-01-01T00:00:00Z",
  "2030-02-31T00:00:00Z",
  "Mon, 31 Feb 2030 00:00:00 GMT",
  "aws:///zone/i-1\n",
  "azure:///subscriptions/a/resourceGroups/b/virtualMachines/",
  Number.MAX_SAFE_INTEGER + 2,
  -0.5,
  { __proto__: null, toString: 1 },
];

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
