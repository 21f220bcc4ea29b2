import { expect, test } from "vitest";
import { NOON, specOf } from "../../test/builders/pool.ts";
import { failingFrom, lostAfter } from "./lost-after.ts";

const failing = (code: string) => ({ state: "failing", since: NOON - 90_000, code }) as const;

test("a process that answered nothing while it was prepared is not lost the moment it is ready: silence counts from there", () => {
  expect(failingFrom({ phase: "validating", phaseSince: NOON }, failing("instance_unreachable"))).toBe(NOON);
  expect(failingFrom({ phase: "serving", phaseSince: NOON }, failing("instance_unreachable"))).toBe(NOON - 90_000);
});

test("a coordinator that answers and lacks workers has as long as a cluster may take to be ready; silence has not", () => {
  const cluster = specOf({ spec: { driver: "trino" } });
  expect([lostAfter(cluster, failing("unhealthy")), lostAfter(cluster, failing("instance_timeout"))]).toEqual([600_000, 10_000]);
  expect(lostAfter(specOf(), failing("unhealthy"))).toBe(10_000);
});
