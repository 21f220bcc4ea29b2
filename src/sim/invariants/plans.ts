import { planPool } from "../../plan/plan.ts";
import type { Plan } from "../../plan/decision.ts";
import type { EvacuationInput, Evacuee, Grant, Supply } from "../../plan/evacuation/types.ts";
import { sizeOf } from "../../plan/scaling/size-of.ts";
import type { InstanceSnapshot, PoolSnapshot } from "../../plan/snapshot.ts";
import { isLeaving } from "../../model/phase.ts";
import { PRIORITIES } from "../../model/membership.ts";
import type { Checker } from "./checker.ts";

/** One of so many plans is made again from the same things seen in another order. */
const AGAIN_EVERY = 8;

/** Watches: every plan, with the snapshot that it was made from. */
export function orderHasNoMeaning(): Checker {
  let plans = 0;
  return {
    id: "I17",
    rule: "the outcome does not depend on the order of nodes, errors or duplicate notices",
    watches: ["planned"],
    on(event, { violate }) {
      if (event.type !== "planned" || ++plans % AGAIN_EVERY !== 0) return;
      const { snapshot, plan, at } = event;
      const first = outcomeOf(plan);
      const again = outcomeOf(planPool(inAnotherOrder(snapshot), at));
      const differing = [...first.difference(again), ...again.difference(first)];
      if (differing.length > 0) violate(`the same snapshot in another order is planned otherwise: ${differing.slice(0, 3).join("; ")}`);
    },
  };
}

function outcomeOf({ decisions, holds }: Plan): Set<string> {
  return new Set([...decisions, ...holds].map((each) => JSON.stringify(each)).toSorted());
}

/** All that is a list is seen from its other end; what is found of a node is found twice. */
function inAnotherOrder(snapshot: PoolSnapshot): PoolSnapshot {
  return {
    ...snapshot,
    instances: snapshot.instances.toReversed().map(
      (instance): InstanceSnapshot => ({
        ...instance,
        evidence: instance.evidence.toReversed(),
        pods: instance.pods.toReversed().map((pod) => ({
          ...pod,
          node: pod.node && { ...pod.node, findings: [...pod.node.findings, ...pod.node.findings].toReversed() },
        })),
      }),
    ),
    openSteps: snapshot.openSteps.toReversed(),
    failures: snapshot.failures.toReversed(),
    workloads: snapshot.workloads.toReversed(),
    evacuation: new Map([...snapshot.evacuation].toReversed()),
  };
}

/** Why a place may stay free, and a condemned instance in its place, at this moment. */
const MAY_WAIT: ReadonlySet<string> = new Set([
  "candidate_backoff",
  "candidates_held",
  "candidates_few",
  "capacity_used",
  "surge_used",
  "standby_taken",
  "evacuation_wait",
  "evacuation_held_back",
  "evacuation_late",
  "evacuation_unsavable",
]);

/** Watches: every plan. While anything else fails, a free place is filled in the same plan, or its own reason is told. */
export function noPlaceIsForgotten(): Checker {
  return {
    id: "I15",
    rule: "one bad candidate never stops unrelated plans",
    watches: ["planned"],
    on(event, { violate }) {
      if (event.type !== "planned") return;
      const { snapshot, plan } = event;
      if (isStill(snapshot, event.at)) return;
      const held = snapshot.instances.filter(({ record }) => !isLeaving(record.phase) && !isStandby(record));
      const places = new Set(held.map(({ record }) => record.ordinal));
      const desired = sizeIn(snapshot, plan);
      const coming = plan.decisions.filter(({ kind }) => kind === "add_instance" || kind === "take_standby").length;
      const isExplained = plan.holds.some(({ reason }) => MAY_WAIT.has(reason.code));
      if (places.size + coming < desired && coming === 0 && !isExplained)
        violate(`${places.size} places of ${desired} are held, nobody comes, and why is not said`);
      for (const { subject, reason } of plan.holds) {
        if (reason.code !== "candidate_backoff" && reason.code !== "candidates_held") continue;
        if (!snapshot.failures.some(({ replaces }) => (replaces ?? "") === subject))
          violate(`${subject || "a free place"} waits for ${reason.code}, and no candidate for it ever failed`);
      }
    },
  };
}

/** The size that the plan itself fills up to: what it decides, else what was decided before. Of a target no place is filled. */
function sizeIn(snapshot: PoolSnapshot, { decisions }: Plan): number {
  if (snapshot.spec.target !== undefined) return 0;
  const change = decisions.find(({ kind }) => kind === "set_desired");
  return change?.kind === "set_desired" ? change.to : sizeOf(snapshot);
}

/** Nothing is begun there by anybody's will. */
function isStill({ freeze, deleting, rewound, witnessesAwaitedUntil }: PoolSnapshot, at: number): boolean {
  return deleting || rewound !== null || at < (witnessesAwaitedUntil ?? at) || (freeze !== null && at < freeze.until);
}

function isStandby({ purpose }: InstanceSnapshot["record"]): boolean {
  return purpose === "standby";
}

/** Watches: every plan. */
export function whoIsLeftAloneHasAReason(): Checker {
  return {
    id: "D11",
    rule: "an instance that must go and is left alone has a reason",
    watches: ["planned"],
    on(event, { violate }) {
      if (event.type !== "planned") return;
      const { snapshot, plan } = event;
      if (isStill(snapshot, event.at)) return;
      const named = new Set<string>([
        ...plan.decisions.flatMap((decision) => ("instance" in decision ? [decision.instance] : [])),
        ...plan.decisions.flatMap((decision) => ("replaces" in decision && decision.replaces !== null ? [decision.replaces] : [])),
        ...plan.holds.map(({ subject }) => subject),
        ...snapshot.openSteps.flatMap(({ instance }) => instance ?? []),
      ]);
      for (const { record, evidence } of snapshot.instances)
        if (evidence.length > 0 && !isLeaving(record.phase) && !named.has(record.id))
          violate(`${record.id} is condemned (${evidence[0]?.reason}), ${record.phase}, and nothing is said of it`);
    },
  };
}

/** Watches: every plan of a pool whose flag is off, as the controller knew it when it planned. */
export function flagOffPlansNothing(): Checker {
  return {
    id: "I26/plan",
    rule: "flag off: nothing that is seen of nodes is decided, and nothing that was not begun",
    watches: ["planned"],
    on(event, { violate }) {
      if (event.type !== "planned" || event.snapshot.spec.disruption.mode !== "Off") return;
      const { snapshot, plan } = event;
      for (const decision of plan.decisions) {
        if (decision.kind === "cordon_node" || decision.kind === "protect_pod" || decision.kind === "unprotect_pod")
          violate(`${decision.kind} for ${decision.instance}`);
        if (decision.kind === "record_evidence" && isOfNodes(decision.evidence)) violate(`evidence ${decision.evidence.reason}`);
        if (decision.kind !== "add_instance" || decision.replaces === null) continue;
        const predecessor = snapshot.instances.find(({ record }) => record.id === decision.replaces);
        if (
          predecessor &&
          !isLeaving(predecessor.record.phase) &&
          predecessor.evidence.every(isOfNodes) &&
          !wasBegun(snapshot, decision.replaces)
        )
          violate(`a replacement for ${decision.replaces} is begun`);
      }
    },
  };
}

function isOfNodes({ loss, reason }: { readonly loss: string; readonly reason: string }): boolean {
  return loss !== "forced" && reason !== "operator_drain";
}

function wasBegun({ instances, failures }: PoolSnapshot, predecessor: string): boolean {
  return instances.some(({ record }) => record.replaces === predecessor) || failures.some(({ replaces }) => replaces === predecessor);
}

/** Watches: every evacuation schedule, with what it was made from. */
export function admissionsKeepToTheBucket(): Checker {
  return {
    id: "I12",
    rule: "admissions per window within the bucket, reservations within standby",
    watches: ["scheduled"],
    on(event, { violate }) {
      if (event.type !== "scheduled") return;
      const { input, plan } = event;
      const fresh = freshGoes(input, plan.grants);
      for (const supply of input.supplies) {
        const taken = fresh.filter((grant) => grant.supply === supply.id && grant.preempts === null).length;
        if (taken > supply.free) violate(`${taken} are sent to ${supply.id}, which has ${supply.free} places`);
      }
      for (const { site, tokens } of new Map(input.supplies.map(({ absorption }) => [absorption.site, absorption])).values()) {
        const ids = new Set(input.supplies.filter(({ absorption }) => absorption.site === site).map(({ id }) => id));
        const sent = fresh.filter((grant) => ids.has(grant.supply)).length;
        if (sent > Math.floor(tokens + 1e-9)) violate(`${sent} are sent to ${site} at once, which takes ${tokens}`);
      }
      const named = new Set(plan.grants.map(({ evacuee }) => evacuee));
      if (named.size !== plan.grants.length || named.size !== new Set(input.evacuees.map(({ id }) => id)).size)
        violate(`${plan.grants.length} grants for ${input.evacuees.length} evacuees`);
    },
  };
}

/** Watches: every evacuation schedule, with what it was made from. */
export function classesAreNotInverted(): Checker {
  return {
    id: "I13",
    rule: "no lower class gets standby while an eligible higher one waits",
    watches: ["scheduled"],
    on(event, { violate }) {
      if (event.type !== "scheduled") return;
      const { input, plan } = event;
      const evacuees = new Map(input.evacuees.map((evacuee) => [evacuee.id, evacuee]));
      const supplies = new Map(input.supplies.map((supply) => [supply.id, supply]));
      const waiting = plan.grants.filter(({ kind }) => kind === "wait").flatMap(({ evacuee }) => evacuees.get(evacuee) ?? []);
      for (const grant of freshGoes(input, plan.grants)) {
        const supply = supplies.get(grant.supply);
        const going = evacuees.get(grant.evacuee);
        if (supply?.kind !== "standby" || going === undefined) continue;
        const passedOver = waiting.find((other) => rankOf(other) < rankOf(going) && isEligible(other, supply));
        if (passedOver) violate(`${going.id} (${going.priority}) gets ${supply.id} while ${passedOver.id} (${passedOver.priority}) waits`);
      }
    },
  };
}

type Go = Extract<Grant, { kind: "go" }>;

/** What was reserved before is only said again. */
function freshGoes(input: EvacuationInput, grants: readonly Grant[]): readonly Go[] {
  const reserved = new Set(input.reservations.filter(({ until }) => until > input.now).map(({ evacuee }) => evacuee));
  return grants.filter((grant): grant is Go => grant.kind === "go" && !reserved.has(grant.evacuee));
}

function rankOf({ priority }: Evacuee): number {
  return PRIORITIES.indexOf(priority);
}

function isEligible({ pool }: Evacuee, supply: Supply): boolean {
  return supply.passing && (supply.pool === null || supply.pool === pool);
}
