import { expect, test } from "vitest";
import { Deadlines, Limit } from "./deadlines.ts";
import { virtualClock } from "./testing/gateway.ts";

test("each limit falls due after the same length, in the order of its start", () => {
  const clock = virtualClock();
  const deadlines = new Deadlines(clock, 100);
  const expired: string[] = [];
  const limit = (name: string) => new Limit(() => expired.push(`${name} at ${clock.monotonic()}`));
  const [a, b, c] = [limit("a"), limit("b"), limit("c")];
  deadlines.start(a);
  clock.advance(30);
  deadlines.start(b);
  clock.advance(30);
  deadlines.start(c);
  b.stop();
  b.stop();
  clock.advance(30);
  deadlines.start(a); // anew
  clock.advance(500);
  expect(expired).toEqual(["c at 160", "a at 190"]);
  expect(clock.timers).toBe(0);
});

test("a limit that is started anew when it falls due makes no other one late", () => {
  const clock = virtualClock();
  const deadlines = new Deadlines(clock, 100);
  const expired: string[] = [];
  const again = new Limit(() => {
    expired.push(`again at ${clock.monotonic()}`);
    if (expired.length < 3) deadlines.start(again);
  });
  deadlines.start(again);
  clock.advance(30);
  deadlines.start(new Limit(() => expired.push(`other at ${clock.monotonic()}`)));
  clock.advance(500);
  expect(expired).toEqual(["again at 100", "other at 130", "again at 200"]);
  expect(clock.timers).toBe(0);
});

test("many limits share one timer", () => {
  const clock = virtualClock();
  const deadlines = new Deadlines(clock, 100);
  for (let index = 0; index < 1_000; index++) {
    const limit = new Limit(() => undefined);
    deadlines.start(limit);
    limit.stop();
  }
  expect(clock.timers).toBe(1);
});
