/** The life of a notice, from the webhook's body to its end, over the real store: what one pass leaves is what the next one finds. */
import { afterEach, beforeEach, expect, test } from "vitest";
import { rebalanceRecommendation, spotInterruptionWarning } from "../notices/eventbridge/compose.ts";
import { eventBridgeSource } from "../notices/eventbridge/parse.ts";
import { receiveNotice } from "../notices/receive.ts";
import type { Store } from "../store/port.ts";
import { openStore } from "../store/store.ts";
import { correlate, type NodeIdentity } from "./correlate.ts";

const NOON = Date.UTC(2030, 0, 1, 12);
const MINUTE = 60_000;
const NODE: NodeIdentity = { metadata: { uid: "uid-a" }, spec: { providerID: "aws:///zone-1/i-0000001" } };

let store: Store;
let now = NOON;
let ids = 0;

beforeEach(async () => {
  store = await openStore({ path: ":memory:" });
  now = NOON;
  ids = 0;
});
afterEach(() => store.close());

async function receive(body: string): Promise<string> {
  const received = await receiveNotice(
    eventBridgeSource,
    { body, headers: {} },
    { store, clock: { now: () => now }, ids: { next: (prefix) => `${prefix}-${++ids}` } },
  );
  return received.map(({ outcome }) => outcome).join(" ");
}

/** One pass, as after a restart: nothing is remembered but what the store holds. */
async function pass(nodes: readonly NodeIdentity[], departed: readonly string[] = []): Promise<Record<string, readonly string[]>> {
  const notices = await store.openNotices(now - 24 * 60 * MINUTE);
  const { findings, settlements } = correlate({ notices, nodes, nodesComplete: true, departedMachines: new Set(departed), now });
  for (const { noticeId, outcome } of settlements) await store.settleNotice(noticeId, outcome);
  return Object.fromEntries([...findings].map(([uid, found]) => [uid, found.map(({ reason, noticeId }) => `${reason} ${noticeId}`)]));
}

const outcomes = async (): Promise<readonly string[]> => (await store.listNotices(10)).map(({ id, outcome }) => `${id} ${outcome}`);
const spot = (id: string, machineId = "i-0000001"): string => spotInterruptionWarning({ id, at: now, machineId });

test("a warning speaks until its node is gone, also after a restart, and is ended then", async () => {
  expect(await receive(spot("e1"))).toBe("received");
  expect(await outcomes()).toEqual(["notice-1 received"]);
  expect(await pass([NODE])).toEqual({ "uid-a": ["spot_interruption notice-1"] });
  now += 2 * MINUTE;
  expect(await pass([NODE])).toEqual({ "uid-a": ["spot_interruption notice-1"] });
  expect(await pass([])).toEqual({});
  expect(await outcomes()).toEqual(["notice-1 machine_found"]);
  now += 3 * MINUTE;
  await pass([]);
  expect([await outcomes(), await store.openNotices(0)]).toEqual([["notice-1 matched"], []]);
});

test("a duplicate leaves no second row and no second finding (I17)", async () => {
  expect([await receive(spot("e1")), await receive(spot("e1"))]).toEqual(["received", "duplicate"]);
  expect(await pass([NODE])).toEqual({ "uid-a": ["spot_interruption notice-1"] });
  expect(await outcomes()).toEqual(["notice-1 machine_found"]);
});

test("a recommendation and a warning about one machine are two findings, of two classes", async () => {
  await receive(rebalanceRecommendation({ id: "e0", at: now, machineId: "i-0000001" }));
  await receive(spot("e1"));
  expect(await pass([NODE])).toEqual({ "uid-a": ["node_rebalance notice-1", "spot_interruption notice-2"] });
});

test("a notice for an unknown machine waits, is matched when the node registers, or was another cluster's", async () => {
  await receive(spot("e1", "i-0000002"));
  await receive(spot("e2"));
  expect(await pass([])).toEqual({});
  expect(await outcomes()).toEqual(["notice-2 unknown_machine", "notice-1 unknown_machine"]);
  now += 4 * MINUTE;
  expect(await pass([NODE])).toEqual({ "uid-a": ["spot_interruption notice-2"] });
  now += MINUTE;
  await pass([NODE]);
  expect(await outcomes()).toEqual(["notice-2 machine_found", "notice-1 other_cluster"]);
});

test("a notice for a node already gone is ended at once", async () => {
  await receive(spot("e1"));
  expect(await pass([], ["i-0000001"])).toEqual({});
  expect([await outcomes(), await store.openNotices(0)]).toEqual([["notice-1 node_gone"], []]);
});

test("what cannot be understood leaves no row", async () => {
  for (const body of ["", "{", "[]", spot("e1").replace("aws.ec2", ""), spot("e1", "not-an-instance")])
    await expect(receive(body)).rejects.toMatchObject({ code: "notice_malformed" });
  expect(await outcomes()).toEqual([]);
});
