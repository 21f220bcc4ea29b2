/** What an operator overrules: a step whose effect nobody can tell, and an instance that would wait for its obligations for ever. Both are in the journal. */
import type { Clock } from "../kernel/clock.ts";
import { formatInstant } from "../kernel/clock.ts";
import { RelevoError } from "../kernel/errors.ts";
import { reason } from "../model/reasons.ts";
import type { StepRecord } from "../model/step.ts";
import type { ForceSealCommand, ForcedSeal, ReleaseCommand } from "../server/control-plane.ts";
import type { Authority, Change, Store } from "../store/port.ts";
import type { Controller } from "./controller.ts";
import { refuseRewound } from "./store-desk.ts";
import { z } from "zod";

export interface OperatorDeskParts {
  readonly store: Store;
  readonly controller: Controller;
  readonly clock: Clock;
}

export const FORCE_SEAL = "force_seal/1";
const forceSealId = (instance: string) => `force-seal/${instance}`;
const forceSealSchema = z.object({
  by: z.string(),
  why: z.string(),
  until: z.number(),
  /** Null: no complete report was there. */
  obligations: z.number().nullable(),
});
const STEPS_LOOKED_AT = 1_000;

/** The held steps of this operation, or the one of this id, with the pool that they are of. */
export async function heldSteps(store: Store, operation: string): Promise<readonly StepRecord[]> {
  const rows = await Promise.all((await store.listPools()).map((pool) => store.readPool(pool)));
  return rows
    .flatMap((row) => row?.openSteps ?? [])
    .filter(({ state, id, operation: of }) => state === "held" && (id === operation || of === operation));
}

/** They end without consequences: the planner looks anew and decides as if they had never been begun. Throws `step_not_held`. */
export async function release(parts: OperatorDeskParts, { operation, by, why }: ReleaseCommand): Promise<readonly string[]> {
  const { store, controller, clock } = parts;
  const held = await heldSteps(store, operation);
  const pool = held[0]?.pool;
  if (pool === undefined)
    throw new RelevoError("step_not_held", `nothing of ${operation} is held`, {
      class: "conflict",
      found: operation,
      allowed: "an operation, or the id of a step, whose state is held",
      todo: "see relevo get steps",
    });
  const authority = authorityOf(parts, pool);
  const steps = held.filter((step) => step.pool === pool);
  const changes = steps.map(
    ({ id, outcome }): Change => ({
      kind: "end_step",
      step: id,
      state: "superseded",
      outcome: "released",
      result: { by, why, held: outcome },
    }),
  );
  await store.commit(authority, changes, clock.now());
  controller.wake(pool);
  return steps.map(({ id }) => id);
}

/**
 * The instance is sealed with what it still has: that is lost, counted as forced, and outside the zero-loss claim. Throws `instance_not_found`,
 * `instance_not_draining`.
 */
export async function forceSeal(parts: OperatorDeskParts, { instance, by, why, until }: ForceSealCommand): Promise<ForcedSeal> {
  const { store, controller, clock } = parts;
  const record = await findRecord(store, instance);
  if (record === undefined || record.phase === "deleted")
    throw new RelevoError("instance_not_found", `there is no instance ${instance}`, { found: instance, todo: "see relevo get instances" });
  if (record.phase !== "draining")
    throw new RelevoError("instance_not_draining", `${instance} does not drain`, {
      class: "conflict",
      found: record.phase,
      allowed: "draining",
      todo: `let it drain first: relevo drain ${instance}`,
    });
  refuseRewound(controller, record.pool);
  const authority = authorityOf(parts, record.pool);
  const seen = controller.lastPass(record.pool)?.snapshot.instances.find((each) => each.record.id === instance);
  const obligations = seen?.obligations ? seen.obligations.requests + seen.obligations.sessions : null;
  const payload = { by, why, until, obligations };
  const at = clock.now();
  await store.commit(
    authority,
    [
      {
        kind: "record_step",
        step: {
          id: forceSealId(instance),
          operation: forceSealId(instance),
          pool: record.pool,
          instance,
          kind: FORCE_SEAL,
          payload,
          reason: reason("seal_forced", { by, why, obligations: obligations ?? "unknown", until: formatInstant(until) }),
        },
      },
      { kind: "end_step", step: forceSealId(instance), state: "done", outcome: "forced" },
      {
        kind: "move_instance",
        instance,
        incarnation: record.incarnation.number,
        from: "draining",
        to: "sealed",
        set: { drainLoss: "forced", seal: "forced" },
      },
      { kind: "count_loss", instance, loss: "forced", obligations: obligations ?? 0, seal: "forced" },
    ],
    at,
  );
  controller.wake(record.pool);
  return { pool: record.pool, instance, at, phase: "sealed", ...payload };
}

/** Those that somebody must still look at: their objects are there, or their time is not over. */
export async function openForcedSeals({ store, clock }: Pick<OperatorDeskParts, "store" | "clock">): Promise<readonly ForcedSeal[]> {
  const pools = await store.listPools();
  const now = clock.now();
  const all = await Promise.all(
    pools.map(async (pool) => {
      const rows = await store.readPool(pool);
      const alive = new Map((rows?.instances ?? []).map(({ id, phase }) => [id, phase]));
      const leaving = (rows?.instances ?? []).filter(({ seal }) => seal === "forced");
      const steps = [
        ...(await store.listSteps(pool, STEPS_LOOKED_AT)),
        ...(await Promise.all(leaving.map(({ id }) => store.listSteps(pool, 1, forceSealId(id))))).flat(),
      ];
      const seals = new Map(
        steps.flatMap((step) => (step.kind === FORCE_SEAL && step.instance !== null ? [[step.id, step] as const] : [])),
      );
      return [...seals.values()].flatMap((step): ForcedSeal[] => {
        const said = forceSealSchema.safeParse(step.payload);
        const instance = step.instance ?? "";
        const phase = alive.get(instance) ?? "deleted";
        if (!said.success || (phase === "deleted" && now >= said.data.until)) return [];
        return [{ pool, instance, at: step.recordedAt, phase, ...said.data }];
      });
    }),
  );
  return all.flat().toSorted((a, b) => b.at - a.at);
}

async function findRecord(store: Store, instance: string) {
  for (const pool of await store.listPools()) {
    const found = await store.findInstance(pool, instance);
    if (found !== undefined) return found;
  }
  return undefined;
}

function authorityOf({ controller }: OperatorDeskParts, pool: string): Authority {
  const authority = controller.authorityOf(pool);
  if (authority !== undefined) return authority;
  throw new RelevoError("pool_not_ready", `pool ${pool} has not been looked at yet`, { class: "retryable", todo: "try again in a second" });
}
