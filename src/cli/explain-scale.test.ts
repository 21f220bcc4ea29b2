import { expect, test } from "vitest";
import { reason } from "../model/reasons.ts";
import type { PoolScaleExplained } from "../server/scale-state.ts";
import { aPool, FakeControlPlane, NOON } from "../server/testing/fake-control-plane.ts";
import { runCli } from "./testing/run-cli.ts";

const SCALE: PoolScaleExplained = {
  signal: "queue captures through main",
  flow: "queue/captures",
  target: 4,
  demand: {
    reading: { backlog: 240, inFlight: 12, oldestAgeMs: 185_400, flow: "queue/captures", valueAt: null, sourceNow: null },
    readAt: NOON - 1_000,
    trouble: null,
  },
  slots: {
    instances: 6,
    total: 12,
    free: 0,
    progressing: 8,
    stuck: 4,
    throughput: 0.4,
    busySeconds: 720,
    perBusySlot: 0.03,
    usualPerBusySlot: 0.1,
  },
  desired: 6,
  floor: 1,
  max: 6,
  proven: {
    at: NOON - 2 * 86_400_000,
    configHash: "b1",
    slotsPerInstance: 2,
    slotTotals: [2],
    instances: 4,
    throughputPerInstance: 0.2,
    stuckShare: 0.2,
    recoveryMs: 40_000,
    jobs: 500,
    by: "ann",
    evidence: "loadtest.json",
  },
  proof: "above_proven",
  pausedAt: null,
  wanted: 6,
  changedAt: NOON - 120_000,
  next: null,
  holds: [reason("scale_held_stuck", { wanted: 63, stuck: 4, busy: 12, share: 20, since: "2030-01-01T11:50:00.000Z" })],
  isGrowthHeld: true,
  owner: "relevo, pool default/capture",
  otherOwners: ["HorizontalPodAutoscaler capture"],
  jobs: { done: 95, nothing: 2, reaped: 2, failed: 1 },
  exceptions: [
    {
      id: "exception-1",
      pool: "default/capture",
      what: "size.max 6",
      gate: "proven capacity 4",
      why: "sale",
      by: "ann",
      at: NOON - 3_600_000,
      followUps: [
        { what: "run the load test", doneAt: null },
        { what: "tell the team", doneAt: NOON },
      ],
    },
  ],
  changes: [{ at: NOON - 120_000, from: 1, to: 6, reason: "scale_up", message: "252 pieces of work wait" }],
};

class Explained extends FakeControlPlane {
  override async explain(subject: string) {
    const reasons = [
      ...SCALE.holds.map((each) => ({ subject: "", reason: each, since: NOON - 600_000 })),
      { subject: "capture-a", reason: reason("serving"), since: null },
    ];
    return { ...(await super.explain(subject)), scale: SCALE, reasons };
  }
}

test("explain answers of a pool's size in one screen: backlog, slots, what is done, the owner, what is next, what holds it, what is proven (K7)", async () => {
  const fake = new Explained({ pools: [aPool({ pool: "default/capture" })] });

  const { out } = await runCli(["explain", "default/capture"], { fake });

  expect(out).toBe(`pool default/capture

scale
  size      6 desired for 2m, at least 1, at most 6 configured, 4 proven 2d ago
  !         it is at its configured maximum: more demand changes nothing any more
  !         it runs above what was proven: 4 instances; run relevo loadtest
  backlog   240 wait, 12 taken, the oldest for 3m6s (queue captures through main, of queue/captures, read 1s ago)
  slots     0 free, 8 progressing, 4 stuck (12 in 6 instances)
  done      4 jobs a minute and replica, 24 together; 95 done, 2 nothing to do, 2 reaped, 1 failed, 97 % in good order
  owner     relevo, pool default/capture, and HorizontalPodAutoscaler capture: two owners fight, see relevo adopt
  next      stays at 6
  held      63 instances are wanted and 4 of 12 busy slots make no progress (at most 20 % may): more instances would be stuck too, what is stuck is repaired first; held since 2030-01-01T11:50:00.000Z (scale_held_stuck)
  changed   2m ago 1 → 6: 252 pieces of work wait
  exception size.max 6, before proven capacity 4: 1 to do (exception-1)

why
  capture-a: it serves and nothing is against it (serving)
`);
});

test("what is not known is told as that, and never as a zero", async () => {
  const blind = {
    ...SCALE,
    demand: { reading: null, readAt: null, trouble: { code: "unreachable" as const, detail: "status 503", since: NOON - 60_000 } },
    slots: null,
    jobs: null,
    wanted: null,
    proven: null,
    proof: "nothing_proven" as const,
    otherOwners: [],
    exceptions: [],
    changes: [],
    holds: [],
    desired: 3,
  };
  const fake = new FakeControlPlane({ pools: [aPool({ pool: "default/capture" })] });
  const explain = fake.explain.bind(fake);
  fake.explain = async (subject) => ({ ...(await explain(subject)), scale: blind, reasons: [] });

  const { out } = await runCli(["explain", "default/capture"], { fake });

  expect(out).toContain(`  size      3 desired for 2m, at least 1, at most 6 configured, nothing proven
  !         no load test has shown what it can do; run relevo loadtest
  backlog   not known yet (queue captures through main, of queue/captures); for 1m it cannot be believed (unreachable): status 503
  slots     no instance says anything of its slots
  done      not watched for a minute yet
  owner     relevo, pool default/capture
  next      stays at 3: what is wanted is not known
`);
});

test("get scale shows each change with its reason, get exceptions what is still to be done (K10)", async () => {
  const fake = new FakeControlPlane({
    scaleChanges: [...SCALE.changes.map((change) => ({ pool: "default/capture", ...change }))],
    exceptions: [...SCALE.exceptions],
  });

  expect((await runCli(["get", "scale"], { fake })).out).toBe(
    "AT  POOL             FROM  TO  WHY\n2m  default/capture  1     6   252 pieces of work wait\n",
  );
  expect((await runCli(["get", "exceptions"], { fake })).out).toBe(
    "EXCEPTION    POOL             SINCE  PROMOTED    BEFORE             STILL TO DO\nexception-1  default/capture  1h     size.max 6  proven capacity 4  0: run the load test\n",
  );
});

test("where pools are listed with their limit, what was proven stands beside it (K7)", async () => {
  const shown = async (more: Partial<PoolScaleExplained>): Promise<string | undefined> => {
    const fake = new FakeControlPlane({ pools: [aPool({ pool: "default/capture", scale: { ...SCALE, ...more } })] });
    const [head, row] = (await runCli(["get", "pools", "-o", "wide"], { fake })).out.split("\n");
    expect(head?.slice(head.indexOf("MAX"))).toMatch(/^MAX +PROVEN +ROUTE/);
    return row?.slice(head?.indexOf("MAX")).split(/ {2,}/).slice(0, 2).join(", ");
  };
  expect([
    await shown({}),
    await shown({ proof: "within_proven" }),
    await shown({ proof: "proven_for_other" }),
    await shown({ proof: "nothing_proven", proven: null }),
  ]).toEqual(["8, 4 (it is above)", "8, 4", "8, 4 (of another configuration)", "8, nothing"]);
});
