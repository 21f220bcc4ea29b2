import { describe, expect, test } from "vitest";
import { sentenceOf } from "../../model/reasons.ts";
import { decideScale } from "./decide-scale.ts";
import { demand, type InputParts, NOON, scalingInput, slots, stateOf } from "./testing/builders.ts";

const MORE: InputParts = { demand: demand(60), slots: slots() };

function decided(input: InputParts, now = NOON): string {
  const { desired, change, holds } = decideScale(scalingInput({ ...MORE, ...input }), now);
  return [String(desired), change?.code ?? "stays", ...holds.map(({ code }) => code)].join(" ");
}

const rise = (more: Partial<{ at: number; from: number; to: number; throughput: number | null }> = {}) =>
  stateOf({
    direction: "up",
    changedAt: NOON - 300_000,
    lastUp: { at: NOON - 300_000, from: 1, to: 2, throughput: 2, ...more },
  });

describe("it does not grow (K6, I23)", () => {
  test.each<readonly [string, InputParts, string]>([
    ["while more of the busy slots are stuck than may be", { slots: slots({ progressing: 6, stuck: 2 }) }, "2 stays scale_held_stuck"],
    [
      "while the few that say anything are stuck",
      { instances: { serving: 9 }, slots: slots({ instances: 1, progressing: 2, stuck: 2 }) },
      "2 stays scale_held_stuck",
    ],
    ["while all that is busy is stuck", { slots: slots({ progressing: 0, stuck: 8 }) }, "2 stays scale_held_stuck"],
    [
      "while a busy slot finishes far less than is usual",
      { slots: slots({ perBusySlot: 0.02, throughput: 0.2 }) },
      "2 stays scale_held_slowing",
    ],
    [
      "while a job takes ever longer, although nothing waits",
      { demand: demand(0, 60), slots: slots({ perBusySlot: 0.02 }) },
      "2 stays scale_held_slowing",
    ],
    [
      "while long jobs end more rarely than before a rise that is young",
      { slots: slots({ usualPerBusySlot: 0.02, perBusySlot: 0.01, throughput: 0.5 }), state: rise({ at: NOON - 90_000, throughput: 2 }) },
      "2 stays scale_held_slowing",
    ],
    ["while the last rise has raised nothing", { state: rise(), slots: slots({ throughput: 2.1 }) }, "2 stays scale_held_no_gain"],
    ["while those that were sick say nothing of themselves", { slots: null, heldSince: NOON - 60_000 }, "2 stays scale_held_blind"],
    ["while only few of them do", { slots: slots({ instances: 1 }), heldSince: NOON - 60_000 }, "2 stays scale_held_blind"],
    [
      "while a new controller cannot tell yet whether the last rise raised anything, where the one before it held for that",
      { state: rise(), heldSince: NOON - 60_000, slots: slots({ throughput: null, perBusySlot: null, usualPerBusySlot: null }) },
      "2 stays scale_held_blind",
    ],
    ["while the controller is too new to know", { slots: null, settledAt: NOON + 5_000 }, "2 stays scale_settling"],
    [
      "while many small rises together have raised nothing",
      { desired: 20, demand: demand(300), slots: slots({ instances: 20, throughput: 2.1 }), state: rise({ from: 12, to: 13 }) },
      "20 stays scale_held_no_gain",
    ],
  ])("%s", (_, input, expected) => expect(decided(input)).toBe(expected));
});

describe("it grows", () => {
  test.each<readonly [string, InputParts, string]>([
    ["with as many stuck as may be", { slots: slots({ progressing: 8, stuck: 2 }) }, "6 scale_up"],
    ["where nothing is busy", { slots: slots({ progressing: 0, free: 8 }) }, "6 scale_up"],
    ["where no instance speaks of slots and none ever did", { slots: null }, "6 scale_up"],
    [
      "from zero, with nobody there to ask",
      { slots: null, desired: 0, instances: { serving: 0 }, settledAt: NOON + 5_000, bounds: { floor: 0 } },
      "4 scale_up scale_step",
    ],
    [
      "where a busy slot finishes less by chance: few jobs are no measure",
      { slots: slots({ perBusySlot: 0.004, usualPerBusySlot: 0.01 }) },
      "6 scale_up",
    ],
    [
      "where a slot finishes less since many are new",
      { slots: slots({ progressing: 30, busySeconds: 600, perBusySlot: 0.06, throughput: 0.6 }) },
      "6 scale_up",
    ],
    ["where the last rise has raised the throughput", { state: rise(), slots: slots({ throughput: 3 }) }, "6 scale_up"],
    [
      "where long jobs of a rise that is young have not ended yet",
      {
        slots: slots({ usualPerBusySlot: 0.02, perBusySlot: 0.005, throughput: 0.5 }),
        state: rise({ at: NOON - 90_000, throughput: null }),
      },
      "6 scale_up",
    ],
    ["where what was done before the rise was bounded by what arrived", { state: rise({ throughput: null }) }, "6 scale_up"],
    [
      "where so little was added that chance hides it",
      { desired: 20, demand: demand(300), slots: slots({ instances: 20 }), state: rise({ from: 18, to: 20 }) },
      "30 scale_up",
    ],
    ["where the last rise came from zero", { state: rise({ from: 0, throughput: 0 }) }, "6 scale_up"],
    ["where those of the last rise do not all serve yet", { state: rise(), instances: { since: [NOON - 600_000] } }, "6 scale_up"],
    [
      "where they have served for too short to be judged",
      { state: rise(), instances: { since: [NOON - 600_000, NOON - 30_000] } },
      "6 scale_up",
    ],
    ["where nobody has looked for a minute yet, and nothing was held", { state: rise(), slots: slots({ throughput: null }) }, "6 scale_up"],
    [
      "where it was held for what is over, and no rise is to be judged",
      { heldSince: NOON - 60_000, slots: slots({ throughput: null }) },
      "6 scale_up",
    ],
    ["where it has shrunk since the last rise", { state: { ...rise(), direction: "down" } }, "6 scale_up"],
    ["where the free slots could take all that waits", { state: rise(), demand: demand(4, 56), slots: slots({ free: 4 }) }, "6 scale_up"],
  ])("%s", (_, input, expected) => expect(decided(input)).toBe(expected));

  test("it shrinks whatever is stuck: that needs no health", () => {
    const many = { desired: 6, instances: { serving: 6 }, demand: demand(20), recommended: [{ at: NOON - 600_000, size: 2 }] };
    expect(decided({ ...many, slots: slots({ instances: 6, progressing: 10, stuck: 10 }) })).toBe("2 scale_down");
  });
});

describe("a hold", () => {
  const held = { slots: slots({ progressing: 4, stuck: 4 }) };

  test("is bounded: after `holdFor` it is told by another code, and what to do", () => {
    const since = NOON - 15 * 60_000;
    expect(decided({ ...held, heldSince: since + 1 })).toBe("2 stays scale_held_stuck");
    const [why] = decideScale(scalingInput({ ...MORE, ...held, heldSince: since }), NOON).holds;
    expect(why && sentenceOf(why)).toBe(
      "6 instances are wanted and the growth is held back since 2026-11-30T11:45:00.000Z, longer than 15m (6 instances are wanted and 4 of 8 busy slots make no progress (at most 20 % may): more instances would be stuck too, what is stuck is repaired first; held since 2026-11-30T11:45:00.000Z): see with relevo explain which slots are stuck and why their jobs are not reaped; restart those instances, or raise scale.stuck.share",
    );
  });

  test("is looked at again when it becomes long", () => {
    const input = scalingInput({ ...MORE, ...held, heldSince: NOON - 60_000, policy: { maxAge: "1h" } });
    expect(decideScale(input, NOON).nextLookAt).toBe(NOON + 14 * 60_000);
  });

  test("goes on from its first sign when another sign takes its place", () => {
    const [why] = decideScale(
      scalingInput({ ...MORE, slots: slots({ perBusySlot: 0.02, throughput: 0.2 }), heldSince: NOON - 60_000 }),
      NOON,
    ).holds;
    expect(why?.params["since"]).toBe("2026-11-30T11:59:00.000Z");
  });

  test("ends when what was stuck is reaped", () => {
    expect(decided({ slots: slots({ progressing: 8, stuck: 0 }), heldSince: NOON - 60_000 })).toBe("6 scale_up");
  });
});
