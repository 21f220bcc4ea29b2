/**
 * Why a Pool is being deleted: because somebody asked for that Pool, or because what holds it goes. Whoever removes a CRD or a namespace asked for no drain, so
 * a Pool that goes with one is orphaned, whatever its deletion policy says.
 *
 * Both get their deletionTimestamp before the Pools in them do: an answer that was asked for after a Pool's deletion was seen is never too early.
 */
import type { Clock, Instant } from "../kernel/clock.ts";
import { describeError } from "../kernel/errors.ts";
import { isNotFound, type KubeApi, type ObjectRef } from "../kube/api.ts";
import { CUSTOM_RESOURCE_DEFINITIONS, NAMESPACES, POOLS } from "../kube/resources.ts";
import { reason, sentenceOf } from "../model/reasons.ts";
import type { PoolRows } from "../store/port.ts";
import { joinFreezes } from "./freeze-config.ts";
import type { ControllerLog } from "./pass.ts";
import type { PoolEntry } from "./pool-informer.ts";

/** Its CRD or namespace may be deleted while the Pool waits for its own end; and what could not be read is tried again. */
const ASK_AGAIN_MS = 5_000;
/** Until the next answer; the pass after it makes it anew. */
const UNKNOWN_FOR_MS = 10_000;

export const POOL_DEFINITION = `${POOLS.plural}.${POOLS.group}`;

/** `own`: its deletion policy holds. `container`: what holds it goes. `unknown`: it cannot be read, so nothing may be drained for it. */
export type DeletionCause =
  | { readonly kind: "own" }
  | { readonly kind: "container"; readonly container: string }
  | { readonly kind: "unknown"; readonly found: string };

interface Answer {
  readonly uid: string;
  readonly cause: DeletionCause;
  readonly at: Instant;
}

export interface DeletionCausesParts {
  readonly kube: Pick<KubeApi, "get">;
  readonly clock: Pick<Clock, "now">;
  /** Another answer than before was found. */
  readonly onChange: (pool: string) => void;
  readonly log: ControllerLog;
}

export class DeletionCauses {
  readonly #parts: DeletionCausesParts;
  readonly #answers = new Map<string, Answer>();
  /** Pools that are being asked about again. */
  readonly #asking = new Set<string>();

  constructor(parts: DeletionCausesParts) {
    this.#parts = parts;
  }

  /** Of a Pool that is being deleted. Only the first question about it is waited for: a pass must not wait for an API server that is away. Never throws. */
  async of(entry: PoolEntry): Promise<DeletionCause> {
    const known = this.#answers.get(entry.key);
    if (known?.uid !== entry.uid) return this.#ask(entry);
    if (this.#parts.clock.now() >= known.at + ASK_AGAIN_MS && !this.#asking.has(entry.key)) void this.#askAgain(entry, known);
    return known.cause;
  }

  forget(pool: string): void {
    this.#answers.delete(pool);
  }

  async #askAgain(entry: PoolEntry, { cause }: Answer): Promise<void> {
    this.#asking.add(entry.key);
    const now = await this.#ask(entry, cause);
    this.#asking.delete(entry.key);
    if (now.kind !== cause.kind) this.#parts.onChange(entry.key);
  }

  async #ask(entry: PoolEntry, former?: DeletionCause): Promise<DeletionCause> {
    const read = await this.#read(entry).catch((error: unknown): DeletionCause => {
      this.#parts.log("warn", "why the pool is being deleted cannot be read", { pool: entry.key, error });
      return { kind: "unknown", found: describeError(error) };
    });
    // A drain that was begun for good reason does not stop while the API server is away.
    const cause = read.kind === "unknown" && former?.kind === "own" ? former : read;
    const isForgotten = former !== undefined && this.#answers.get(entry.key)?.uid !== entry.uid;
    if (!isForgotten) this.#answers.set(entry.key, { uid: entry.uid, cause, at: this.#parts.clock.now() });
    return cause;
  }

  async #read(entry: PoolEntry): Promise<DeletionCause> {
    const { namespace } = entry.document.metadata;
    const definition = await this.#stateOf({ type: CUSTOM_RESOURCE_DEFINITIONS, name: POOL_DEFINITION });
    const goes = definition === "terminating" || (definition === "absent" && !(await this.#isServed(entry)));
    if (goes) return { kind: "container", container: `CustomResourceDefinition ${POOL_DEFINITION}` };
    if ((await this.#stateOf({ type: NAMESPACES, name: namespace })) !== "there")
      return { kind: "container", container: `Namespace ${namespace}` };
    return { kind: "own" };
  }

  async #stateOf(ref: ObjectRef): Promise<"there" | "terminating" | "absent"> {
    try {
      const { metadata } = await this.#parts.kube.get(ref);
      return metadata.deletionTimestamp === undefined ? "there" : "terminating";
    } catch (error) {
      if (isNotFound(error)) return "absent";
      throw error;
    }
  }

  /** Without a definition the kind is built in, as in the embedded cluster, or the last of it was just removed. */
  async #isServed({ uid, document }: PoolEntry): Promise<boolean> {
    const { namespace, name } = document.metadata;
    try {
      const { metadata } = await this.#parts.kube.get({ type: POOLS, namespace, name });
      return metadata.uid === uid;
    } catch (error) {
      if (isNotFound(error)) return false;
      throw error;
    }
  }
}

export function isOrphaned({ document }: PoolEntry, cause: DeletionCause): boolean {
  return document.spec.deletion === "orphan" || cause.kind === "container";
}

/** Nothing is decided about a pool that may have to be orphaned: it is planned as if it were frozen. */
export function heldWhileUnknown(rows: PoolRows, cause: DeletionCause | null, now: Instant): PoolRows {
  if (cause?.kind !== "unknown") return rows;
  return { ...rows, freeze: joinFreezes(rows.freeze, { until: now + UNKNOWN_FOR_MS, why: whyOf(cause.found), by: "relevo" }) };
}

function whyOf(found: string): string {
  return sentenceOf(reason("deletion_cause_unknown", { found }));
}
