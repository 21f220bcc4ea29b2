import fc from "fast-check";
import { expect, test } from "vitest";
import { VirtualClock } from "../kernel/virtual-clock.ts";
import { ChildProgress, Tail } from "./child-progress.ts";

const progress = (clock = new VirtualClock()): ChildProgress => new ChildProgress(clock, () => undefined);

test("what comes is the same however the pipe cuts it (K5)", () => {
  const line = fc.oneof(fc.constantFrom("wait a page", "wait ", "wait", "wai", "", "waits", "frame"), fc.string({ maxLength: 20 }));
  fc.assert(
    fc.property(fc.array(line, { maxLength: 8 }), fc.array(fc.nat(200), { maxLength: 10 }), (lines, cuts) => {
      const bytes = Buffer.from(lines.map((text) => `${text.replaceAll("\n", "")}\n`).join(""));
      const whole = progress();
      whole.take(bytes);
      const cut = progress();
      const points = [...new Set([0, ...cuts.map((at) => Math.min(at, bytes.length)), bytes.length])].toSorted((a, b) => a - b);
      for (const [index, at] of points.entries()) cut.take(bytes.subarray(at, points[index + 1] ?? at));
      expect([cut.total, cut.waiting()?.what]).toEqual([whole.total, whole.waiting()?.what]);
    }),
  );
});

test("a wait is no progress, is not prolonged by being said again, and ends with the next progress", async () => {
  const clock = new VirtualClock();
  const child = progress(clock);
  child.take(Buffer.from("wait a page\n"));
  await clock.advance(100);
  child.take(Buffer.from("wait a video\n"));
  expect([child.total, child.quietMs(), child.waiting()]).toEqual([0, 100, { what: "a page", ms: 100 }]);
  child.take(Buffer.from("x"));
  expect([child.total, child.quietMs(), child.waiting()]).toEqual([1, 0, null]);
});

test("a line of a wait that never ends is kept in part only", () => {
  const child = progress();
  child.take(Buffer.from("wait "));
  for (let chunk = 0; chunk < 100; chunk++) child.take(Buffer.alloc(10_000, "a"));
  child.take(Buffer.from("\n"));
  expect([child.total, child.waiting()?.what.length]).toEqual([0, 200]);
});

test("of output the end is kept, and all of it is counted", () => {
  const tail = new Tail(5);
  for (const part of ["abc", "defghij", "kl"]) tail.take(Buffer.from(part));
  expect([tail.text(), tail.bytes]).toEqual(["hijkl", 12]);
});
