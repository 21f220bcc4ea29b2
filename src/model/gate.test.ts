import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { GATE_REASONS, gateReason, gateSchema } from "./gate.ts";

const EXAMPLES = join(import.meta.dirname, "../../examples/gates");

test.each(readdirSync(EXAMPLES))("the example %s is a Gate", (file) => {
  const { spec } = gateSchema.parse(parse(readFileSync(join(EXAMPLES, file), "utf8")));
  expect([spec.experiment.session, spec.control.session]).toEqual([{ retry_policy: "TASK" }, { retry_policy: "NONE" }]);
});

test("a sentence is filled with what it names, whatever that is", () => {
  expect(gateReason("policy_unknown", { run: "{query}", query: "$& query 1" })).toEqual({
    code: "policy_unknown",
    sentence: "{query}: the engine did not say with which retry policy it ran $& query 1",
  });
});

test("no sentence ends as a heading or a list would", () => {
  for (const sentence of Object.values(GATE_REASONS)) expect(sentence).toMatch(/^[a-z{]/);
});
