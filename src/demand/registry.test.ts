import { expect, test } from "vitest";
import { CONNECTION_OF, type SignalKind } from "../model/demand.ts";
import { DEMAND_ADAPTERS } from "./registry.ts";

const KINDS = Object.keys(CONNECTION_OF) as SignalKind[];

test.each(KINDS)("a signal of kind %s can be read, and says what it needs where it is read (K2)", (kind) => {
  const adapter = DEMAND_ADAPTERS[kind];
  expect(adapter?.kind).toBe(kind);
  expect(adapter?.needs.infrastructure).toMatch(/^\S.{8,}/);
  expect(adapter?.needs.permissions.length).toBeGreaterThan(0);
});
