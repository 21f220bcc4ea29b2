import { expect, test } from "vitest";
import { EXPOSED_FOR_MS, Exposure } from "./exposure.ts";
import { evacuee, NOON } from "./testing/builders.ts";

const noticed = (at: number, leadMs: number | null) =>
  evacuee("a", { noticedAt: at, deadline: leadMs === null ? null : at + leadMs, stateMoveMs: 300, warmUpMs: 700 });

test("for two minutes after the last notice the others of the pool are expected to follow, with the shortest lead that was seen", () => {
  const exposure = new Exposure();
  expect(exposure.exposed(3, NOON)).toBeUndefined();
  exposure.note(noticed(NOON, 120_000));
  exposure.note(noticed(NOON + 60_000, 30_000));
  exposure.note(noticed(NOON + 10_000, 90_000)); // heard of later
  expect(exposure.since(NOON + 60_000)).toBe(NOON);
  expect(exposure.exposed(3, NOON + 60_000)).toEqual({
    pool: "default/orders",
    priority: "standard",
    latencyLimitMs: 100,
    count: 3,
    leadMs: 30_000,
    workMs: 1_000,
    until: NOON + 60_000 + EXPOSED_FOR_MS,
  });
  expect(exposure.exposed(0, NOON + 60_000)).toBeUndefined();
  expect(exposure.exposed(3, NOON + 60_000 + EXPOSED_FOR_MS)).toBeUndefined();
});

test("what comes after that begins anew", () => {
  const exposure = new Exposure();
  exposure.note(noticed(NOON, 30_000));
  const later = NOON + EXPOSED_FOR_MS;
  exposure.note(noticed(later, 120_000));
  expect(exposure.since(later)).toBe(later);
  expect(exposure.exposed(1, later)?.leadMs).toBe(120_000);
});

test("a clock that is set back by an hour lets nobody be expected for an hour", () => {
  const exposure = new Exposure();
  exposure.note(noticed(NOON, 30_000));
  expect(exposure.exposed(3, NOON - 3_600_000)).toBeUndefined();
});

test("one that went without a notice tells nothing of the others", () => {
  const exposure = new Exposure();
  exposure.note(noticed(NOON, null));
  expect(exposure.exposed(3, NOON)).toBeUndefined();
});
