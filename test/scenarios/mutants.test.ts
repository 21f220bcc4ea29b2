/**
 * The checkers can fail: each of these breaks one rule of the production code, or of what stands behind a port, and the invariant must say so. A checker
 * that cannot be made to fail proves nothing.
 */
import { afterEach, expect, test, vi } from "vitest";
import { cordonNode } from "../../src/act/steps/cordon-node.ts";
import { createInstance } from "../../src/act/steps/create-instance.ts";
import { deleteInstance } from "../../src/act/steps/delete-instance.ts";
import { Membership } from "../../src/gateway/membership.ts";
import { Ledger } from "../../src/gateway/ledger.ts";
import type { KubeApi } from "../../src/kube/api.ts";
import { DEPLOYMENTS, NODES } from "../../src/kube/resources.ts";
import { Budget } from "../../src/plan/budget.ts";
import type { FaultKind } from "../../src/sim/faults.ts";
import type { SeedOptions } from "../../src/sim/run-seed.ts";
import type { Authority, Store } from "../../src/store/port.ts";
import { done, NOT_HAPPENED } from "../../src/act/step-kind.ts";
import { simulate } from "./seeds.ts";

const SEEDS = 12;

afterEach(() => void vi.restoreAllMocks());

/** The first seed in which the invariant speaks. */
async function caught(id: string, kinds: readonly FaultKind[], tamper: SeedOptions["tamper"] = {}): Promise<boolean> {
  for (let seed = 1; seed <= SEEDS; seed++) {
    const { violations } = await simulate(seed, { kinds, tamper, faultsForMs: 20_000, convergeWithinMs: 30_000 });
    if (violations.some((violation) => violation.id === id)) return true;
  }
  return false;
}

function kubeWith(change: (api: KubeApi) => Partial<KubeApi>): SeedOptions["tamper"] {
  return { kube: (api) => ({ ...api, ...change(api) }) };
}

/** Methods of the store live on its prototype. */
function storeWith(change: (store: Store) => Partial<Store>): SeedOptions["tamper"] {
  return {
    store(store) {
      const changed = change(store);
      return new Proxy(store, {
        get: (target, name: keyof Store) => changed[name] ?? (target[name] as (...input: unknown[]) => unknown).bind(target),
      });
    },
  };
}

const TIMEOUT_MS = 120_000;

test("I3: a store that changes evidence is caught", { timeout: TIMEOUT_MS }, async () => {
  let reads = 0;
  const tamper = storeWith((store) => ({
    async readPool(pool) {
      const rows = await store.readPool(pool);
      reads += 1;
      return rows && { ...rows, evidence: rows.evidence.map((each) => ({ ...each, firstSeen: each.firstSeen + reads })) };
    },
  }));
  expect(await caught("I3", ["node_death", "node_drift"], tamper)).toBe(true);
});

test("I4: a store that takes the commits of a deposed controller, and does not tell it, is caught", { timeout: TIMEOUT_MS }, async () => {
  const own = new Map<string, Authority>();
  const tamper = storeWith((store) => ({
    async claim(pool, owner, now) {
      const authority = await store.claim(pool, owner, now);
      own.set(pool, authority);
      return authority;
    },
    async readPool(pool) {
      const rows = await store.readPool(pool);
      return rows && { ...rows, authorityEpoch: own.get(pool)?.epoch ?? rows.authorityEpoch };
    },
    async commit(authority, changes, now) {
      const current = (await store.readPool(authority.pool))?.authorityEpoch ?? authority.epoch;
      return store.commit({ ...authority, epoch: current }, changes, now);
    },
  }));
  expect(await caught("I4", ["deposed", "node_drift"], tamper)).toBe(true);
});

test("I5: a planner that drains without a spare instance is caught", { timeout: TIMEOUT_MS }, async () => {
  vi.spyOn(Budget.prototype, "hasSpare").mockReturnValue(true);
  expect(await caught("I5", ["node_drift"])).toBe(true);
});

test("I6: a cordon without preconditions is caught", { timeout: TIMEOUT_MS }, async () => {
  vi.spyOn(cordonNode, "act").mockImplementation(async ({ node, evidence }, { kube, step }) => {
    const annotations = { "relevo.dev/cordoned-by": step.id, "relevo.dev/cordoned-for": evidence };
    await kube.patch({ type: NODES, name: node.name }, { metadata: { annotations }, spec: { unschedulable: true } });
    return done("cordoned");
  });
  expect(await caught("I6", ["node_drift"])).toBe(true);
});

test("I7: a cordon that takes over what somebody else cordoned is caught", { timeout: TIMEOUT_MS }, async () => {
  vi.spyOn(cordonNode, "act").mockImplementation(async ({ evidence }, { kube, step }) => {
    const annotations = { "relevo.dev/cordoned-by": step.id, "relevo.dev/cordoned-for": evidence };
    for (const { metadata } of (await kube.list(NODES)).items)
      await kube.patch(
        { type: NODES, name: metadata.name },
        { metadata: { uid: metadata.uid, annotations }, spec: { unschedulable: true } },
      );
    return done("cordoned");
  });
  expect(await caught("I7", ["node_drift", "foreign_cordon"])).toBe(true);
});

test("I8: a delete without a UID is caught", { timeout: TIMEOUT_MS }, async () => {
  vi.spyOn(deleteInstance, "act").mockImplementation(async ({ objects, namespace }, { kube }) => {
    for (const { name } of objects) await kube.delete({ type: DEPLOYMENTS, namespace, name }).catch(() => undefined);
    return done("absent");
  });
  expect(await caught("I8", ["node_drift", "node_death"])).toBe(true);
});

test("I11: a gateway that does not wait for its check is caught", { timeout: TIMEOUT_MS }, async () => {
  const step = Membership.prototype.step;
  vi.spyOn(Membership.prototype, "step").mockImplementation(function (this: Membership, event) {
    const effects = step.call(this, event);
    for (const route of this.routes.values()) for (const member of route.members) member.health = "passing";
    return effects;
  });
  expect(await caught("I11", ["node_drift", "node_death"])).toBe(true);
});

test("I14: a ledger that forgets to count an end is caught", { timeout: TIMEOUT_MS }, async () => {
  const end = Ledger.prototype.end;
  let ends = 0;
  vi.spyOn(Ledger.prototype, "end").mockImplementation(function (this: Ledger, obligation, outcome, code) {
    end.call(this, obligation, outcome, code);
    if (++ends % 10 === 0) obligation.ledger.counts[outcome] -= 1;
  });
  expect(await caught("I14", [])).toBe(true);
});

test("I16: a planner that never finds itself short is caught", { timeout: TIMEOUT_MS }, async () => {
  vi.spyOn(Budget.prototype, "isShort").mockReturnValue(false);
  expect(await caught("I16", ["node_drift"])).toBe(true);
});

test("I27: a create that looks for nothing and names anew is caught", { timeout: TIMEOUT_MS }, async () => {
  vi.spyOn(createInstance, "probe").mockResolvedValue(NOT_HAPPENED);
  const tamper = kubeWith((api) => ({
    async create(type, object, options) {
      try {
        return await api.create(type, object, options);
      } catch {
        const name = object.metadata.name ?? "";
        await api.delete({ type, namespace: options?.namespace, name });
        return await api.create(type, object, options);
      }
    },
  }));
  expect(await caught("I27", ["lost_replies", "node_death", "controller_crash"], tamper)).toBe(true);
});
