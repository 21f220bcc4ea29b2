import { expect, test } from "vitest";
import { VirtualClock } from "../kernel/virtual-clock.ts";
import { JOB_OUTCOMES, MAX_SLOTS as MODEL_MAX_SLOTS, slotsSchema } from "../model/slots.ts";
import { JOB_OUTCOMES as QUEUE_OUTCOMES } from "./queue-client.ts";
import { MAX_SLOTS, SlotTable } from "./slots.ts";
import { start } from "./test-kit.ts";

const table = (total = 2, clock = new VirtualClock()): SlotTable => new SlotTable({ total, flow: "queue/captures", clock });

test("the SDK's own words are those of the model", () => {
  expect([MAX_SLOTS, QUEUE_OUTCOMES.toSorted()]).toEqual([MODEL_MAX_SLOTS, JOB_OUTCOMES.toSorted()]);
});

test("ages count from the job's begin and from its last progress, which only work renews (K4, K5)", async () => {
  const clock = new VirtualClock();
  const slots = table(2, clock);
  const slot = slots.occupy("job-1");
  await clock.advance(500);
  slot.advance(10);
  await clock.advance(300);
  slot.advance(0);
  slot.advance(Number.NaN);
  slot.advance(-1);
  expect(slots.view().busy).toEqual([{ slot: 0, job: "job-1", ageMs: 800, quietMs: 300, progress: 10 }]);
});

test("the lowest free slot is taken, and one that is released twice is not taken from whoever has it by now", () => {
  const slots = table();
  const first = slots.occupy("job-1");
  slots.occupy("job-2");
  first.release("done");
  const third = slots.occupy("job-3");
  first.release("failed");
  expect([third.index, slots.busy, slots.free, slots.view().outcomes]).toEqual([0, 2, 0, { done: 1, nothing: 0, reaped: 0, failed: 0 }]);
  expect(() => slots.occupy("job-4")).toThrow("Every slot is busy.");
});

test("an end that is another worker's to tell counts nowhere", () => {
  const slots = table();
  slots.occupy("job-1").release(null);
  expect(slots.view()).toMatchObject({ busy: [], outcomes: { done: 0, nothing: 0, reaped: 0, failed: 0 } });
});

test.each([0, -1, 1.5, Number.NaN, 1_001])("%s slots are refused", (total) => {
  expect(() => table(total)).toThrow(expect.objectContaining({ code: "slots_invalid" }));
});

test("a job's name may be of any length, and what is said stays what the model reads", () => {
  const slots = table(1_000);
  for (let index = 0; index < 1_000; index++) slots.occupy("x".repeat(1_000));
  expect(slotsSchema.parse({ bootId: "b", ...slots.view() }).busy).toHaveLength(1_000);
});

test("an instance without slots does not know the word", async () => {
  const { base } = await start();
  const response = await fetch(`${base}/relevo/v1/slots`);
  expect([response.status, await response.json()]).toEqual([
    404,
    { error: { code: "no_slots", message: "The instance takes its work by requests: it has no slots." } },
  ]);
});
