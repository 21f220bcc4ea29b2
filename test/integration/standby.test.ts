/** Warm standby: kept at its number, taken at a notice or a loss, and never before it is well (S2, S4). Level: simulated. */
import { afterEach, expect, test } from "vitest";
import type { InstanceRecord } from "../../src/model/instance.ts";
import { POOLS } from "../../src/kube/resources.ts";
import { Harness, ordersPool } from "./harness.ts";

let harness: Harness;
afterEach(() => harness.close());

const warm = async (): Promise<readonly InstanceRecord[]> =>
  (await harness.records()).filter(({ phase, purpose }) => phase === "standby" && purpose === "standby");
const untilWarm = (count: number): Promise<void> =>
  harness.until(`${count} are warm`, async () => (await warm()).length === count, 120_000);

async function interrupt(victim: InstanceRecord | undefined): Promise<void> {
  const node = victim?.incarnation.nodeName ?? "";
  const machine = harness.machineOf(node);
  harness.cluster.provisioner.interrupt(node, { deadlineMs: 120_000 });
  expect((await harness.warn(machine)).status).toBe(202);
}

async function patchPool(spec: Readonly<Record<string, unknown>>): Promise<void> {
  await harness.cluster.api.patch({ type: POOLS, namespace: "default", name: "orders" }, { spec });
}

const callsOf = (instance: InstanceRecord | undefined): readonly string[] =>
  harness.instances.processes.get(instance?.incarnation.host ?? "")?.performed.map((line) => line.split(" ")[0] ?? "") ?? [];

test("a standby is prepared and takes no traffic, does not serve, and holds no place (S2)", async () => {
  harness = await Harness.start({ nodes: 6 });
  await harness.serve(ordersPool({ desired: 2, standby: 2 }));
  await untilWarm(2);
  await harness.pass(10_000);

  expect((await harness.records()).map(({ phase, purpose, ordinal }) => `${phase} ${purpose} ${ordinal}`)).toEqual([
    "serving fill 0",
    "serving fill 1",
    "standby standby -1",
    "standby standby -1",
  ]);
  const [standby] = await warm();
  expect(callsOf(standby)).toEqual(["prepare"]);
  expect(harness.gateways[0]?.routed()).not.toContain(standby?.id);
  expect(await harness.pool()).toMatchObject({ serving: 2, standby: 2 });
  expect(await harness.reasons()).toContain(`${standby?.id} standby_ready`);
});

test("at a notice the standby is admitted in the place of the one that goes, and another is made (S2, S3)", async () => {
  harness = await Harness.start({ nodes: 6 });
  const [victim] = await harness.serve(ordersPool({ desired: 2, standby: 1 }));
  await untilWarm(1);
  const [standby] = await warm();
  const noticedAt = harness.clock.now();
  await interrupt(victim);
  await harness.until("it serves", async () => (await harness.phase(standby?.id ?? "")) === "serving");

  expect(harness.clock.now() - noticedAt).toBeLessThan(5_000);
  expect(await harness.instance(standby?.id ?? "")).toMatchObject({
    purpose: "replace",
    replaces: victim?.id,
    ordinal: victim?.ordinal,
  });
  await harness.until("the old one is gone", async () => (await harness.phase(victim?.id ?? "")) === "deleted");
  await untilWarm(1);
  expect((await harness.serving()).length).toBe(2);
  expect((await harness.pool()).losses).toEqual([{ loss: "deadline", instances: 1, obligations: 0, assumedSeals: 0 }]);
});

test("a standby takes over from a process that is lost without a word, with mode Off too (D12)", async () => {
  harness = await Harness.start({ nodes: 6, provisioner: { vanishAfterMs: 5_000 } });
  const [victim] = await harness.serve(ordersPool({ desired: 2, standby: 1, mode: "Off" }));
  await untilWarm(1);
  const [standby] = await warm();
  await harness.cluster.provisioner.kill(victim?.incarnation.nodeName ?? "");
  await harness.until("it serves", async () => (await harness.phase(standby?.id ?? "")) === "serving", 120_000);
  expect(await harness.instance(standby?.id ?? "")).toMatchObject({ replaces: victim?.id, ordinal: victim?.ordinal });
  await untilWarm(1);
  expect((await harness.serving()).length).toBe(2);
});

test("a standby whose check fails is not taken: the next one is, and until that serves the old one hears nothing of a drain (S4)", async () => {
  harness = await Harness.start({ nodes: 6 });
  const [victim] = await harness.serve(ordersPool({ desired: 1, standby: 2, disruption: { unreachableAfter: "1m" } }));
  await untilWarm(2);
  const [first, second] = await warm();
  harness.instances.unwell.add(first?.incarnation.host ?? "");
  await harness.until("that is seen", async () => (await harness.reasons()).includes(`${first?.id} standby_unhealthy`));
  harness.gateways[0]?.hold(victim?.id ?? "", { requests: 1 });
  await interrupt(victim);
  await harness.until("the next serves", async () => {
    const serves = (await harness.phase(second?.id ?? "")) === "serving";
    if (!serves) expect([await harness.phase(victim?.id ?? ""), callsOf(victim)]).toEqual(["serving", ["prepare", "admit"]]);
    return serves;
  });
  expect(await harness.phase(first?.id ?? "")).toBe("standby");
  expect((await harness.steps()).filter(({ kind, instance }) => kind === "admit_instance/1" && instance === first?.id)).toEqual([]);
});

test("a standby that turns unwell after it was taken is given up at once, and the next is taken, before anything is drained (S4)", async () => {
  harness = await Harness.start({ nodes: 6 });
  const [victim] = await harness.serve(ordersPool({ desired: 1, standby: 2 }));
  await untilWarm(2);
  const [first, second] = await warm();
  // Nobody has seen it yet: the last look was good.
  harness.instances.unwell.add(first?.incarnation.host ?? "");
  await interrupt(victim);
  await harness.until("it is taken", async () => (await harness.instance(first?.id ?? "")).purpose === "replace");
  await harness.until("the next serves", async () => {
    const serves = (await harness.phase(second?.id ?? "")) === "serving";
    if (!serves) expect(await harness.phase(victim?.id ?? "")).toBe("serving");
    return serves;
  });
  expect(await harness.instance(first?.id ?? "")).toMatchObject({ failure: "standby_unhealthy" });
});

test("a standby that stays unwell is made anew, and so is one whose node will go (S2, D7)", async () => {
  harness = await Harness.start({ nodes: 6 });
  await harness.serve(ordersPool({ desired: 1, standby: 2 }));
  await untilWarm(2);
  const [first, second] = await warm();
  harness.instances.unwell.add(first?.incarnation.host ?? "");
  await harness.until("it is given up", async () => (await harness.instance(first?.id ?? "")).failure !== null);
  await harness.drift(second?.incarnation.nodeName ?? "");
  await harness.until("so is the other", async () => (await harness.instance(second?.id ?? "")).failure !== null);
  await untilWarm(2);
  expect([(await harness.instance(first?.id ?? "")).failure, (await harness.instance(second?.id ?? "")).failure]).toEqual([
    "evidence_process_unreachable",
    "evidence_node_drifted",
  ]);
  expect(await harness.pool()).toMatchObject({ serving: 1, standby: 2 });
  expect((await harness.pool()).losses).toEqual([]);
});

test("when the blueprint changes the standby follows, one by one (S2)", async () => {
  harness = await Harness.start({ nodes: 6 });
  await harness.serve(ordersPool({ desired: 1, standby: 2 }));
  await untilWarm(2);
  const former = (await warm()).map(({ id }) => id);
  const changed = ordersPool({ desired: 1, standby: 2, pod: { terminationGracePeriodSeconds: 3 } });
  await patchPool({ blueprint: (changed.spec as { readonly blueprint: unknown }).blueprint });
  let fewest = 2;
  await harness.until(
    "both are new",
    async () => {
      const all = await warm();
      fewest = Math.min(fewest, all.length);
      return all.length === 2 && all.every(({ id }) => !former.includes(id));
    },
    120_000,
  );
  expect(fewest).toBe(1);
});

test("a pool that is drained away takes its standby along", async () => {
  harness = await Harness.start({ nodes: 6 });
  await harness.serve(ordersPool({ desired: 1, standby: 1 }));
  await untilWarm(1);
  await patchPool({ deletion: "drain" });
  await harness.cluster.api.delete({ type: POOLS, namespace: "default", name: "orders" });
  await harness.until("nothing is left", async () => (await harness.records()).length === 0, 120_000);
});
