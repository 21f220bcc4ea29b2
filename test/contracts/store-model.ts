/** The store's contract against a model of a few lines: whatever is tried in whatever order, the store does what the model does (I3, I4). */
import fc from "fast-check";
import { expect, test } from "vitest";
import { compareEpochs } from "../../src/kernel/epoch.ts";
import type { Evidence } from "../../src/model/evidence.ts";
import { LOSSES, mayMove, mayTrust, nextPhases, PHASES, TRUSTS, type Loss, type Phase, type Trust } from "../../src/model/phase.ts";
import type { StepState } from "../../src/model/step.ts";
import type { Authority, Change, Store } from "../../src/store/port.ts";
import { create, evidenceOf, incarnation, NOON, picture, POOL, recordStep } from "./store-fixtures.ts";

interface ModelInstance {
  phase: Phase;
  trust: Trust;
  incarnation: number;
}

interface Model {
  generation: number;
  readonly instances: Map<string, ModelInstance>;
  /** `instance loss` → evidence id. */
  readonly evidence: Map<string, string>;
  readonly steps: Map<string, { node: string; state: StepState }>;
}

/** Numbers that become a change when the model is known: most are sensible, some are not. */
type Draw = readonly [what: number, which: number, first: number, second: number];

const INSTANCES = ["i-1", "i-2", "i-3"];
const ENDS = ["done", "failed", "superseded", "held"] as const;

export function storeModelContract(name: string, open: () => Promise<Store>, numRuns: number): void {
  test(`${name} does what a small model does, whatever is tried`, async () => {
    const draw = fc.tuple(fc.nat(9), fc.nat(999), fc.nat(999), fc.nat(999));
    const commit = fc.record({
      isStale: fc.nat(3).map((number) => number === 0),
      draws: fc.array(draw, { minLength: 1, maxLength: 4 }),
      reclaims: fc.nat(9),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(commit, { minLength: 1, maxLength: 40 }), async (commits) => {
        const store = await open();
        try {
          await compare(store, commits);
        } finally {
          await store.close();
        }
      }),
      { numRuns },
    );
  });
}

async function compare(store: Store, commits: readonly { isStale: boolean; draws: readonly Draw[]; reclaims: number }[]): Promise<void> {
  let model: Model = { generation: 0, instances: new Map(), evidence: new Map(), steps: new Map() };
  let authority = await store.claim(POOL, "controller", NOON);
  let stale: Authority | undefined;
  const proven = new Map<string, Evidence>();

  for (const [index, { isStale, draws, reclaims }] of commits.entries()) {
    if (reclaims === 0) {
      stale = authority;
      authority = await store.claim(POOL, "controller", NOON);
      expect(compareEpochs(authority.epoch, stale.epoch)).toBeGreaterThan(0);
    }
    const changes = draws.map((draw) => changeOf(draw, model));
    const isRefused = isStale && stale !== undefined;
    const next = isRefused ? undefined : applied(model, changes);
    const before = next === undefined ? await picture(store) : undefined;

    const [result] = await Promise.allSettled([store.commit(isRefused && stale ? stale : authority, changes, NOON + index)]);

    if (next === undefined) {
      expect(result).toMatchObject({ status: "rejected", reason: { code: isRefused ? "stale_epoch" : "store_conflict" } });
      expect(await picture(store)).toEqual(before);
      continue;
    }
    expect(result).toEqual({ status: "fulfilled", value: { generation: `0.${next.generation}` } });
    model = next;
    await expectSame(store, model, proven);
  }
}

function changeOf([what, which, first, second]: Draw, model: Model): Change {
  const instance = pick(INSTANCES, which);
  const seen = model.instances.get(instance) ?? { phase: "pending", trust: "ok", incarnation: 0 };
  const step = `s-${which % 4}`;
  const from = first % 8 === 0 ? pick(PHASES, second) : seen.phase;
  const ways = nextPhases(from);
  switch (what) {
    case 0:
      return create(instance);
    case 1:
    case 2:
    case 3:
    case 4:
      return {
        kind: "move_instance",
        instance,
        from,
        to: second % 8 === 0 || ways.length === 0 ? pick(PHASES, first) : pick(ways, second),
      };
    case 5: {
      const after = first % 4 === 0 ? second % 3 : seen.incarnation;
      return { kind: "renew_incarnation", instance, after, incarnation: incarnation(after + 1) };
    }
    case 6: {
      const seenTrust = first % 4 === 0 ? pick(TRUSTS, second) : seen.trust;
      return { kind: "set_trust", instance, incarnation: seen.incarnation, from: seenTrust, to: pick(TRUSTS, second) };
    }
    case 7:
      return { kind: "record_evidence", id: `e-${first}-${second}`, evidence: evidenceOf(instance, { loss: pick(LOSSES, second) }) };
    case 8:
      return recordStep(step, { payload: { node: first % 4 === 0 ? "b" : "a" } });
    default:
      return { kind: "end_step", step, state: pick(ENDS, first), outcome: "x" };
  }
}

/** The model after the changes; undefined when one of them is refused. */
function applied(model: Model, changes: readonly Change[]): Model | undefined {
  const next = structuredClone(model);
  let isRaised = false;
  for (const change of changes) {
    const effect = applyOne(next, change);
    if (effect === "refused") return undefined;
    isRaised ||= effect === "raises";
  }
  if (isRaised) next.generation++;
  return next;
}

function applyOne({ instances, evidence, steps }: Model, change: Change): "applied" | "raises" | "refused" {
  switch (change.kind) {
    case "create_instance":
      if (instances.has(change.instance.id)) return "refused";
      instances.set(change.instance.id, { phase: "pending", trust: "ok", incarnation: 0 });
      return "applied";
    case "move_instance": {
      const known = instances.get(change.instance);
      if (known?.phase !== change.from || !mayMove(change.from, change.to)) return "refused";
      known.phase = change.to;
      return traffic(change.from) === traffic(change.to) ? "applied" : "raises";
    }
    case "renew_incarnation": {
      const known = instances.get(change.instance);
      if (known?.incarnation !== change.after) return "refused";
      Object.assign(known, { incarnation: change.after + 1, trust: "ok" });
      return traffic(known.phase) === "" ? "applied" : "raises";
    }
    case "set_trust": {
      const known = instances.get(change.instance);
      if (known?.trust !== change.from || known.incarnation !== change.incarnation || !mayTrust(change.from, change.to)) return "refused";
      known.trust = change.to;
      return "applied";
    }
    case "record_evidence": {
      if (!instances.has(change.evidence.instance)) return "refused";
      const key = `${change.evidence.instance} ${change.evidence.loss}`;
      if (idOwner(evidence, change.id, key)) return "refused";
      if (!evidence.has(key)) evidence.set(key, change.id);
      return "applied";
    }
    case "record_step": {
      const { node } = change.step.payload as { node: string };
      const known = steps.get(change.step.id);
      if (known !== undefined) return known.node === node ? "applied" : "refused";
      steps.set(change.step.id, { node, state: "unknown" });
      return "applied";
    }
    case "end_step": {
      const known = steps.get(change.step);
      const isOpen = known?.state === "unknown" || (known?.state === "held" && change.state !== "held");
      if (known === undefined || !isOpen) return "refused";
      known.state = change.state;
      return "applied";
    }
    default:
      throw new Error(`the model does not know ${change.kind}`);
  }
}

/** True when the id is that of other evidence. */
function idOwner(evidence: ReadonlyMap<string, string>, id: string, key: string): boolean {
  return [...evidence].some(([otherKey, otherId]) => otherId === id && otherKey !== key);
}

function traffic(phase: Phase): string {
  if (phase === "admitted" || phase === "serving") return "serving";
  return phase === "draining" ? "draining" : "";
}

async function expectSame(store: Store, model: Model, proven: Map<string, Evidence>): Promise<void> {
  const instances = await store.listInstances(POOL, 100);
  expect(
    Object.fromEntries(instances.map(({ id, phase, trust, incarnation: { number } }) => [id, { phase, trust, incarnation: number }])),
  ).toEqual(Object.fromEntries(model.instances));
  const evidence = await store.listEvidence(POOL, 1_000);
  expect(Object.fromEntries(evidence.map(({ id, instance, loss }) => [keyOf(instance, loss), id]))).toEqual(
    Object.fromEntries(model.evidence),
  );
  for (const fact of evidence) {
    const key = keyOf(fact.instance, fact.loss);
    const first = proven.get(key) ?? fact;
    expect(fact).toEqual(first); // I3
    proven.set(key, first);
  }
  const rows = await store.readPool(POOL);
  expect(rows?.openSteps.map(({ id, state }) => [id, state]).toSorted()).toEqual(
    [...model.steps]
      .filter(([, { state }]) => state === "unknown" || state === "held")
      .map(([id, { state }]) => [id, state])
      .toSorted(),
  );
  expect(rows?.instances.map(({ id }) => id).toSorted()).toEqual(
    [...model.instances]
      .filter(([, { phase }]) => phase !== "deleted")
      .map(([id]) => id)
      .toSorted(),
  );
}

function keyOf(instance: string, loss: Loss): string {
  return `${instance} ${loss}`;
}

function pick<T>(from: readonly T[], number: number): T {
  return from[number % from.length] as T;
}
