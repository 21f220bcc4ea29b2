/** The commands against a control plane of plain values and a real queue, whose jobs are done by whoever is said to serve. */
import { afterEach, beforeEach, expect, test } from "vitest";
import { QueueUnderTest, TOKEN } from "../../demand/queue/testing/queue-under-test.ts";
import { systemClock } from "../../kernel/system.ts";
import { poolSchema } from "../../model/pool.ts";
import type { QueueClient, TakenJob } from "../../sdk/queue-client.ts";
import type { NodeState } from "../../server/control-plane.ts";
import { aPool, FakeControlPlane, type FakeState } from "../../server/testing/fake-control-plane.ts";
import { runCli } from "../testing/run-cli.ts";

let queue: QueueUnderTest;
let client: QueueClient;

beforeEach(async () => {
  queue = await new QueueUnderTest().start();
  client = queue.client();
  await client.put("captures", { maxAttempts: 3 });
});
afterEach(() => queue.remove());

const document = (scale: Readonly<Record<string, unknown>> = {}) =>
  poolSchema.parse({
    apiVersion: "relevo.dev/v1alpha1",
    kind: "Pool",
    metadata: { name: "capture" },
    spec: {
      driver: "worker",
      size: { desired: 1, floor: 1, max: 6 },
      worker: { flow: "queue/captures" },
      scale: { signal: { kind: "queue", connection: "main", queue: "captures" }, target: 2, ...scale },
      blueprint: { objects: [{ apiVersion: "apps/v1", kind: "Deployment", metadata: { name: "$(relevo.instance)" } }] },
    },
  });

const NODE: NodeState = {
  ...{ name: "node-a", uid: "u", zone: null, instanceType: null, capacityType: null, machineId: null, ready: true, unschedulable: false },
  ...{ cordonedByUs: false, deleting: false, owner: null, findings: [], instances: [] },
};

interface Behaviour {
  /** Of a scaler that works. */
  readonly size?: (work: number, look: number) => number;
  readonly does?: (job: TakenJob) => "done" | "failed" | "never";
  readonly scale?: object;
}

/** A fleet that moves on at each look: its scaler decides, who served before takes a job each. */
function fleet({
  size = (work) => Math.min(6, Math.max(1, Math.ceil(work / 2))),
  does = () => "done",
  scale = {},
}: Behaviour = {}): FakeControlPlane {
  const { spec } = document();
  const fake = new FakeControlPlane({ nodes: [NODE], spec } as Partial<FakeState>);
  let serving = 1;
  let looks = 0;
  fake.findPool = async () => {
    const { waiting, taken } = await client.counts("captures");
    for (const job of await client.take("captures", { worker: "w", max: serving, leaseMs: 60_000 })) {
      const how = does(job);
      if (how !== "never") await client.complete("captures", job.id, { lease: job.lease, outcome: how });
    }
    const desired = size(waiting + taken, looks++);
    const served = serving;
    serving = desired;
    const demand = {
      reading: { backlog: waiting, inFlight: taken, oldestAgeMs: null, flow: "queue/captures", valueAt: null, sourceNow: null },
      readAt: null,
      trouble: null,
    };
    return aPool({
      pool: "default/capture",
      document: document(),
      desired,
      serving: served,
      scale: {
        ...{ signal: "queue captures through main", flow: "queue/captures", target: 2, demand, slots: null, desired, floor: 1, max: 6 },
        ...{
          proven: null,
          proof: "nothing_proven",
          pausedAt: null,
          wanted: desired,
          changedAt: null,
          next: null,
          holds: [],
          isGrowthHeld: false,
        },
        ...scale,
      },
    });
  };
  return fake;
}

function run(command: string, fake: FakeControlPlane, more: { readonly signal?: AbortSignal; readonly url?: string } = {}) {
  const files = {
    "connections.yaml": JSON.stringify({ connections: [{ name: "main", kind: "queue", url: more.url ?? queue.url, token: TOKEN }] }),
  };
  return runCli([...command.split(" "), "--connections", "connections.yaml"], { fake, files, clock: systemClock, ...more });
}

const VERIFY = "verify scaling capture --control 250ms --within 5s";
const left = async () => {
  const { waiting, taken, dead } = await client.counts("captures");
  return waiting + taken + dead;
};

test("a scaler is accepted by its effect: nothing moves without work, more serve with it, and it is done within the window (K9)", async () => {
  const { code, out } = await run(VERIFY, fleet());
  expect(out.replaceAll(/after [\dms]+/g, "after a while")).toBe(
    [
      "pool default/capture; level: this cluster, as it is; observed for 250ms without injected work and up to 5s with it",
      "holds  the size rose when work came: 1 → 4, after a while",
      "holds  more instances served: 1 → 4, after a while",
      "holds  the backlog fell: no injected job is left: 7 jobs, after a while",
      "holds  each injected job was done: 7 of 7",
      "holds  nothing of the injected work stayed behind: 0 taken back, 0 left",
      "verdict: accepted",
      "",
    ].join("\n"),
  );
  expect([code, await left()]).toEqual([0, 0]);
});

test("a scaler that does nothing is not accepted, and its jobs are taken back", async () => {
  const { code, out } = await run(
    "verify scaling capture --control 250ms --within 500ms --jobs 20",
    fleet({ size: () => 1, does: () => "done" }),
  );
  expect(out).toContain("FAILS  the size rose when work came: 1 → 1, not within the window\n");
  expect(out).toContain("verdict: not accepted\n");
  expect([code, await left()]).toEqual([1, 0]);
});

test("a size that moves before anything is put in shows nothing, and nothing is put in (the control)", async () => {
  const fake = fleet({ size: (_work, look) => 1 + (look % 2) });
  const { code, out } = await run(VERIFY, fake);
  expect(out).toContain("shows nothing: the size changed before anything was put in");
  expect([code, (await client.counts("captures")).done]).toEqual([3, 0]);
});

test.each([
  ["is paused", { pausedAt: 2 }, "shows nothing: it is paused at 2"],
  [
    "cannot be read",
    { demand: { reading: null, readAt: null, trouble: { code: "unreachable", detail: "no answer", since: 0 } } },
    "no answer",
  ],
])("a pool that %s shows nothing", async (_name, scale, sentence) => {
  const { code, out } = await run(VERIFY, fleet({ scale }));
  expect([code, out.includes(sentence)]).toEqual([3, true]);
});

test("what was put in is taken back when the user has had enough", async () => {
  const interrupt = new AbortController();
  const fake = fleet({
    size: (work) => {
      if (work > 0) interrupt.abort();
      return 1;
    },
  });
  const { code } = await run("verify scaling capture --control 250ms --within 10s --jobs 500", fake, { signal: interrupt.signal });
  expect([code, interrupt.signal.aborted, await left()]).toEqual([1, true, 0]);
});

test("what could not be taken back is said with its tag", async () => {
  const fake = fleet({ size: () => 1, does: () => "never" });
  const look = fake.findPool;
  let looks = 0;
  fake.findPool = async (pool) => {
    if (looks++ === 5) await queue.stop();
    return look(pool);
  };
  const { code, err } = await run("verify scaling capture --control 250ms --within 10s --jobs 50", fake);
  expect([code, err]).toEqual([1, expect.stringMatching(/What was put in could not be taken back .*tagged\?prefix=relevo-verify-run-/)]);
});

test("a signal that cannot be fed is refused by name, and so is a connection that the file does not have", async () => {
  const fake = fleet();
  fake.state.spec = document({ signal: { kind: "postgresql", connection: "main", query: "SELECT 1 AS backlog" } }).spec;
  const { code, err } = await run(VERIFY, fake);
  expect([code, err]).toEqual([
    3,
    "relevo: Work for a signal of kind postgresql cannot be put in and taken back by its tag (signal_cannot_be_fed); found: postgresql; allowed: queue; put the load in with what fills it in production, and watch with relevo get pools --watch\n",
  ]);
  fake.state.spec = document({ signal: { kind: "queue", connection: "other", queue: "captures" } }).spec;
  expect((await run(VERIFY, fake)).err).toContain("has no other of kind queue (connection_missing)");
});
