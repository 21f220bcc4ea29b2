/** A part is away, or a reply is lost, in the middle of a replacement (D10, D12, D13, I27). Level: simulated. */
import { afterEach, expect, test } from "vitest";
import { ANNOTATIONS } from "../../src/model/marks.ts";
import { type Change, type Store, storeUnavailable } from "../../src/store/port.ts";
import { Harness, ordersPool } from "./harness.ts";
import { intercept, type StoreCall } from "./intercept.ts";
import { type Call, isWrite, lineOf, serverAway } from "./observed-kube.ts";

const MINUTE = 60_000;

let harness: Harness;
afterEach(() => harness.close());

function apiAway(which: (call: Call) => boolean = () => true): void {
  harness.kube.failing = (call) => (which(call) ? serverAway() : undefined);
  harness.kube.breakWatches();
}

function apiBack(): void {
  harness.kube.failing = () => undefined;
}

async function made(): Promise<readonly string[]> {
  return harness.kube
    .writes()
    .filter(({ verb, kind }) => verb === "create" && kind === "Deployment")
    .map(lineOf);
}

type Stage = "creating" | "preparing" | "waiting_for_pods" | "draining";

async function hasReached(stage: Stage): Promise<boolean> {
  if (stage === "waiting_for_pods") return (await harness.reasons()).some((line) => line.endsWith(stage));
  return (await harness.records()).some(({ phase }) => phase === stage);
}

test.for<[string, Stage]>([
  ["from before its objects are made", "creating"],
  ["while it is prepared", "preparing"],
  ["while its pod has a place and is not ready", "waiting_for_pods"],
  ["while the old one drains", "draining"],
])(
  "a replacement that was accepted completes after 10 minutes of API errors (%s), the drift gone and the mode Off; our cordon stays (D10)",
  async ([, stage]) => {
    harness = await Harness.start({ model: () => ({ readyAfterMs: 2_000 }) });
    const [victim] = await harness.serve();
    const node = victim?.incarnation.nodeName ?? "";
    if (stage === "draining") harness.gateways[0]?.hold(victim?.id ?? "", { requests: 1 });
    if (stage === "creating") apiAway(({ verb, kind }) => verb === "create" && kind === "Deployment");
    await harness.drift(node);
    await harness.until(`it is ${stage}`, () => hasReached(stage));
    await harness.until(
      "the node is cordoned",
      async () => (await harness.node(node)).metadata.annotations?.[ANNOTATIONS.cordonedBy] !== undefined,
    );

    apiAway();
    await harness.clearDrift(node);
    await harness.setMode("Off");
    for (const end = harness.clock.now() + 10 * MINUTE; harness.clock.now() < end; await harness.pass(5_000))
      expect((await harness.serving()).length).toBeGreaterThanOrEqual(2);
    harness.gateways[0]?.release(victim?.id ?? "");
    apiBack();
    await harness.until("it is replaced", async () => (await harness.phase(victim?.id ?? "")) === "deleted", 5 * MINUTE);

    expect((await harness.serving()).length).toBe(2);
    expect(await harness.node(node)).toMatchObject({
      spec: { unschedulable: true },
      metadata: { annotations: { [ANNOTATIONS.cordonedBy]: expect.stringMatching(/^cordon/) } },
    });
    expect((await harness.evidence()).map(({ reason, loss }) => [reason, loss])).toEqual([["node_drifted", "voluntary"]]);
    expect((await harness.controlPlane.listCordons()).map((cordon) => cordon.node)).toEqual([node]);
    await harness.pass(5 * MINUTE);
    expect(harness.runtime.containers().length).toBe(2);
    // What cannot be seen is not held against the candidate.
    expect((await harness.store.listInstances("default/orders", 10)).map(({ failure }) => failure)).toEqual([null, null, null]);
  },
);

test("a replacement that was accepted goes on with another candidate when its first one fails after the mode was turned Off (D10, D14)", async () => {
  let areBroken = false;
  harness = await Harness.start({ model: () => (areBroken ? { readyAfterMs: undefined } : {}) });
  const [victim] = await harness.serve(ordersPool({ disruption: { candidates: { readyWithin: "20s" } } }));
  areBroken = true;
  await harness.drift(victim?.incarnation.nodeName ?? "");
  await harness.until("its candidate is prepared", () => hasReached("waiting_for_pods"));

  await harness.setMode("Off");
  await harness.pass(22_000);
  areBroken = false;
  await harness.until("it is replaced", async () => (await harness.phase(victim?.id ?? "")) === "deleted", 5 * MINUTE);
  expect((await harness.serving()).length).toBe(2);
});

test("a lost process is noticed and given no traffic while the API server is away, and replaced when it is back (D12)", async () => {
  harness = await Harness.start();
  const [victim] = await harness.serve();
  apiAway();
  harness.instances.unreachable.add(victim?.incarnation.host ?? "");
  await harness.pass(2 * MINUTE);
  expect((await harness.evidence()).map(({ instance, reason }) => [instance, reason])).toEqual([[victim?.id, "process_unreachable"]]);
  expect(harness.gateways[0]?.routed()).not.toContain(victim?.id);

  apiBack();
  await harness.until("it is replaced", async () => (await harness.serving()).some(({ replaces }) => replaces === victim?.id), 3 * MINUTE);
});

test("the lost reply of an admission is answered by a replay of the same step to the same process, once (D13, I27)", async () => {
  harness = await Harness.start();
  let lost = 0;
  harness.instances.losing = (name) => name === "admit" && ++lost <= 3;
  const [record] = await harness.serve(ordersPool({ desired: 1 }));

  const admissions = (await harness.steps()).filter(({ kind }) => kind === "admit_instance/1");
  expect(admissions.map(({ state, outcome, instance }) => ({ state, outcome, instance }))).toEqual([
    { state: "done", outcome: "admitted", instance: record?.id },
  ]);
  const process = harness.instances.processes.get(record?.incarnation.host ?? "");
  expect(process?.admittedBy).toBe(admissions[0]?.id);
  expect(process?.performed.filter((line) => line.startsWith("admit"))).toEqual([`admit ${admissions[0]?.id}`]);
  expect(record?.incarnation).toMatchObject({ number: 1, bootId: process?.bootId });
});

test("when the process that was admitted is another by the time of the replay, the new one is admitted by a step of its own (D13)", async () => {
  harness = await Harness.start();
  let host: string | undefined;
  harness.instances.losing = (name) => {
    if (name !== "admit" || host !== undefined) return false;
    host = [...harness.instances.processes.keys()][0];
    harness.crash(host ?? "");
    return true;
  };
  const [record] = await harness.serve(ordersPool({ desired: 1 }));

  const process = harness.instances.processes.get(record?.incarnation.host ?? "");
  expect(record?.incarnation).toMatchObject({ number: 2, bootId: process?.bootId });
  const admissions = (await harness.steps()).filter(({ kind }) => kind === "admit_instance/1");
  expect(admissions.map(({ state }) => state).toSorted()).toEqual(["done", "superseded"]);
  expect(process?.performed.filter((line) => line.startsWith("admit"))).toEqual([
    `admit ${admissions.find(({ state }) => state === "done")?.id}`,
  ]);
});

/** Writes that it is told to refuse are refused as SQLite's are when the disk is full: nothing of them is applied. */
class FullDisk {
  isFull: (changes: readonly Change[]) => boolean = () => false;
  refused = 0;

  readonly wrap = (store: Store): Store =>
    intercept(store, (call, go) => {
      if (!this.#refuses(call)) return go();
      this.refused++;
      return Promise.reject(storeUnavailable("the disk is full", undefined));
    });

  #refuses({ name, input }: StoreCall): boolean {
    if (name === "commit") return this.isFull(input[1] as readonly Change[]);
    return name === "saveNotice" && this.isFull([]);
  }
}

test.for(["create_instance/1", "cordon_node/1", "drain_instance/1", "delete_instance/1"])(
  "a disk that is full while a step %s is recorded: it has no effect before there is space, and then exactly one (I27)",
  async (kind) => {
    const disk = new FullDisk();
    harness = await Harness.start({ store: disk.wrap });
    const [victim] = await harness.serve();
    disk.isFull = (changes) => changes.some((change) => change.kind === "record_step" && change.step.kind === kind);
    const makes = (await made()).length;
    const before = harness.kube.writes().length;
    const since = harness.clock.now();
    // Without work that keeps it there, it would be gone before its node can be cordoned.
    if (kind === "cordon_node/1") harness.gateways[0]?.hold(victim?.id ?? "", { requests: 1 });

    await harness.drift(victim?.incarnation.nodeName ?? "");
    await harness.pass(2 * MINUTE);
    expect(disk.refused).toBeGreaterThan(1);
    const open = await harness.steps();
    expect(open.filter((step) => step.kind === kind && step.recordedAt >= since)).toEqual([]);
    const verbs = harness.kube
      .writes()
      .slice(before)
      .map(({ verb, kind: of }) => `${verb} ${of}`);
    expect(verbs).not.toContain(
      { "create_instance/1": "create Deployment", "cordon_node/1": "patch Node", "delete_instance/1": "delete Deployment" }[kind] ?? "-",
    );
    expect((await harness.serving()).length).toBeGreaterThanOrEqual(2);

    disk.isFull = () => false;
    await harness.until(
      "the step is done",
      async () => (await harness.steps()).some((step) => step.kind === kind && step.recordedAt >= since),
      MINUTE,
    );
    harness.gateways[0]?.release(victim?.id ?? "");
    await harness.until("it is replaced", async () => (await harness.phase(victim?.id ?? "")) === "deleted", 3 * MINUTE);
    expect((await harness.steps()).filter((step) => step.kind === kind && step.recordedAt >= since).map(({ state }) => state)).toEqual([
      "done",
    ]);
    expect((await made()).length).toBe(makes + 1);
    expect((await harness.serving()).length).toBe(2);
  },
);

test("a disk that is full: nothing is acknowledged nor done, traffic goes on, and all of it is made up for when there is space", async () => {
  const disk = new FullDisk();
  harness = await Harness.start({ store: disk.wrap });
  const [victim] = await harness.serve();
  const node = victim?.incarnation.nodeName ?? "";
  await harness.pass(5_000);
  const routed = harness.gateways[0]?.routed();
  const before = harness.kube.calls.length;
  disk.isFull = () => true;

  expect(await harness.warn(harness.machineOf(node))).toMatchObject({ status: 503, body: { error: { code: "store_unavailable" } } });
  await harness.drift(node);
  await harness.pass(5 * MINUTE);
  expect(
    harness.kube.calls
      .slice(before)
      .filter(isWrite)
      .filter(({ kind }) => kind !== "Event" && kind !== "Pool")
      .map(lineOf),
  ).toEqual([]);
  expect(await harness.evidence()).toEqual([]);
  expect(harness.gateways[0]?.routed()).toEqual(routed);

  disk.isFull = () => false;
  expect((await harness.warn(harness.machineOf(node))).status).toBe(202);
  await harness.until("it is replaced", async () => (await harness.phase(victim?.id ?? "")) === "deleted", 3 * MINUTE);
  expect((await harness.evidence()).map(({ reason }) => reason).toSorted()).toEqual(["node_drifted", "spot_interruption"]);
});

test("what is past its time is forgotten while the controller runs, batch by batch", async () => {
  const collected: number[] = [];
  harness = await Harness.start({
    store: (store) =>
      intercept(store, async ({ name }, go) => {
        const answer = await go();
        if (name === "collect") collected.push(Number(answer));
        return answer;
      }),
  });
  const old = { source: "eventbridge", body: "{}", outcome: "ignored", machineIds: [], deadline: null, reason: null };
  for (let count = 0; count < 600; count++)
    await harness.store.saveNotice({
      ...old,
      id: `old-${count}`,
      dedupeKey: `old-${count}`,
      receivedAt: harness.clock.now() - 8 * 24 * 60 * MINUTE,
    });

  await harness.pass(11 * MINUTE);
  expect(collected.filter((rows) => rows > 0)).toEqual([500, 100]);
  expect(await harness.store.listNotices(10)).toEqual([]);
});
