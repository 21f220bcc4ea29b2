import { expect, test } from "vitest";
import { NOON, poolOf } from "../../test/builders/pool.ts";
import { poolSchema } from "../model/pool.ts";
import type { ScaleState } from "../model/scale.ts";
import type { TargetView } from "../model/scale-owner.ts";
import type { PoolSnapshot } from "../plan/snapshot.ts";
import { DecidedSizes, type DecidedSizesParts } from "./decided-sizes.ts";
import type { PoolEntry } from "./pool-informer.ts";

const spec = (more: object) => ({
  ...{ driver: "worker", size: { desired: 2, max: 9 }, worker: { flow: "queue/captures" } },
  scale: { signal: { kind: "queue", connection: "main", queue: "captures" }, target: 10 },
  ...more,
});
const BLUEPRINT = { blueprint: { objects: [{ apiVersion: "apps/v1", kind: "Deployment", metadata: { name: "$(relevo.instance)" } }] } };
const TARGET = { target: { kind: "Deployment", name: "web" } };
const documentOf = (more: object) =>
  poolSchema.parse({ apiVersion: "relevo.dev/v1alpha1", kind: "Pool", metadata: { name: "web", namespace: "shop" }, spec: spec(more) });
const decided = (desired: number): ScaleState => ({ desired, changedAt: NOON, direction: "up", lastUp: null, recent: [] });

const VIEW: TargetView = {
  ...{ kind: "Deployment", name: "web", owners: [], trouble: null, fullSince: null, takenAt: null },
  object: { uid: "u1", replicas: 7, readyReplicas: 7, isPaused: false, isDeleting: false, managers: [] },
};

interface Case {
  readonly more?: object;
  readonly isDeleting?: boolean;
  readonly isThere?: boolean;
  readonly isSynced?: boolean;
  readonly scale?: ScaleState | null | Error;
  readonly seen?: Partial<PoolSnapshot>;
}

async function sizeIn({
  more = BLUEPRINT,
  isDeleting = false,
  isThere = true,
  isSynced = true,
  scale = null,
  seen,
}: Case): Promise<unknown> {
  const entry = { document: documentOf(more), isDeleting } as PoolEntry;
  const pass = seen && {
    snapshot: poolOf({ desired: 2 }, [], seen),
    plan: { decisions: [], holds: [], nextLookAt: null, recommendation: null },
    at: NOON,
  };
  const parts: DecidedSizesParts = {
    pools: { get: () => (isThere ? entry : undefined), synced: () => isSynced },
    controller: { lastPass: () => pass },
    store: {
      readPool: async () => {
        if (scale instanceof Error) throw scale;
        return { scale } as Awaited<ReturnType<DecidedSizesParts["store"]["readPool"]>>;
      },
    },
  };
  return new DecidedSizes(parts).sizeOf("shop/web").catch((error: { readonly code?: string }) => error.code ?? "away");
}

test.each<[string, Case, unknown]>([
  ["what was decided", { scale: decided(5) }, 5],
  ["before that what its document says", {}, 2],
  ["of a target before that what is there", { more: TARGET, seen: { target: VIEW } }, 7],
  ["of a target that was not seen yet nothing", { more: TARGET }, null],
  ["of a target what was decided, whatever is there", { more: TARGET, scale: decided(4), seen: { target: VIEW } }, 4],
  ["of none that is there nothing", { isThere: false }, undefined],
  ["while Pools are not listed yet nobody knows", { isThere: false, isSynced: false }, null],
  ["of one that is deleted nothing", { isDeleting: true, scale: decided(5) }, undefined],
  ["while the store is away nobody can say", { scale: new Error("away") }, "away"],
  [
    "what a store that was rewound says is not believed",
    { scale: decided(5), seen: { rewound: { witness: "gateway gw-1", what: "generation", seen: "0.9", stored: null } } },
    "store_rewound",
  ],
])("the size for KEDA: %s (K11)", async (_what, given, size) => {
  expect(await sizeIn(given)).toBe(size);
});
