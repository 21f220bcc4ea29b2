/** What a pool's instances have under way, as the last look saw it; of a target what its demand says is taken. */
import type { Store } from "../store/port.ts";
import type { Controller } from "./controller.ts";
import type { PoolEntry } from "./pool-informer.ts";
import type { SuspensionParts } from "./suspension.ts";

type Work = Awaited<ReturnType<SuspensionParts["work"]>>;

export async function workOf(
  { store, controller }: { readonly store: Store; readonly controller: Controller },
  { key, document }: PoolEntry,
): Promise<Work> {
  const pass = controller.lastPass(key);
  const { target } = document.spec;
  if (target !== undefined) {
    if (pass?.snapshot.target?.object?.replicas === 0) return [];
    return [{ instance: `${target.kind}/${target.name}`, underWay: pass?.snapshot.demand?.reading?.inFlight ?? null, isServing: true }];
  }
  const rows = await store.readPool(key);
  return (rows?.instances ?? []).map(({ id, phase }) => {
    const seen = pass?.snapshot.instances.find(({ record }) => record.id === id);
    const slots = seen?.slots ?? null;
    const had = seen?.obligations ?? (slots && { requests: slots.progressing + slots.stuck, sessions: 0 });
    return { instance: id, underWay: had === null ? null : had.requests + had.sessions, isServing: phase === "serving" };
  });
}
