import { expect, test } from "vitest";
import { nothingShown, replacementClaims, type Replacement } from "./report.ts";

const SOUND: Replacement = {
  node: "node-a",
  instances: ["orders-a"],
  replacements: ["orders-b on node-b"],
  isFinished: true,
  servingBefore: 3,
  servingLeast: 3,
  client: { sent: 200, ok: 200, failed: 0, sentInWindow: 120, failures: {} },
  acceptedByRoute: 201,
  lost: { forced: 0, obligations: 0, assumedSeals: 0 },
};
const failing = (change: Partial<Replacement>) =>
  replacementClaims({ ...SOUND, ...change }).flatMap(({ claim, held, found }) => (held ? [] : [`${claim}: ${found}`]));

test("a sound replacement holds in each claim, and shows something", () => {
  expect(failing({})).toEqual([]);
  expect(nothingShown(SOUND)).toEqual([]);
});

test.each([
  [{ isFinished: false }, "every instance of the node was replaced and is gone: not within the time"],
  [{ servingLeast: 2 }, "as many served at every look as before: 3 before, 2 at the least"],
  [{ client: { ...SOUND.client, ok: 199, failed: 1 } }, "no request of the client failed: 199 of 200 answered"],
  [
    { lost: { forced: 1, obligations: 2, assumedSeals: 0 } },
    "nothing was lost: no forced loss, no obligation, no assumed seal: 1 forced, 2 obligations, 0 assumed seals",
  ],
])("%j fails its claim", (change, told) => {
  expect(failing(change)).toEqual([told]);
});

test.each([
  [{ client: { ...SOUND.client, sentInWindow: 3 } }, "3 requests were sent while it was replaced, fewer than 20"],
  [{ servingBefore: 1 }, "1 served: with fewer than 2 there is nobody to take over"],
  [{ instances: [] }, "no instance of the pool served on the node"],
  [{ acceptedByRoute: 4 }, "the gateways counted 4 requests on the pool's route: the client went somewhere else"],
  [{ acceptedByRoute: null }, "the gateways counted no requests on the pool's route: the client went somewhere else"],
])("%j shows nothing, whatever was counted", (change, why) => {
  expect(nothingShown({ ...SOUND, ...change })).toEqual([why]);
});
