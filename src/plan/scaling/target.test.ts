import { describe, expect, test } from "vitest";
import { NOON, poolOf } from "../../../test/builders/pool.ts";
import type { Adoption, FieldManager, ScaleOwner, TargetObject, TargetView } from "../../model/scale-owner.ts";
import type { ScaleState } from "../../model/scale.ts";
import type { Plan } from "../decision.ts";
import { planPool } from "../plan.ts";
import type { PoolSnapshot } from "../snapshot.ts";
import { demand, stateOf, troubled } from "./testing/builders.ts";

const manager = (name: string, at: number | null = NOON - 60_000, subresource = ""): FieldManager => ({
  ...{ manager: name, operation: "Update", subresource, at },
});
const KUBECTL = manager("kubectl");
const OURS = manager("relevo", NOON, "scale");
const HPA: ScaleOwner = { kind: "HorizontalPodAutoscaler", name: "web", uid: "h1", min: 1, max: 9, madeBy: null };
const scaledObject = (asks: string | null): ScaleOwner => ({
  ...{ kind: "ScaledObject", name: "web", uid: "s1", min: 0, max: 9, triggers: ["external"], isPaused: false, asks },
});
const MADE: ScaleOwner = { ...HPA, name: "keda-hpa-web", madeBy: "web" };

const object = (more: Partial<TargetObject> = {}): TargetObject => ({
  ...{ uid: "u1", replicas: 3, readyReplicas: 3, isPaused: false, isDeleting: false, managers: [KUBECTL] },
  ...more,
});
const view = (more: Partial<TargetView> = {}): TargetView => ({
  ...{ kind: "Deployment", name: "web", object: object(), owners: [], trouble: null, fullSince: NOON - 600_000, takenAt: null },
  ...more,
});
const ADOPTED: Adoption = { uid: "u1", by: "alice", at: NOON - 30_000, replicas: 3, managers: [KUBECTL], removed: null };
const adopted = (more: Partial<ScaleState> = {}): ScaleState => ({ ...stateOf({ desired: 3 }), adopted: ADOPTED, ...more });

const SCALE = { signal: { kind: "queue", connection: "main", queue: "captures" }, target: 10, down: { window: "0s" } };
function targeting(target: TargetView | null, rest: Partial<PoolSnapshot> = {}): PoolSnapshot {
  const spec = {
    ...{ driver: "worker", worker: { flow: "queue/captures" }, scale: SCALE },
    ...{ blueprint: { objects: [] }, target: { kind: "Deployment", name: "web" } },
  };
  return poolOf({ desired: 3, floor: 0, max: 20, spec }, [], { target, scale: adopted(), demand: demand(30), gateways: [], ...rest });
}

const brief = ({ decisions }: Plan): readonly string[] =>
  decisions.map((each) => ("from" in each && "to" in each ? `${each.kind} ${String(each.from)}→${String(each.to)}` : each.kind));
const holds = ({ holds: all }: Plan): readonly string[] => all.map(({ reason }) => reason.code);
const planned = (target: TargetView | null, rest: Partial<PoolSnapshot> = {}) => {
  const plan = planPool(targeting(target, rest), NOON);
  return [brief(plan), holds(plan)];
};

describe("a target that was adopted", () => {
  test("gets the size that is decided, in the same plan, and keeps whose it is", () => {
    const plan = planPool(targeting(view(), { demand: demand(60) }), NOON);
    expect(brief(plan)).toEqual(["set_desired 3→6", "scale_target 3→6"]);
    expect(plan.decisions[0]).toMatchObject({ state: { desired: 6, adopted: ADOPTED } });
    expect(plan.decisions[1]).toMatchObject({ uid: "u1", decidedAt: NOON });
  });

  test("that has the size is left as it is, and no instance is ever made for it", () => {
    expect(planned(view())).toEqual([[], ["target_follows"]]);
  });

  test("whose write did not happen is written again as the same decision", () => {
    const plan = planPool(targeting(view(), { scale: adopted({ desired: 5, changedAt: NOON - 5_000 }), demand: demand(50) }), NOON);
    expect(plan.decisions).toMatchObject([{ kind: "scale_target", from: 3, to: 5, decidedAt: NOON - 5_000 }]);
  });

  test("keeps its size while the demand cannot be believed (K11)", () => {
    expect(planned(view(), { demand: troubled("not_a_number") })).toEqual([[], ["scale_demand_invalid", "target_follows"]]);
  });

  test.each([
    ["an HPA", { owners: [HPA] }, ["scale_other_owner"]],
    ["a ScaledObject, with its HPA told once", { owners: [scaledObject(null), MADE] }, ["scale_other_owner"]],
    ["an HPA whose ScaledObject is gone", { owners: [MADE] }, ["scale_other_owner"]],
    ["another Pool", { owners: [{ kind: "Pool", name: "default/other", uid: "" } as const] }, ["scale_other_owner"]],
    ["who wrote it since", { object: object({ managers: [manager("kubectl", NOON)] }) }, ["scale_other_owner"]],
    ["who wrote it since, within one second", { takenAt: NOON - 100 }, ["scale_other_owner"]],
    ["who was not there", { object: object({ managers: [KUBECTL, manager("helm")] }) }, ["scale_other_owner"]],
    [
      "an autoscaler that wrote since",
      { object: object({ managers: [manager("kube-controller-manager", NOON, "scale")] }) },
      ["scale_other_owner"],
    ],
    ["another object", { object: object({ uid: "u2" }) }, ["scale_target_replaced", "scale_other_owner"]],
    ["one that goes", { object: object({ isDeleting: true }) }, ["scale_target_deleting"]],
    ["one that is paused", { object: object({ isPaused: true }) }, ["scale_target_paused"]],
    ["one that is gone", { object: null }, ["scale_target_gone"]],
    ["what cannot be seen", { trouble: "horizontalpodautoscalers: kube_forbidden" }, ["scale_target_unseen"]],
  ])("nothing is decided and nothing written: %s (K3, I20)", (_what, more, reasons) => {
    expect(planned(view(more), { demand: demand(90) })).toEqual([[], reasons]);
  });

  test("before it was looked at nothing is done", () => {
    expect(planned(null, { demand: demand(90) })).toEqual([[], ["scale_target_unread"]]);
  });

  test("who owned it before is no owner any more, and while we own the field too its value is ours (K3)", () => {
    const managers = [manager("kubectl", NOON), OURS];
    expect(planned(view({ object: object({ managers }) }), { demand: demand(60) })[0]).toEqual(["set_desired 3→6", "scale_target 3→6"]);
  });

  test("a frozen pool decides and writes nothing", () => {
    const freeze = { until: NOON + 60_000, why: "a release", by: "alice" };
    expect(planned(view(), { demand: demand(90), freeze })).toEqual([[], ["frozen"]]);
  });

  test("a pool that is deleted leaves it as it is", () => {
    expect(planned(view(), { demand: demand(90), deleting: true })[0]).toEqual([]);
  });
});

describe("a target that was not adopted", () => {
  test("is told what it would get and from whom, and nothing is decided (K3)", () => {
    const plan = planPool(targeting(view(), { scale: null, demand: demand(60) }), NOON);
    expect(brief(plan)).toEqual([]);
    expect(plan.holds.map(({ reason }) => [reason.code, reason.params["owner"] ?? reason.params["wanted"]])).toEqual([
      ["scale_other_owner", "Manager/kubectl"],
      ["scale_not_adopted", 6],
    ]);
    expect(plan.recommendation).toBe(6);
  });

  test("that an autoscaler wrote, which is gone, is nobody's", () => {
    const managers = [manager("kube-controller-manager", NOON, "scale")];
    expect(planned(view({ object: object({ managers }) }), { scale: null })).toEqual([[], ["scale_not_adopted"]]);
  });

  test("whose ScaledObject asks this pool alone is decided and left for KEDA to write (K11, I20)", () => {
    const hand = view({ owners: [scaledObject("default/orders"), MADE] });
    expect(planned(hand, { scale: stateOf({ desired: 3 }), demand: demand(60) })).toEqual([["set_desired 3→6"], ["scale_through_keda"]]);
    expect(planned(hand, { scale: null })).toEqual([["set_desired 3→3"], ["scale_through_keda"]]);
    const another = view({ owners: [scaledObject("default/orders"), MADE, { ...HPA, name: "second" }] });
    expect(planned(another, { scale: stateOf({ desired: 3 }), demand: demand(60) })).toEqual([
      [],
      ["scale_other_owner", "scale_not_adopted"],
    ]);
    const asksAnother = view({ owners: [scaledObject("default/another"), MADE], object: object({ managers: [] }) });
    expect(planned(asksAnother, { scale: null })).toEqual([[], ["scale_other_owner", "scale_not_adopted"]]);
  });
});

test("an HPA on an instance of a pool with a blueprint holds the size of that pool (I20)", () => {
  const spec = { driver: "worker", worker: { flow: "queue/captures" }, scale: SCALE };
  const pool = poolOf({ desired: 1, floor: 0, max: 20, spec }, [], {
    ...{ demand: demand(90), scale: stateOf({ desired: 1 }), scaleOwners: [{ workload: "Deployment/orders-a", owner: HPA }] },
  });
  const plan = planPool(pool, NOON);
  expect([brief(plan).filter((each) => each.startsWith("set_desired")), holds(plan)[0]]).toEqual([[], "scale_other_owner"]);
});
