/**
 * A controller that dies at every one of its port calls, before and after the effect, and another that takes over: the end is the one of a run without a
 * crash, and no effect is there twice (I27). A new call in a step is covered at once, because the calls are counted by a run without a crash.
 */
import { describe, expect, test } from "vitest";
import { ANNOTATIONS } from "../model/marks.ts";
import { reason } from "../model/reasons.ts";
import type { StepDraft } from "../model/step.ts";
import { NODES } from "../kube/resources.ts";
import type { InstanceRecord } from "../model/instance.ts";
import { createExecutor } from "./executor.ts";
import { renderBlueprint } from "./render-blueprint.ts";
import { Fuse, fused, fusedClock, type Side } from "./testing/fuse.ts";
import { aNode, aRunningInstance, aWorld, BLUEPRINT, HOST, INSTANCE, POOL, recordOf, storedInstance, type World } from "./testing/world.ts";

interface Scenario {
  /** Sets the world up and says what is decided, as long as `record` is as it is. */
  prepare(world: World): Promise<(record: InstanceRecord | undefined) => StepDraft | undefined>;
  /** What counts, at the end. */
  picture(world: World): Promise<unknown>;
}

const NO_LOG = { info: () => {}, warn: () => {}, error: () => {} };
/** Virtual; a run without a crash needs none of it. */
const LIMIT_MS = 120_000;

/** One controller process: takes the pool over, goes on with what is open, decides what its scenario wants, and again after each step. */
async function controller(world: World, fuse: Fuse, decide: (record: InstanceRecord | undefined) => StepDraft | undefined): Promise<void> {
  const store = fused(world.store, fuse);
  const clock = fusedClock(world.clock, fuse);
  let pass = (): void => {};
  const executor = createExecutor({
    store,
    kube: fused(world.kube, fuse),
    driver: fused(world.instances, fuse),
    clock,
    random: { next: () => 0.5 },
    log: NO_LOG,
    onSettled: () => pass(),
  });
  const authority = await store.claim(POOL, "controller", clock.now());
  pass = () => {
    void store.readPool(POOL).then((rows) => {
      executor.resume(authority, rows?.openSteps ?? []);
      const draft = decide(rows?.instances.find(({ id }) => id === INSTANCE));
      if (draft !== undefined && rows?.openSteps.length === 0) void executor.start(authority, draft);
    });
  };
  pass();
}

interface Run {
  readonly calls: number;
  readonly crashed: boolean;
  readonly picture: unknown;
}

async function run({ prepare, picture }: Scenario, crashAt?: number, side?: Side): Promise<Run> {
  const world = await aWorld();
  const decide = await prepare(world);
  world.effects.length = 0;
  const first = new Fuse(crashAt, side);
  void controller(world, first, decide);
  await world.clock.advance(LIMIT_MS);
  if (!first.isAlive) {
    void controller(world, new Fuse(), decide);
    await world.clock.advance(LIMIT_MS);
  }
  const steps = await world.store.listSteps(POOL, 100);
  const pictured = {
    steps: steps.map(({ id, state, outcome }) => `${id} ${state} ${outcome}`),
    effects: [...world.effects].toSorted(),
    own: await picture(world),
  };
  await world.store.close();
  return { calls: first.calls, crashed: !first.isAlive, picture: pictured };
}

const draft = (id: string, kind: string, payload: unknown): StepDraft => ({
  id,
  operation: "op",
  pool: POOL,
  instance: INSTANCE,
  kind,
  payload,
  reason: reason("created"),
});

async function claimed(world: World) {
  return world.store.claim(POOL, "before", world.clock.now());
}

const SCENARIOS: Readonly<Record<string, Scenario>> = {
  create: {
    async prepare(world) {
      await storedInstance(world.store, await claimed(world), 0, "pending");
      const createdBy = `create/${INSTANCE}`;
      const objects = renderBlueprint(BLUEPRINT, { instance: INSTANCE, pool: "orders", site: "local", namespace: "default" });
      return (record) =>
        record?.phase === "pending"
          ? draft(createdBy, "create_instance/1", { instance: INSTANCE, namespace: "default", createdBy, objects })
          : undefined;
    },
    async picture({ store }) {
      const record = await recordOf(store);
      return { phase: record?.phase, objects: record?.objects.map(({ kind, name }) => `${kind} ${name}`) };
    },
  },
  cordon: {
    async prepare(world) {
      await claimed(world);
      const { uid } = (await aNode(world.kube, "a")).metadata;
      return () => draft(`cordon/${uid}/e1`, "cordon_node/1", { node: { name: "a", uid }, evidence: "e1" });
    },
    async picture({ kube }) {
      const node = await kube.get({ type: NODES, name: "a" });
      return { spec: node["spec"], by: node.metadata.annotations?.[ANNOTATIONS.cordonedBy] };
    },
  },
  protect: {
    async prepare(world) {
      await claimed(world);
      const { pod, objects } = await aRunningInstance(world, "a");
      const { name, uid } = pod.metadata;
      return () => draft(`protect/${uid}`, "protect_pod/1", { pod: { namespace: "default", name, uid }, objects });
    },
    picture: async () => null,
  },
  admit: {
    async prepare(world) {
      const node = await aNode(world.kube, "a");
      const { process } = await aRunningInstance(world, "a");
      await storedInstance(world.store, await claimed(world), 0, "validating");
      const payload = { instance: INSTANCE, incarnation: 1, from: "validating", process, node: { name: "a", uid: node.metadata.uid } };
      return (record) => (record?.phase === "validating" ? draft(`admit/${INSTANCE}/1`, "admit_instance/1", payload) : undefined);
    },
    async picture({ store, instances }) {
      const record = await recordOf(store);
      const { performed, state } = instances.processes.get(HOST) ?? {};
      return { phase: record?.phase, bootId: record?.incarnation.bootId, performed, state };
    },
  },
  drain: {
    async prepare(world) {
      const { process } = await aRunningInstance(world, "a");
      await storedInstance(world.store, await claimed(world), 0, "serving");
      const payload = { instance: INSTANCE, incarnation: 1, from: "serving", loss: "deadline", deadline: 1e15, process };
      return (record) =>
        record?.phase === "serving" ? draft(`drain/${INSTANCE}/1/deadline/1e15`, "drain_instance/1", payload) : undefined;
    },
    async picture({ store, instances }) {
      const record = await recordOf(store);
      const { performed, state, deadline } = instances.processes.get(HOST) ?? {};
      return { phase: record?.phase, loss: record?.drainLoss, generation: record?.drainGeneration, performed, state, deadline };
    },
  },
  close: {
    async prepare(world) {
      const { process } = await aRunningInstance(world, "a");
      await storedInstance(world.store, await claimed(world), 0, "draining", { drainLoss: "voluntary" });
      const payload = { instance: INSTANCE, incarnation: 1, loss: "voluntary", process };
      return (record) => (record?.phase === "draining" ? draft(`close/${INSTANCE}/1`, "close_instance/1", payload) : undefined);
    },
    async picture({ store, instances }) {
      const record = await recordOf(store);
      return {
        phase: record?.phase,
        seal: record?.seal,
        performed: instances.processes.get(HOST)?.performed,
        losses: await store.countLosses(POOL),
      };
    },
  },
  delete: {
    async prepare(world) {
      const { objects } = await aRunningInstance(world, "a");
      await storedInstance(world.store, await claimed(world), 0, "sealed", { seal: "confirmed" });
      const payload = { instance: INSTANCE, namespace: "default", from: "sealed", objects, createdBy: `create/${INSTANCE}` };
      return (record) => (record?.phase === "sealed" ? draft(`delete/${INSTANCE}`, "delete_instance/1", payload) : undefined);
    },
    async picture({ store }) {
      return { phase: (await recordOf(store))?.phase };
    },
  },
  uncordon: {
    async prepare(world) {
      await claimed(world);
      const { uid } = (await aNode(world.kube, "a", { unschedulable: true })).metadata;
      await world.kube.patch({ type: NODES, name: "a" }, { metadata: { annotations: { [ANNOTATIONS.cordonedBy]: "mark" } } });
      return () => draft(`uncordon/${uid}/mark`, "uncordon_node/1", { node: { name: "a", uid }, cordonedBy: "mark" });
    },
    async picture({ kube }) {
      const node = await kube.get({ type: NODES, name: "a" });
      return { spec: node["spec"], annotations: node.metadata.annotations };
    },
  },
};

describe.each(Object.entries(SCENARIOS))("%s", (_, scenario) => {
  test("ends as without a crash, wherever the controller dies, and nothing is done twice (I27)", async () => {
    const undisturbed = await run(scenario);
    expect(undisturbed.calls).toBeGreaterThan(4);

    const differing: unknown[] = [];
    for (let call = 1; call <= undisturbed.calls; call++) {
      for (const side of ["before", "after"] as const) {
        const { crashed, picture } = await run(scenario, call, side);
        expect(crashed).toBe(true);
        if (JSON.stringify(picture) !== JSON.stringify(undisturbed.picture)) differing.push({ call, side, picture });
      }
    }

    expect({ picture: undisturbed.picture, differing }).toEqual({ picture: undisturbed.picture, differing: [] });
  });
});

test("the undisturbed end of each is the wanted one", async () => {
  const ends = await Promise.all(
    Object.entries(SCENARIOS).map(async ([name, scenario]) => [name, ((await run(scenario)).picture as { steps: string[] }).steps]),
  );

  expect(Object.fromEntries(ends)).toEqual({
    create: [`create/${INSTANCE} done created`],
    cordon: [expect.stringMatching(/^cordon\/.* done cordoned$/)],
    protect: [expect.stringMatching(/^protect\/.* done protected$/)],
    admit: [`admit/${INSTANCE}/1 done admitted`],
    drain: [`drain/${INSTANCE}/1/deadline/1e15 done told`],
    close: [`close/${INSTANCE}/1 done closed`],
    delete: [`delete/${INSTANCE} done absent`],
    uncordon: [expect.stringMatching(/^uncordon\/.* done uncordoned$/)],
  });
});
