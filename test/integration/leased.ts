/** Pools with a writer lease, and what is committed about it. */
import type { Epoch } from "../../src/kernel/epoch.ts";
import type { InstanceRecord } from "../../src/model/instance.ts";
import type { Workload } from "../../src/model/writer.ts";
import { RENEW_PATH } from "../../src/server/routes/leases.ts";
import type { Change, Store } from "../../src/store/port.ts";
import { type Harness, ordersPool, type PoolInput } from "./harness.ts";
import { intercept } from "./intercept.ts";
import type { LeaseAnswer } from "./modelled-writers.ts";

export const TTL_MS = 3_000;

export function leasedPool(desired: number, more: PoolInput = {}): ReturnType<typeof ordersPool> {
  return ordersPool({ desired, lease: "3s", ...more });
}

export async function workloadsOf(harness: Harness): Promise<readonly Workload[]> {
  return (await harness.store.readPool("default/orders"))?.workloads ?? [];
}

/** It holds the lease and knows it. */
export async function writes(harness: Harness, instance: string): Promise<boolean> {
  return (await workloadsOf(harness)).some(({ holder, renewals }) => holder?.instance === instance && renewals > 0);
}

/** Applies the pool and waits until each instance writes. */
export async function serveWriting(harness: Harness, pool = leasedPool(2)): Promise<readonly InstanceRecord[]> {
  const serving = await harness.serve(pool);
  for (const { id } of serving) await harness.until(`${id} writes`, () => writes(harness, id));
  return serving;
}

/** One line a commit, its changes joined by `+`: phases, trust, evidence and leases; the store as it is otherwise. */
export function recordedIn(commits: string[]): (store: Store) => Store {
  return (store) =>
    intercept(store, async ({ name, input }, go) => {
      const result = await go();
      const lines = name === "commit" ? (input[1] as readonly Change[]).flatMap(lineOf) : [];
      if (lines.length > 0) commits.push(lines.join(" + "));
      return result;
    });
}

function lineOf(change: Change): readonly string[] {
  switch (change.kind) {
    case "set_trust":
      return [`${change.instance} ${change.to}`];
    case "move_instance":
      return [`${change.instance} ${change.from}→${change.to}`];
    case "pass_writer":
      return [`lease to ${change.to?.instance ?? "nobody"}`];
    case "record_evidence":
      return [`evidence ${change.evidence.reason}`];
    default:
      return [];
  }
}

/** Those that begin with one of these, in order. */
export function history(commits: readonly string[], ...about: readonly string[]): readonly string[] {
  return commits.filter((line) => about.some((each) => line.startsWith(each)));
}

export async function renew(
  harness: Harness,
  body: { readonly pool: string; readonly instance: string; readonly bootId: string; readonly epoch: Epoch | null },
  token: string | undefined,
): Promise<LeaseAnswer> {
  const { pool, instance, bootId, epoch } = body;
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const answer = await harness.http.inject({ method: "POST", url: RENEW_PATH, headers, payload: { pool, instance, bootId, epoch } });
  return { status: answer.statusCode, body: answer.json() };
}
