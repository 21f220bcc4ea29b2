import * as fc from "fast-check";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { RelevoError } from "../kernel/errors.ts";
import { VirtualClock } from "../kernel/virtual-clock.ts";
import { rebalanceRecommendation, spotInterruptionWarning, stateChange } from "../notices/eventbridge/compose.ts";
import { agentReport } from "../notices/agent-report.ts";
import { NOTICE_SOURCES } from "../notices/registry.ts";
import { openStore } from "../store/store.ts";
import { type Store, storeOutcomeUnknown } from "../store/port.ts";
import { correlate } from "./correlate.ts";
import { NoticeDesk, type NoticeDeskOptions } from "./notice-desk.ts";
import { fakeNodes, type FakeNodes } from "./testing/fake-nodes.ts";

const MINUTE = 60_000;

let store: Store;
let clock: VirtualClock;
let ids = 0;

beforeEach(async () => {
  store = await openStore({ path: ":memory:" });
  clock = new VirtualClock();
  ids = 0;
});
afterEach(() => store.close());

function deskOver(nodes: FakeNodes, options: Partial<NoticeDeskOptions> = {}): { readonly desk: NoticeDesk; readonly woken: () => number } {
  let woken = 0;
  const desk = new NoticeDesk({
    store,
    world: nodes.world,
    clock,
    ids: { next: (prefix) => `${prefix}-${++ids}` },
    onChange: () => woken++,
    onOutcome: () => {},
    log: () => {},
    ...options,
  });
  return { desk, woken: () => woken };
}

const said = (desk: NoticeDesk): Record<string, readonly string[]> =>
  Object.fromEntries([...desk.findings()].map(([uid, findings]) => [uid, findings.map(({ reason, noticeId }) => `${reason} ${noticeId}`)]));
const outcomes = async (): Promise<readonly string[]> =>
  (await store.listNotices(20)).map(({ id, outcome }) => `${id} ${outcome}`).toReversed();
const spot = (id: string, machineId = "i-0000001"): string => spotInterruptionWarning({ id, at: clock.now(), machineId });
const take = async (desk: NoticeDesk, body: string, source = "eventbridge"): Promise<void> =>
  void (await desk.receive(source, { body, headers: {} }));

test("a node is found by its machine also where its name is not the machine's private DNS name, and never by a name", async () => {
  const nodes = fakeNodes();
  nodes.put("worker-7.example", "aws:///eu-west-1a/i-0000001");
  nodes.put("i-0000002", "aws:///eu-west-1a/i-0000003");
  const { desk } = deskOver(nodes);
  await take(desk, spot("e1"));
  await take(desk, spot("e2", "i-0000002"));
  expect(said(desk)).toEqual({ "uid-worker-7.example": ["spot_interruption notice-1"] });
});

test("a node that is replaced under the same name is another one: the old machine's notice does not mean it", async () => {
  const nodes = fakeNodes();
  nodes.put("node-a", "aws:///eu-west-1a/i-0000001", "uid-old");
  const { desk } = deskOver(nodes);
  await take(desk, spot("e1"));
  expect(said(desk)).toEqual({ "uid-old": ["spot_interruption notice-1"] });
  nodes.put("node-a", "aws:///eu-west-1a/i-0000009", "uid-new");
  expect(said(desk)).toEqual({});
  expect([desk.knows("i-0000001"), desk.machineOf("uid-old"), desk.machineOf("uid-new")]).toEqual([true, "i-0000001", "i-0000009"]);
});

test("a machine is known by its node, by its NodeClaim before it registers, and a while after it went", async () => {
  const nodes = fakeNodes();
  const { desk } = deskOver(nodes);
  nodes.putClaim("claim-a", "aws:///eu-west-1a/i-0000001");
  nodes.put("node-b", "gce://project/zone/b");
  nodes.remove("node-b");
  expect(["i-0000001", "gce://project/zone/b", "i-0000002"].map((machine) => desk.knows(machine))).toEqual([true, true, false]);
});

test("EventBridge, Auto Scaling and a webhook that speak of one loss are one finding, with the earliest deadline", async () => {
  const nodes = fakeNodes();
  nodes.put("a", "aws:///eu-west-1a/i-0000001");
  const { desk } = deskOver(nodes);
  await take(desk, spot("e1"));
  await take(
    desk,
    JSON.stringify({
      LifecycleHookName: "drain",
      LifecycleTransition: "autoscaling:EC2_INSTANCE_TERMINATING",
      AutoScalingGroupName: "workers",
      EC2InstanceId: "i-0000001",
      LifecycleActionToken: "token-1",
    }),
    "autoscaling",
  );
  const deadline = new Date(clock.now() + 90_000).toISOString();
  await take(desk, JSON.stringify({ id: "w1", kind: "interruption", machines: ["aws:///eu-west-1a/i-0000001"], deadline }), "webhook");
  expect([...desk.findings().values()]).toEqual([
    [{ reason: "spot_interruption", loss: "deadline", deadline: clock.now() + 90_000, noticeId: "notice-3" }],
  ]);
  expect(await outcomes()).toEqual(["notice-1 machine_found", "notice-2 machine_found", "notice-3 machine_found"]);
});

test("a state-change and a lifecycle action for one machine are one finding: that it goes now", async () => {
  const nodes = fakeNodes();
  nodes.put("a", "aws:///eu-west-1a/i-0000001");
  const { desk } = deskOver(nodes);
  await take(desk, stateChange({ id: "e1", at: clock.now(), machineId: "i-0000001" }, "Stopping"));
  await take(desk, spot("e2"));
  expect(said(desk)).toEqual({ "uid-a": ["instance_state_change notice-1"] });
});

test("a recommendation that no interruption follows is released after an hour: pools are told, and the node can be used again", async () => {
  const nodes = fakeNodes();
  nodes.put("a", "aws:///eu-west-1a/i-0000001");
  const { desk, woken } = deskOver(nodes);
  await take(desk, rebalanceRecommendation({ id: "e1", at: clock.now(), machineId: "i-0000001" }));
  await clock.advance(59 * MINUTE);
  expect([said(desk), woken()]).toEqual([{ "uid-a": ["node_rebalance notice-1"] }, 1]);
  await clock.advance(MINUTE);
  expect([said(desk), woken(), await outcomes()]).toEqual([{}, 2, ["notice-1 passed"]]);
});

test("what is taken back is over at once; what is said of it later counts again", async () => {
  const nodes = fakeNodes();
  nodes.put("a", "openstack:///m-1");
  const { desk, woken } = deskOver(nodes);
  const announce = (id: string): Promise<void> =>
    take(desk, JSON.stringify({ id, subject: "change-1", kind: "maintenance", machines: ["openstack:///m-1"] }), "webhook");
  await announce("w1");
  expect(said(desk)).toEqual({ "uid-a": ["scheduled_maintenance notice-1"] });
  await clock.advance(1_000);
  await take(desk, JSON.stringify({ id: "w2", kind: "cancelled", subject: "change-1" }), "webhook");
  expect([said(desk), woken()]).toEqual([{}, 2]);
  await clock.advance(1_000);
  await announce("w3");
  expect(said(desk)).toEqual({ "uid-a": ["scheduled_maintenance notice-3"] });
  await clock.advance(6 * MINUTE);
  expect(await outcomes()).toEqual(["notice-1 withdrawn", "notice-2 passed", "notice-3 machine_found"]);
});

test("a notice for a machine whose node is not seen yet waits while the nodes are not all known, without anybody's event", async () => {
  const nodes = fakeNodes();
  nodes.complete(false);
  const { desk } = deskOver(nodes);
  await take(desk, spot("e1"));
  await clock.advance(10 * MINUTE);
  expect(await outcomes()).toEqual(["notice-1 received"]);
  nodes.complete(true);
  await clock.advance(2_000);
  expect(await outcomes()).toEqual(["notice-1 other_cluster"]);
});

test("another replica sees within a second what one took, and that it was ended; both say the same", async () => {
  const nodes = fakeNodes();
  nodes.put("a", "aws:///eu-west-1a/i-0000001");
  const [one, two] = [deskOver(nodes, { rereadEveryMs: 1_000 }), deskOver(nodes, { rereadEveryMs: 1_000 })];
  await one.desk.start();
  await two.desk.start();
  await take(one.desk, spot("e1"));
  expect(said(two.desk)).toEqual({});
  await clock.advance(1_100);
  expect([said(two.desk), two.woken()]).toEqual([{ "uid-a": ["spot_interruption notice-1"] }, 1]);
  await take(two.desk, spot("e1"));
  expect(await outcomes()).toEqual(["notice-1 machine_found"]);
  await clock.advance(8 * MINUTE);
  expect([said(one.desk), said(two.desk), await outcomes()]).toEqual([{}, {}, ["notice-1 passed"]]);
});

test("what another replica ended is over here too within a second, and pools are told", async () => {
  const nodes = fakeNodes();
  nodes.put("a", "aws:///eu-west-1a/i-0000001");
  const { desk, woken } = deskOver(nodes, { rereadEveryMs: 1_000 });
  await desk.start();
  await take(desk, spot("e1"));
  await clock.advance(1_100);
  expect([said(desk), woken()]).toEqual([{ "uid-a": ["spot_interruption notice-1"] }, 1]);
  await store.settleNotice("notice-1", "withdrawn");
  await clock.advance(1_100);
  expect([said(desk), woken(), desk.open()]).toEqual([{}, 2, []]);
});

test("what is taken back after a restart is over too, however long its subject is", async () => {
  const nodes = fakeNodes();
  nodes.put("a", "openstack:///m-1");
  const event = (id: string, kind: string, data: object): string =>
    JSON.stringify({ specversion: "1.0", source: "s".repeat(500), id, type: `dev.relevo.notice.${kind}`, data });
  const subject = "x".repeat(250);
  await take(deskOver(nodes).desk, event("e1", "maintenance", { subject, machines: ["openstack:///m-1"] }), "webhook");
  const { desk } = deskOver(nodes);
  await desk.start();
  expect(said(desk)).toEqual({ "uid-a": ["scheduled_maintenance notice-1"] });
  await take(desk, event("e2", "cancelled", { subject }), "webhook");
  expect([said(desk), (await store.listNotices(20)).map(({ outcome }) => outcome)]).toEqual([{}, ["received", "withdrawn"]]);
});

test("a withdrawal without machines is ours when what it took back was, also when that is over already", async () => {
  const nodes = fakeNodes();
  nodes.put("a", "openstack:///m-1");
  const { desk } = deskOver(nodes);
  const body = (id: string, kind: string, machines: readonly string[]): string =>
    JSON.stringify({ id, kind, subject: `s-${machines[0]}`, machines });
  for (const machine of ["openstack:///m-1", "openstack:///far"]) await take(desk, body(machine, "maintenance", [machine]), "webhook");
  const webhook = NOTICE_SOURCES.find(({ name }) => name === "webhook");
  const ours: (boolean | undefined)[] = [];
  for (const machine of ["openstack:///m-1", "openstack:///far"]) {
    const withdrawal = JSON.stringify({ id: `no ${machine}`, kind: "cancelled", subject: `s-${machine}` });
    for (const { notice } of webhook ? await desk.take(webhook, { body: withdrawal, headers: {} }) : [])
      ours.push(desk.knowsSubject(notice));
  }
  expect(ours).toEqual([true, false]);
});

test("an agent speaks for the machine of its own node alone; while that is not seen here it is asked to try again", async () => {
  const nodes = fakeNodes();
  nodes.put("a", "aws:///eu-west-1a/i-0000001");
  nodes.put("b", "aws:///eu-west-1a/i-0000002");
  const { desk } = deskOver(nodes);
  const say = async (node: string, providerID: string): Promise<string> => {
    const report = agentReport(
      { providerID },
      {
        kind: "spot/instance-action",
        state: "present",
        document: { action: "terminate", time: "2030-01-01T00:02:00Z" },
        seenAt: clock.now(),
      },
      { ageMs: 0, bootId: null },
    );
    return desk.receive("ec2-metadata", { body: JSON.stringify(report), headers: {} }, node).then(
      ({ accepted, ignored }) => `${accepted.length + ignored.length} kept`,
      (error: RelevoError) => `${error.code} ${error.class}`,
    );
  };
  expect([
    await say("a", "aws:///eu-west-1a/i-0000002"),
    await say("c", "aws:///eu-west-1a/i-0000001"),
    await say("a", "aws:///eu-west-1a/i-0000001"),
  ]).toEqual(["machine_not_yours terminal", "machine_not_yours retryable", "1 kept"]);
  expect(Object.keys(said(desk))).toEqual(["uid-a"]);
});

/** Keeps what it is given and says, so many times, that it does not know. */
function forgetful(times: number): Store {
  let left = times;
  return new Proxy(store, {
    get(target, name: keyof Store) {
      const method = (target[name] as (...input: unknown[]) => Promise<unknown>).bind(target);
      if (name !== "saveNotice") return method;
      return async (...input: unknown[]) => {
        const answer = await method(...input);
        if (left-- > 0) throw storeOutcomeUnknown("the connection broke", undefined);
        return answer;
      };
    },
  });
}

test("what the store kept without saying so is acted upon, whether its sender tries again or not", async () => {
  const nodes = fakeNodes();
  nodes.put("node-a", "aws:///eu-west-1a/i-0000001");
  const { desk, woken } = deskOver(nodes, { store: forgetful(1) });
  await expect(take(desk, spot("e1"))).rejects.toMatchObject({ code: "store_unavailable" });
  expect(said(desk)).toEqual({});
  await clock.advance(1_100);
  expect([said(desk), woken()]).toEqual([{ "uid-node-a": ["spot_interruption notice-1"] }, 1]);
});

test("what is a duplicate, and not known here, is read from the store", async () => {
  const nodes = fakeNodes();
  nodes.put("node-a", "aws:///eu-west-1a/i-0000001");
  const { desk } = deskOver(nodes);
  await desk.start();
  await take(deskOver(nodes).desk, spot("e1"));
  expect(await desk.receive("eventbridge", { body: spot("e1"), headers: {} })).toMatchObject({ duplicates: ["notice-2"] });
  await clock.advance(1_100);
  expect(said(desk)).toEqual({ "uid-node-a": ["spot_interruption notice-1"] });
});

test("a store that is away is read again until it answers", async () => {
  const nodes = fakeNodes();
  nodes.put("node-a", "aws:///eu-west-1a/i-0000001");
  let isAway = true;
  const away = new Proxy(forgetful(1), {
    get(target, name: keyof Store) {
      if (name !== "openNoticesBeside") return target[name];
      return (since: number, known: ReadonlySet<string>) =>
        isAway ? Promise.reject(storeOutcomeUnknown("away", undefined)) : target.openNoticesBeside(since, known);
    },
  });
  const { desk } = deskOver(nodes, { store: away });
  await expect(take(desk, spot("e1"))).rejects.toMatchObject({ code: "store_unavailable" });
  await clock.advance(5_000);
  isAway = false;
  await clock.advance(1_100);
  expect(said(desk)).toEqual({ "uid-node-a": ["spot_interruption notice-1"] });
});

test("looking for what other replicas took reads the rows of new notices only", async () => {
  const rows: (readonly string[])[] = [];
  const watched = new Proxy(store, {
    get(target, name: keyof Store) {
      if (name !== "openNoticesBeside") return typeof target[name] === "function" ? target[name].bind(target) : target[name];
      return async (since: number, known: ReadonlySet<string>) => {
        const read = await target.openNoticesBeside(since, known);
        rows.push(read.unknown.map(({ id }) => id));
        return read;
      };
    },
  });
  const nodes = fakeNodes();
  const { desk } = deskOver(nodes, { store: watched, rereadEveryMs: 1_000 });
  await desk.start();
  const other = deskOver(nodes).desk;
  for (const id of ["e1", "e2"]) {
    await take(other, spot(id, `i-000000${id}`));
    await clock.advance(3_000);
  }

  expect(rows).toEqual([["notice-1"], [], [], ["notice-2"], [], []]);
  expect(desk.open().map(({ id }) => id)).toEqual(["notice-1", "notice-2"]);
  desk.stop();
});

test("a replica that is started again knows what was taken before", async () => {
  const nodes = fakeNodes();
  nodes.put("a", "aws:///eu-west-1a/i-0000001");
  await take(deskOver(nodes).desk, spot("e1"));
  const { desk } = deskOver(nodes);
  await desk.start();
  expect(said(desk)).toEqual({ "uid-a": ["spot_interruption notice-1"] });
});

const aMove = fc.oneof(
  fc.record({ do: fc.constant("notice" as const), id: fc.nat(8), machines: fc.subarray([1, 2, 3, 4], { minLength: 1 }), kind: fc.nat(3) }),
  fc.record({ do: fc.constant("node" as const), name: fc.nat(3), machine: fc.integer({ min: 1, max: 4 }), uid: fc.nat(5) }),
  fc.record({ do: fc.constant("gone" as const), name: fc.nat(3) }),
  fc.record({ do: fc.constant("wait" as const), ms: fc.constantFrom(500, 61_000, 5 * MINUTE, 61 * MINUTE) }),
);

test("looking only at what changed says the same as looking at everything", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(aMove, { maxLength: 25 }), async (moves) => {
      await store.close();
      store = await openStore({ path: ":memory:" });
      clock = new VirtualClock();
      const nodes = fakeNodes();
      const { desk } = deskOver(nodes);
      for (const move of moves) {
        if (move.do === "notice") {
          const kind = ["interruption", "rebalance", "maintenance", "cancelled"][move.kind];
          const machines = move.machines.map((machine) => `gce://p/z/m${machine}`);
          const body = JSON.stringify({ id: `${move.id} ${kind}`, kind, subject: `s${move.id % 3}`, machines });
          await take(desk, body, "webhook");
        } else if (move.do === "node")
          nodes.put(`n${move.name}`, `gce://p/z/m${move.machine}`, `u${move.uid}-${move.name}-${move.machine}`);
        else if (move.do === "gone") nodes.remove(`n${move.name}`);
        else await clock.advance(move.ms + 1_001);
        const whole = correlate({
          notices: desk.open(),
          nodes: nodes.world.nodes.list(),
          nodesComplete: true,
          departedMachines: new Set(
            ["gce://p/z/m1", "gce://p/z/m2", "gce://p/z/m3", "gce://p/z/m4"].filter((machine) => desk.knows(machine)),
          ),
          now: clock.now(),
        });
        expect(said(desk)).toEqual(
          Object.fromEntries([...whole.findings].map(([uid, all]) => [uid, all.map(({ reason, noticeId }) => `${reason} ${noticeId}`)])),
        );
      }
      desk.stop();
    }),
    { numRuns: 60 },
  );
});
