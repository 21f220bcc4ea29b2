/** What the store's contract is tested with: drafts that say only what matters, and walks through the phases. */
import { expect } from "vitest";
import type { EvidenceDraft } from "../../src/model/evidence.ts";
import type { Incarnation, InstanceRecord } from "../../src/model/instance.ts";
import type { Phase } from "../../src/model/phase.ts";
import type { StepDraft } from "../../src/model/step.ts";
import type { Workload } from "../../src/model/writer.ts";
import type { Authority, Change, LeaseRenewal, NewInstance, NoticeRecord, Store } from "../../src/store/port.ts";

/** A test with an empty store of its own. */
export type StoreTest = (sentence: string, body: (store: Store) => Promise<void>) => void;

export const POOL = "shop/orders";
export const DAY = 86_400_000;
/** Noon of 1 January 2030. */
export const NOON = Date.UTC(2030, 0, 1, 12);

/** The shortest way from `pending` to each phase. */
export const WAYS: Readonly<Record<Phase, readonly Phase[]>> = {
  pending: [],
  creating: ["creating"],
  preparing: ["creating", "preparing"],
  validating: ["creating", "preparing", "validating"],
  standby: ["creating", "preparing", "validating", "standby"],
  admitted: ["creating", "preparing", "validating", "admitted"],
  serving: ["creating", "preparing", "validating", "admitted", "serving"],
  draining: ["creating", "preparing", "draining"],
  sealed: ["creating", "preparing", "draining", "sealed"],
  retiring: ["failed", "retiring"],
  retired: ["failed", "retiring", "retired"],
  deleted: ["failed", "retiring", "retired", "deleted"],
  failed: ["failed"],
};

export function newInstance(id: string, more: Partial<NewInstance> = {}): NewInstance {
  return { id, ordinal: 0, purpose: "fill", replaces: null, blueprintHash: "b1", blueprint: { objects: [] }, ...more };
}

export function create(id: string, more: Partial<NewInstance> = {}): Change {
  return { kind: "create_instance", instance: newInstance(id, more) };
}

export function move(instance: string, from: Phase, to: Phase): Change {
  return { kind: "move_instance", instance, from, to };
}

/** What the holders of these tests are told. */
export const TTL_MS = 9_000;

export function renew(store: Store, renewal: LeaseRenewal): Promise<Workload> {
  return store.renewLease(renewal, TTL_MS);
}

/** The moves from `from` along the given phases. */
export function walk(instance: string, phases: readonly Phase[], from: Phase = "pending"): Change[] {
  return phases.map((to, index) => move(instance, phases[index - 1] ?? from, to));
}

/** Makes an instance and brings it to the phase. */
export function instanceIn(phase: Phase, id: string): Change[] {
  return [create(id), ...walk(id, WAYS[phase])];
}

export function incarnation(number: number): Incarnation {
  return {
    number,
    podName: "orders-1",
    podUid: `pod-${number}`,
    containerId: `container-${number}`,
    bootId: `boot-${number}`,
    nodeName: "node-a",
    nodeUid: "node-uid-a",
    host: "127.0.0.7",
    port: 8080,
  };
}

export function step(id: string, more: Partial<StepDraft> = {}): StepDraft {
  return {
    id,
    operation: "op-1",
    pool: POOL,
    instance: null,
    kind: "cordon_node/1",
    payload: { node: "a" },
    reason: { code: "sealed", params: {} },
    ...more,
  };
}

export function recordStep(id: string, more: Partial<StepDraft> = {}): Change {
  return { kind: "record_step", step: step(id, more) };
}

export function evidenceOf(instance: string, more: Partial<EvidenceDraft> = {}): EvidenceDraft {
  return {
    instance,
    incarnation: 0,
    loss: "voluntary",
    reason: "node_drifted",
    podName: null,
    podUid: null,
    nodeName: "node-a",
    nodeUid: "node-uid-a",
    nodeClaimName: null,
    nodeClaimUid: null,
    deadline: null,
    noticeId: null,
    ...more,
  };
}

export function notice(id: string, more: Partial<NoticeRecord> = {}): NoticeRecord {
  return {
    id,
    source: "eventbridge",
    dedupeKey: id,
    receivedAt: NOON,
    body: "{}",
    outcome: "unknown_machine",
    machineIds: ["i-1"],
    deadline: null,
    reason: null,
    ...more,
  };
}

export async function refused(promise: Promise<unknown>, code: string): Promise<void> {
  await expect(promise).rejects.toMatchObject({ name: "RelevoError", code });
}

export async function claimed(store: Store, pool: string = POOL): Promise<Authority> {
  return store.claim(pool, "controller-a", NOON);
}

export async function instanceOf(store: Store, id: string, pool: string = POOL): Promise<InstanceRecord> {
  const found = (await store.listInstances(pool, 1_000)).find((instance) => instance.id === id);
  if (found === undefined) throw new Error(`no instance ${id}`);
  return found;
}

/** All that can be seen of a pool, to show that nothing changed. */
export async function picture(store: Store, pool: string = POOL): Promise<unknown> {
  return [
    await store.readPool(pool),
    await store.listInstances(pool, 1_000),
    await store.listEvidence(pool, 1_000),
    await store.listSteps(pool, 1_000),
    await store.countLosses(pool),
  ];
}
