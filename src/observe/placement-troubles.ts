/**
 * Why a pod that waits for a place finds none (T7): asked of its own Events when it has waited a while, and of the NodeClaim that was made for it. No watch of
 * Events, of which a large cluster has very many: one small list for each pod that waits, at most so many at once, and nothing is kept of pods that have a place.
 */
import type { Clock, Instant } from "../kernel/clock.ts";
import type { KubeApi } from "../kube/api.ts";
import { EVENTS } from "../kube/resources.ts";
import { conditionOf, type KubeEvent, parseEvent } from "../kube/types.ts";
import type { PlacementTrouble } from "../model/pod-loss.ts";
import type { World } from "./world.ts";

/** The scheduler and a provisioner need so long when all is well. */
const ASKED_AFTER_MS = 5_000;
const ASKED_AGAIN_MS = 10_000;
/** What no node has left now, a provisioner is about to bring: said only when it lasts. */
const RESOURCE_LASTS_MS = 30_000;
const MAX_ASKED_AT_ONCE = 8;
const MAX_EVENTS = 100;

export interface WaitingPod {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly pool: string;
}

interface Waiting {
  readonly since: Instant;
  askedAt: Instant | null;
  trouble: PlacementTrouble | undefined;
}

export interface PlacementTroublesOptions {
  readonly api: KubeApi;
  readonly world: Pick<World, "nodeClaims">;
  readonly clock: Clock;
  readonly onChange: (pool: string) => void;
  readonly log: (level: "debug", message: string, fields: Readonly<Record<string, unknown>>) => void;
}

export class PlacementTroubles {
  readonly #options: PlacementTroublesOptions;
  readonly #waiting = new Map<string, Map<string, Waiting>>();
  #asked = 0;

  constructor(options: PlacementTroublesOptions) {
    this.#options = options;
  }

  /** By pod UID. `pods` are all of the pool that wait now; others are forgotten. */
  look(pool: string, pods: readonly WaitingPod[]): ReadonlyMap<string, PlacementTrouble> {
    const now = this.#options.clock.now();
    const known = this.#waiting.get(pool);
    if (pods.length === 0) {
      this.#waiting.delete(pool);
      return NONE;
    }
    const next = new Map(pods.map(({ uid }) => [uid, known?.get(uid) ?? { since: now, askedAt: null, trouble: undefined }]));
    this.#waiting.set(pool, next);
    const found = new Map<string, PlacementTrouble>();
    for (const pod of pods) {
      const waiting = next.get(pod.uid);
      if (waiting === undefined) continue;
      this.#askIfDue(pod, waiting, now);
      const isTold = waiting.trouble?.kind !== "resource" || now - waiting.since >= RESOURCE_LASTS_MS;
      if (waiting.trouble !== undefined && isTold) found.set(pod.uid, waiting.trouble);
    }
    return found;
  }

  #askIfDue(pod: WaitingPod, waiting: Waiting, now: Instant): void {
    const dueAt = waiting.askedAt === null ? waiting.since + ASKED_AFTER_MS : waiting.askedAt + ASKED_AGAIN_MS;
    if (now < dueAt) {
      if (waiting.askedAt === null) void this.#options.clock.after(dueAt - now, () => this.#options.onChange(pod.pool));
      return;
    }
    if (this.#asked >= MAX_ASKED_AT_ONCE) return; // the next pass comes
    waiting.askedAt = now;
    this.#asked += 1;
    this.#ask(pod).then(
      (trouble) => {
        this.#asked -= 1;
        const isNew = trouble?.kind !== waiting.trouble?.kind || trouble?.dimension !== waiting.trouble?.dimension;
        waiting.trouble = trouble;
        if (isNew) this.#options.onChange(pod.pool);
      },
      (error: unknown) => {
        this.#asked -= 1;
        this.#options.log("debug", "why a pod has no place cannot be read", { pod: pod.name, error: String(error) });
      },
    );
  }

  async #ask({ namespace, uid }: WaitingPod): Promise<PlacementTrouble | undefined> {
    const own = await this.#events({ namespace, fieldSelector: `involvedObject.uid=${uid}` });
    const claim = own.findLast(({ reason }) => reason === "Nominated");
    const nominated = claim && /nodeclaim\/([\w.-]+)/i.exec(claim.message)?.[1];
    const ofClaim = nominated === undefined ? undefined : await this.#ofClaim(nominated);
    return ofClaim ?? troubleOf(own);
  }

  async #ofClaim(name: string): Promise<PlacementTrouble | undefined> {
    const claim = this.#options.world.nodeClaims.get(undefined, name);
    const launched = claim && conditionOf(claim.status.conditions, "Launched");
    if (launched?.status === "True") return undefined;
    const isShort = launched !== undefined && SHORT_OF_MACHINES.test(launched.reason);
    if (isShort) return { kind: "capacity", dimension: "machines" };
    return troubleOf(await this.#events({ fieldSelector: `involvedObject.kind=NodeClaim,involvedObject.name=${name}` }));
  }

  async #events(options: { readonly namespace?: string; readonly fieldSelector: string }): Promise<readonly KubeEvent[]> {
    const { items } = await this.#options.api.list(EVENTS, { ...options, limit: MAX_EVENTS });
    const events = items.flatMap((item) => {
      const parsed = parseEvent(item);
      return parsed.ok ? [parsed.value] : [];
    });
    return events.toSorted((a, b) => timeOf(a) - timeOf(b));
  }
}

const NONE: ReadonlyMap<string, PlacementTrouble> = new Map();
const SHORT_OF_MACHINES =
  /insufficient ?(instance ?)?capacity|UnfulfillableCapacity|ZONE_RESOURCE_POOL_EXHAUSTED|STOCKOUT|AllocationFailed|SkuNotAvailable|ZonalAllocationFailed/i;
const TELLING: ReadonlySet<string> = new Set([
  "FailedScaleUp",
  "FailedToScaleUpGroup",
  "NotTriggerScaleUp",
  "FailedScheduling",
  "InsufficientCapacityError",
  "InsufficientCapacity",
  "LaunchFailed",
]);

function timeOf({ lastTimestamp, firstTimestamp, metadata }: KubeEvent): Instant {
  return lastTimestamp ?? firstTimestamp ?? metadata.creationTimestamp;
}

/** A provisioner knows more than the scheduler, which only says what is not there now. The newest first. */
export function troubleOf(events: readonly KubeEvent[]): PlacementTrouble | undefined {
  const found = events.toReversed().flatMap(({ reason, message }) => (TELLING.has(reason) ? (understand(reason, message) ?? []) : []));
  return found.find(({ kind }) => kind !== "resource") ?? found[0];
}

/** Their authors write these for people: what is not recognised says nothing. Only a name is taken out of them. */
function understand(reason: string, message: string): PlacementTrouble | undefined {
  const quota = /quota '?([A-Z][A-Z0-9_]+)'?/i.exec(message)?.[1] ?? /exceeded quota: ([\w.-]+)/.exec(message)?.[1];
  if (/quota/i.test(message)) return { kind: "quota", dimension: quota !== undefined && quota !== "exceeded" ? quota : "quota" };
  if (SHORT_OF_MACHINES.test(reason) || SHORT_OF_MACHINES.test(message)) return { kind: "capacity", dimension: "machines" };
  const nodePool = /exceed(?:ed|s)? limits? for nodepool:? (?:\(NodePool=|")?([\w.-]+)/i.exec(message)?.[1];
  if (nodePool !== undefined) return { kind: "limit", dimension: `NodePool ${nodePool}` };
  if (/max node group size reached/.test(message)) return { kind: "limit", dimension: "node group size" };
  const resource = /Insufficient ([a-z0-9][\w./-]*)/.exec(message)?.[1];
  if (resource !== undefined) return { kind: "resource", dimension: resource };
  const isTooSmall = /no instance type (?:satisfied resources|has enough resources|which had enough resources)/.test(message);
  return isTooSmall ? { kind: "limit", dimension: "instance type" } : undefined;
}
