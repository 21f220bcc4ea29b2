import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { poolSchema } from "../src/model/pool.ts";

test.each([
  ["orders", "relevo/v1"],
  ["accounts", "relevo/v1"],
  ["plain-python", "none"],
  ["storm", "none"],
  ["capture", "relevo/v1"],
  ["trino", "trino/v1"],
])("the Pool of %s is one that Relevo takes", (name, protocol) => {
  const text = readFileSync(join(import.meta.dirname, name, "pool.yaml"), "utf8");
  const pool = poolSchema.parse(parse(text));

  expect([pool.metadata.name, pool.spec.service.protocol, pool.spec.disruption.mode]).toEqual([name, protocol, "Act"]);
});
