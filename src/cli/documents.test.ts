import * as fc from "fast-check";
import { expect, test } from "vitest";
import { parsePoolFile } from "./documents.ts";

const LINES = [
  "apiVersion: relevo.dev/v1alpha1",
  "kind: Pool",
  "metadata: { name: a }",
  "metadata:",
  "spec:",
  "  size: { desired: 1 }",
  "  blueprint: &b { objects: [*b] }",
  "  disruption: *nothing",
  "  ? [complex, key]",
  "  - item",
  "---",
  "...",
  "key: !!binary x",
  "\t",
  "<<: *b",
  "__proto__: { polluted: true }",
];

const someText = fc.oneof(
  fc.string({ maxLength: 200 }),
  fc.array(fc.constantFrom(...LINES), { maxLength: 12 }).map((lines) => lines.join("\n")),
);

test("whatever a file holds, it gives documents or mistakes, each with a place in the file", () => {
  fc.assert(
    fc.property(someText, (text) => {
      const { documents, problems } = parsePoolFile("pool.yaml", text);
      expect(documents.length + problems.length).toBeGreaterThan(0);
      const lines = text.split("\n").length;
      for (const { line, column, sentence } of problems) {
        expect(line).toBeGreaterThanOrEqual(1);
        expect(line).toBeLessThanOrEqual(lines + 1);
        expect(column).toBeGreaterThanOrEqual(1);
        expect(sentence).not.toBe("");
      }
    }),
    { numRuns: 200 },
  );
  expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
});

test("aliases that would unfold without end are refused", () => {
  const bomb = [
    "a: &a [x, x, x, x, x, x, x, x, x, x]",
    ..."bcdefgh".split("").map((name, at) => `${name}: &${name} [${Array(10).fill(`*${"abcdefgh"[at]}`).join(", ")}]`),
  ].join("\n");

  expect(parsePoolFile("pool.yaml", bomb)).toMatchObject({
    documents: [],
    problems: [{ line: 1, sentence: expect.stringMatching(/^this is not YAML: /) }],
  });
});

test("a mistake behind an alias is told where the alias stands", () => {
  const text = [
    "apiVersion: relevo.dev/v1alpha1",
    "kind: Pool",
    "metadata: { name: a }",
    "spec:",
    "  driver: service",
    "  size: &size { desired: many }",
    "  blueprint: { objects: [{ apiVersion: apps/v1, kind: Deployment, metadata: { name: $(relevo.instance) } }] }",
    "  disruption: *size",
    "",
  ].join("\n");

  expect(parsePoolFile("pool.yaml", text).problems.map(({ line, column, field }) => [line, column, field])).toEqual([
    [6, 26, "spec.size.desired"],
    [6, 17, "spec.disruption.desired"],
  ]);
});
