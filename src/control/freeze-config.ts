/**
 * A freeze without the store and without Relevo's API: a ConfigMap of a fixed name, which whoever may write ConfigMaps of that namespace can make while all else
 * is broken.
 *
 *   kubectl create configmap relevo-freeze -n NAMESPACE --from-literal=pool='*' --from-literal=until=2030-01-01T12:00:00Z --from-literal=reason=…
 *
 * 1. In a namespace with Pools it freezes Pools of that namespace; in the controller's own, those of all.
 * 2. What cannot be understood freezes all that it could mean, until somebody repairs or removes it: whoever made it wanted things to stand still.
 * 3. It is joined with the store's freeze: the later end holds. `relevo unfreeze` lifts only the store's.
 */
import { z } from "zod";
import { type Clock, type Instant, parseInstant } from "../kernel/clock.ts";
import type { Random } from "../kernel/random.ts";
import type { KubeApi, KubeObject } from "../kube/api.ts";
import { createInformer, type Informer, type InformerLog } from "../kube/informer.ts";
import { CONFIG_MAPS } from "../kube/resources.ts";
import type { Parsed } from "../kube/types.ts";
import { type Freeze, standingFreeze } from "../store/port.ts";

export const FREEZE_CONFIG = "relevo-freeze";
/** Of one that ends when it is removed. */
export const UNTIL_REMOVED: Instant = Date.UTC(9999, 11, 31, 23, 59, 59);
const KEYS = ["pool", "until", "reason"] as const;
const POOLS_MAX = 1_000;
const REASON_CHARS_MAX = 500;
const FOUND_CHARS_MAX = 80;

export interface FreezeRule {
  readonly namespace: string;
  /** Null: all that it may speak of. Else names, or `namespace/name` in the controller's own namespace. */
  readonly pools: readonly string[] | null;
  readonly freeze: Freeze;
}

const dataSchema = z.record(z.string(), z.string()).default({});

/** Never refuses: what is wrong is in the freeze's reason. */
export function parseFreezeConfig(object: KubeObject): Parsed<FreezeRule> {
  const { namespace = "", name } = object.metadata;
  const by = `ConfigMap ${namespace}/${name}`;
  const data = dataSchema.safeParse(object.data ?? undefined).data ?? {};
  const pools = poolsOf(data.pool);
  const until = data.until === undefined || data.until.trim() === "" ? UNTIL_REMOVED : parseInstant(data.until.trim());
  const problems = [
    ...(pools === undefined ? [`pool is ${excerpt(data.pool)}, allowed is * or names separated by commas`] : []),
    ...(until === undefined ? [`until is ${excerpt(data.until)}, allowed is a time such as 2030-01-01T12:00:00Z`] : []),
    ...Object.keys(data).flatMap((key) =>
      (KEYS as readonly string[]).includes(key) ? [] : [`${excerpt(key)} is no key, allowed are ${KEYS.join(", ")}`],
    ),
  ];
  const why = (data.reason ?? "").trim().slice(0, REASON_CHARS_MAX) || "no reason was given";
  if (problems.length === 0)
    return { ok: true, value: { namespace, pools: pools ?? null, freeze: { until: until ?? UNTIL_REMOVED, why, by } } };
  const said = `${by} is not understood, so all that it may mean is frozen: ${problems.slice(0, 3).join("; ")} (${why})`;
  return { ok: true, value: { namespace, pools: pools ?? null, freeze: { until: UNTIL_REMOVED, why: said, by } } };
}

/** Undefined: not understood. */
function poolsOf(text: string | undefined): readonly string[] | null | undefined {
  if (text === undefined) return undefined;
  const names = text.split(/[\s,]+/).filter((name) => name !== "");
  if (names.length === 0 || names.length > POOLS_MAX) return undefined;
  if (names.includes("*")) return names.length === 1 ? null : undefined;
  return names.every((name) => /^([a-z0-9][-a-z0-9.]*\/)?[a-z0-9][-a-z0-9.]*$/.test(name)) ? names : undefined;
}

function excerpt(text: string | undefined): string {
  if (text === undefined) return "missing";
  return JSON.stringify(text.length <= FOUND_CHARS_MAX ? text : `${text.slice(0, FOUND_CHARS_MAX)}…`);
}

/** Whether the rule speaks of the pool `namespace/name`. */
export function concerns({ namespace, pools }: FreezeRule, pool: string, ownNamespace: string | null): boolean {
  const isOwn = namespace === ownNamespace;
  const [of = "", name = ""] = pool.split("/");
  if (!isOwn && namespace !== of) return false;
  if (pools === null) return true;
  // A bare name means a Pool beside the ConfigMap.
  return pools.some((each) => (each.includes("/") ? each === pool : namespace === of && each === name));
}

/** The freeze that holds longer; both reasons, when both hold. */
export function joinFreezes(a: Freeze | null, b: Freeze | null): Freeze | null {
  if (a === null || b === null) return a ?? b;
  const [longer, shorter] = a.until >= b.until ? [a, b] : [b, a];
  return { until: longer.until, why: `${longer.why}; ${shorter.by}: ${shorter.why}`, by: longer.by };
}

export interface FreezeSource {
  start(): void;
  stop(): void;
  /** Settles when it is known what is frozen, or that it may not be read. */
  whenAnswered(): Promise<void>;
  /** Null: nothing here freezes it. */
  freezeOf(pool: string, now: Instant): Freeze | null;
  onChange(listener: () => void): void;
}

export class FreezeConfigs implements FreezeSource {
  readonly #informer: Informer<FreezeRule>;
  readonly #ownNamespace: string | null;

  constructor(options: {
    readonly api: KubeApi;
    readonly clock: Clock;
    readonly random: Random;
    readonly log: InformerLog;
    /** The controller's; null: only Pools' own namespaces can be frozen. */
    readonly ownNamespace: string | null;
  }) {
    const { ownNamespace, ...rest } = options;
    this.#ownNamespace = ownNamespace;
    // Chosen by name, so that RBAC can grant this one object and no other.
    this.#informer = createInformer({
      ...rest,
      type: CONFIG_MAPS,
      fieldSelector: `metadata.name=${FREEZE_CONFIG}`,
      parse: parseFreezeConfig,
    });
  }

  start(): void {
    this.#informer.start();
  }

  stop(): void {
    this.#informer.stop();
  }

  whenAnswered(): Promise<void> {
    return this.#informer.whenAnswered();
  }

  freezeOf(pool: string, now: Instant): Freeze | null {
    return this.#informer
      .list()
      .filter((rule) => concerns(rule, pool, this.#ownNamespace))
      .map(({ freeze }) => standingFreeze(freeze, now))
      .reduce(joinFreezes, null);
  }

  onChange(listener: () => void): void {
    this.#informer.onChange(listener);
  }
}
