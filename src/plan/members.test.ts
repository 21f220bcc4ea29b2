/** Members of a cluster: which evidence is about them alone, and what becomes of them (decision 0018). */
import { describe, expect, test } from "vitest";
import {
  at,
  evidenceOf,
  finding,
  type InstanceInput,
  instance,
  node,
  NOON,
  openStepOf,
  pod,
  poolOf,
  serving,
} from "../../test/builders/pool.ts";
import { formatInstant } from "../kernel/clock.ts";
import type { Evidence } from "../model/evidence.ts";
import type { Phase } from "../model/phase.ts";
import { planPool } from "./plan.ts";
import type { InstanceSnapshot, MemberStateSeen, NodeSnapshot, PodSnapshot, PoolSnapshot, Proofs } from "./snapshot.ts";

const DEADLINE = at("12:02:00");
/** `drainLead` before it. */
const LATEST = at("12:01:45");
const CLUSTER = { driver: "trino", blueprint: { objects: [deployment(""), deployment("-worker")] } };

function deployment(suffix: string) {
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name: `$(relevo.instance)${suffix}` },
    spec: { replicas: suffix === "" ? 1 : 2 },
  };
}

const going = (name: string, rest: Partial<NodeSnapshot> = {}): NodeSnapshot =>
  node(name, { findings: [finding("spot_interruption", DEADLINE)], cordoned: "by_us", ...rest });

const lead = (on = node("n0")) => pod("c", on);
const worker = (name: string, on: NodeSnapshot | null, rest: Partial<PodSnapshot> = {}) =>
  pod(name, on, {
    lead: false,
    process: { host: `127.0.1.${name.slice(1)}`, containerId: `k-${name}`, startedAt: NOON - 600_000 },
    ...rest,
  });

interface Input {
  readonly phase?: Phase;
  readonly lead?: PodSnapshot;
  readonly w1?: PodSnapshot;
  readonly w2?: PodSnapshot;
  readonly state?: MemberStateSeen["state"];
  /** Evidence is about w1. */
  readonly isKnown?: boolean;
  readonly rest?: InstanceInput;
}

function aboutW1(of: InstanceSnapshot): Evidence {
  return {
    ...evidenceOf(of.record, "spot_interruption", node("n1"), DEADLINE),
    id: "about-w1",
    isOfMember: true,
    podName: "w1",
    podUid: "uid-w1",
  };
}

function cluster({
  phase = "serving",
  w1 = worker("w1", going("n1")),
  w2 = worker("w2", node("n2")),
  state,
  isKnown = true,
  rest = {},
  ...of
}: Input = {}) {
  const seen = instance(phase, { pods: [of.lead ?? lead(), w1, w2], podsWanted: 3, ...rest });
  if (!isKnown) return seen;
  const memberStates = new Map(state === undefined ? [] : [["uid-w1", { state, since: NOON - 1_000 }] as const]);
  return { ...seen, memberEvidence: [aboutW1(seen)], memberStates };
}

function planOf(seen: InstanceSnapshot, rest: Partial<PoolSnapshot> = {}, now = NOON, disruption: Record<string, unknown> = {}) {
  const plan = planPool(poolOf({ spec: CLUSTER, disruption: { mode: "Act", ...disruption } }, [seen], rest), now);
  return {
    decisions: plan.decisions.map((decision) => ({ ...decision, reason: decision.reason.code })),
    holds: plan.holds.map(({ subject, reason }) => `${subject} ${reason.code}`.trim()),
    nextLookAt: plan.nextLookAt,
  };
}

const W1 = { name: "w1", uid: "uid-w1" };
const PROVEN: Proofs = { retryPolicy: "TASK" };
const drained = (how: string, more: object = {}) => ({
  kind: "drain_member",
  instance: "orders-a",
  pod: W1,
  how,
  deadline: DEADLINE,
  since: NOON - 1_000,
  reason: "member_drain",
  ...more,
});
const REPLACED = { kind: "replace_member", instance: "orders-a", pod: W1, reason: "member_replace" };

describe("evidence", () => {
  test("a deadline of a worker's node is about that pod alone, once; the instance has none of it (D3)", () => {
    const { decisions } = planOf(cluster({ isKnown: false }));

    expect(decisions).toEqual([
      {
        kind: "record_evidence",
        evidence: {
          instance: "orders-a",
          incarnation: 1,
          loss: "deadline",
          reason: "spot_interruption",
          isOfMember: true,
          podName: "w1",
          podUid: "uid-w1",
          nodeName: "n1",
          nodeUid: "uid-n1",
          nodeClaimName: "claim-n1",
          nodeClaimUid: "uid-claim-n1",
          deadline: DEADLINE,
          noticeId: null,
        },
        reason: "member_condemned",
      },
    ]);
    expect(planOf(cluster({ state: "draining" })).decisions).toEqual([]);
  });

  test("a deadline of the coordinator's node replaces the cluster; so does drift under any of its pods (D5)", () => {
    const ofLead = planOf(cluster({ isKnown: false, w1: worker("w1", node("n1")), lead: lead(going("n0")) }));
    const drifting = planOf(cluster({ isKnown: false, w1: worker("w1", node("n1", { drifted: true })) }));

    for (const [{ decisions }, reason] of [
      [ofLead, "spot_interruption"],
      [drifting, "node_drifted"],
    ] as const) {
      const [first] = decisions;
      expect(first).toMatchObject({ kind: "record_evidence", evidence: { reason }, reason: "replace_condemned" });
      expect(first).not.toHaveProperty("evidence.isOfMember");
    }
  });

  test("with mode Off nothing is recorded and nothing done (D1, I26)", () => {
    const off = planOf(cluster({ isKnown: false }), {}, NOON, { mode: "Off" });
    expect(off).toMatchObject({ decisions: [], holds: ["orders-a serving", "nothing_to_do"] });
    expect(planOf(cluster({ state: "active" }), {}, NOON, { mode: "Off" })).toMatchObject({
      decisions: [],
      holds: ["orders-a serving", "orders-a mode_off"],
    });
    expect(planOf(cluster({ state: "active" }), {}, NOON, { mode: "Observe" }).holds).toContain("orders-a mode_observe");
  });

  test("with any other driver a deadline under any pod is the instance's", () => {
    const seen = serving({ pods: [lead(), worker("w1", going("n1"))], podsWanted: 2 });
    const { decisions } = planPool(poolOf({}, [seen]), NOON);
    expect(decisions[0]).toMatchObject({ kind: "record_evidence", reason: { code: "replace_condemned" } });
  });
});

describe("a worker whose node goes", () => {
  test("is drained for as long as the notice lasts: reversibly while nothing is proven, for good with a proven TASK (I24)", () => {
    expect(planOf(cluster({ state: "active" }))).toMatchObject({ decisions: [drained("reversible")], nextLookAt: LATEST });
    expect(planOf(cluster({ state: "active" }), { proofs: { retryPolicy: "QUERY" } }).decisions).toEqual([drained("reversible")]);
    expect(planOf(cluster({ state: "active" }), { proofs: PROVEN }).decisions).toEqual([drained("final")]);
    expect(planOf(cluster({ state: "silent" })).decisions).toEqual([drained("reversible")]);
  });

  test("is waited for with its reason: until it is asked, told, and done (D11)", () => {
    expect(planOf(cluster())).toMatchObject({ decisions: [], holds: ["orders-a serving", "orders-a member_unread"] });
    for (const state of ["draining", "shutting_down"] as const)
      expect(planOf(cluster({ state }))).toMatchObject({
        decisions: [],
        holds: ["orders-a serving", "orders-a member_finishes"],
        nextLookAt: LATEST,
      });
    const openSteps = [openStepOf("drain_member", "orders-a", { id: "drain-member/uid-w1/reversible/1" })];
    expect(planOf(cluster({ state: "active" }), { openSteps })).toMatchObject({
      decisions: [],
      holds: ["orders-a serving", "orders-a step_unknown"],
    });
    expect(planOf(cluster({ w1: worker("w1", going("n1"), { deleting: true }) })).holds).toContain("orders-a member_leaving");
  });

  test.for<[string, Input]>([
    ["it has finished what it had", { state: "drained" }],
    ["nothing listens there any more", { state: "gone" }],
    ["nothing runs in its pod", { w1: { ...pod("w1", going("n1"), { lead: false }) } }],
    [
      "it ended for good and was started anew there",
      { state: "active", w1: worker("w1", going("n1"), { process: { host: "h", containerId: "k", startedAt: NOON } }) },
    ],
    ["its node is gone", { state: "silent", w1: worker("w1", null, { scheduledAt: NOON - 60_000 }) }],
    ["its cluster is only coming", { state: "active", phase: "validating" }],
  ])("is made anew at once: %s", ([, input]) => {
    expect(planOf(cluster(input)).decisions).toContainEqual(REPLACED);
  });

  test("is made anew at the latest before its node goes, whatever it still does and whatever it was told", () => {
    for (const state of ["active", "silent", "draining", "shutting_down"] as const) {
      expect(planOf(cluster({ state }), {}, LATEST - 1).decisions).not.toContainEqual(REPLACED);
      expect(planOf(cluster({ state }), {}, LATEST).decisions).toEqual([REPLACED]);
    }
    const openSteps = [openStepOf("drain_member", "orders-a", { id: "drain-member/uid-w1/reversible/1", attempts: 4 })];
    expect(planOf(cluster({ state: "active" }), { openSteps }, LATEST).decisions).toEqual([REPLACED]);
  });

  test("is made anew before that only when its node takes nothing new; the node is cordoned for this evidence (D4, I6)", () => {
    const free = cluster({ state: "drained", w1: worker("w1", going("n1", { unschedulable: false, cordonedBy: null })) });
    expect(planOf(free)).toMatchObject({
      decisions: [
        {
          kind: "cordon_node",
          instance: "orders-a",
          node: { name: "n1", uid: "uid-n1" },
          evidence: "about-w1",
          reason: "cordon_condemned_node",
        },
      ],
      holds: ["orders-a serving", "orders-a member_waits_for_cordon"],
      nextLookAt: LATEST,
    });
    expect(planOf(free, {}, LATEST).decisions).toContainEqual(REPLACED);
  });

  test("takes work again when the notice is taken back; one that ends for good is left to its own workload", () => {
    const spared = (state: MemberStateSeen["state"]) => planOf(cluster({ state, w1: worker("w1", node("n1", { cordoned: "by_us" })) }));
    for (const state of ["draining", "drained"] as const)
      expect(spared(state).decisions).toEqual([drained("back", { deadline: null, reason: "member_back" })]);
    expect(spared("shutting_down")).toMatchObject({ decisions: [], holds: ["orders-a serving", "orders-a member_ends"] });
    expect(spared("active")).toMatchObject({ decisions: [], holds: ["orders-a serving", "nothing_to_do"] });
  });

  test("a later notice for the same pod counts by its own time", () => {
    const later = going("n1", { findings: [finding("spot_interruption", at("12:30:00"))] });
    expect(planOf(cluster({ state: "active", w1: worker("w1", later) })).decisions).toEqual([
      drained("reversible", { deadline: at("12:30:00") }),
    ]);
  });

  test("the evidence is served when its pod is gone: a later one has evidence of its own, and the hold says what is missing", () => {
    const comes = worker("w3", null);
    expect(planOf(cluster({ w1: comes }))).toMatchObject({ decisions: [], holds: ["orders-a serving_without_members"] });
    expect(planOf(cluster({ w1: worker("w3", node("n3")) }))).toMatchObject({
      decisions: [],
      holds: ["orders-a serving", "nothing_to_do"],
    });
    const again = planOf(cluster({ w1: worker("w3", going("n3")) })).decisions;
    expect(again).toMatchObject([{ kind: "record_evidence", evidence: { podUid: "uid-w3", isOfMember: true } }]);
  });

  test("goes on in a freeze, and what was begun goes on in any mode (D10)", () => {
    const freeze = { until: NOON + 600_000, why: "a test", by: "ann" };
    expect(planOf(cluster({ state: "active" }), { freeze }).decisions).toEqual([drained("reversible")]);
    expect(planOf(cluster({ state: "drained" }), {}, NOON, { mode: "Observe" }).decisions).toEqual([REPLACED]);
    expect(planOf(cluster({ state: "draining" }), {}, LATEST, { mode: "Off" }).decisions).toEqual([REPLACED]);
  });

  test("also beneath a cluster that drains: its queries run on", () => {
    const seen = cluster({ state: "active", phase: "draining", rest: { obligations: { requests: 1, sessions: 1 } } });
    expect(planOf(seen).decisions).toContainEqual(drained("reversible"));
  });
});

describe("a cluster", () => {
  test("that lost a worker serves on, with its reason, and is no loss (D11, D13)", () => {
    const { decisions, holds } = planOf(cluster({ isKnown: false, w1: worker("w1", node("n1"), { ready: false }) }));
    expect({ decisions, holds }).toEqual({ decisions: [], holds: ["orders-a serving_without_members"] });
  });

  test("that comes is not given up for a worker on a node that goes at a time: that one is made anew (D7, D14)", () => {
    const { decisions } = planOf(cluster({ phase: "preparing", isKnown: false, rest: { record: { admittedGeneration: null } } }));
    expect(decisions.map(({ kind }) => kind)).toEqual(["record_evidence", "move"]);
    const drifting = planOf(cluster({ phase: "preparing", isKnown: false, w1: worker("w1", node("n1", { drifted: true })) }));
    expect(drifting.decisions).toContainEqual(expect.objectContaining({ kind: "move", to: "failed" }));
  });

  test("has ten minutes to come where its document says nothing, counted for its admission too", () => {
    const since = NOON - 599_000;
    const late = (now: number) =>
      planOf(
        cluster({ phase: "validating", isKnown: false, w1: worker("w1", node("n1")), rest: { record: { phaseSince: since } } }),
        {},
        now,
      );
    expect(late(NOON).decisions).toMatchObject([{ kind: "admit_instance" }]);
    expect(late(NOON + 1_000).decisions).toMatchObject([{ kind: "move", to: "failed", failure: "not_ready_in_time" }]);
    expect(formatInstant(since + 600_000)).toBe("2026-11-30T12:00:01.000Z");
  });
});
