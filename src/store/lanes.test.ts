import { expect, test } from "vitest";
import { Lanes, MAX_WAITING } from "./lanes.ts";

test("calls of one lane take place in their order, one after the other, whether they succeed or not; others do not wait", async () => {
  const lanes = new Lanes();
  const seen: string[] = [];
  const gate = Promise.withResolvers<void>();
  const calls = [
    lanes.run("a", async () => {
      await gate.promise;
      seen.push("a1");
      throw new Error("refused");
    }),
    lanes.run("a", async () => void seen.push("a2")),
    lanes.run("b", async () => void seen.push("b1")),
  ];
  await calls[2];
  expect(seen).toEqual(["b1"]);
  gate.resolve();
  expect((await Promise.allSettled(calls)).map(({ status }) => status)).toEqual(["rejected", "fulfilled", "fulfilled"]);
  expect(seen).toEqual(["b1", "a1", "a2"]);
});

test("more callers than can be served are refused at once", async () => {
  const lanes = new Lanes();
  const gate = Promise.withResolvers<void>();
  const calls = Array.from({ length: MAX_WAITING + 1 }, () => lanes.run("a", () => gate.promise));
  await expect(lanes.run("a", () => gate.promise)).rejects.toMatchObject({ code: "store_unavailable", class: "retryable" });
  gate.resolve();
  await Promise.all(calls);
});
