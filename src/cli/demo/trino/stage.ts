/** What the acts of the Trino demo have in common: the pool, its clusters and their nodes, and how they are looked at. */
import type { Clock } from "../../../kernel/clock.ts";
import { RelevoError } from "../../../kernel/errors.ts";
import type { TrinoHttp } from "../../../drivers/trino/http.ts";
import { type Engine, engineAt } from "../../../drivers/trino/engine.ts";
import { PODS } from "../../../kube/resources.ts";
import { type KubePod, parsePod } from "../../../kube/types.ts";
import type { Narrator } from "../narrator.ts";
import type { InstanceView } from "../world.ts";
import type { ActName, TrinoClients } from "./clients.ts";
import type { TrinoSite } from "./site.ts";

export const POOL = "default/trino";
export const PORT = 8080;
/** Two JVMs of a cluster and its coordinator want about 100 s of CPU before they serve. */
export const CLUSTER_WITHIN_MS = 8 * 60_000;
export const WORKER_WITHIN_MS = 4 * 60_000;
const POLL_MS = 250;
const EVIDENCE_MAX = 200;

/** One fact that an act's figures stand on. */
export interface Fact {
  readonly act: ActName;
  readonly says: string;
}

export interface Stage {
  readonly site: TrinoSite;
  readonly clients: TrinoClients;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly narrator: Narrator;
  readonly http: TrinoHttp;
  readonly deadlineMs: number;
  readonly facts: Fact[];
}

/** Tells it, and keeps it as evidence. */
export function note({ facts, narrator }: Stage, act: ActName, says: string): void {
  narrator.tell(says);
  if (facts.length < EVIDENCE_MAX) facts.push({ act, says });
}

export async function servingCluster({ site }: Stage): Promise<InstanceView> {
  const [cluster] = (await site.world.instances(POOL)).filter(({ phase }) => phase === "serving");
  if (cluster === undefined) throw new RelevoError("demo_no_cluster", "No cluster serves.", { todo: "look into the logs" });
  return cluster;
}

export async function clusterNamed({ site }: Stage, id: string): Promise<InstanceView | undefined> {
  return (await site.world.instances(POOL)).find((each) => each.id === id);
}

export function engineOf({ clock, http }: Stage, { address }: Pick<InstanceView, "address">): Engine {
  return engineAt({ base: `http://${hostOf(address)}:${PORT}`, user: "relevo", clock, http });
}

function hostOf(address: string | null): string {
  const host = address?.replace(/^http:\/\//, "").split(":", 1)[0];
  if (host === undefined || host === "") throw new RelevoError("demo_no_address", "The cluster has no address.", { class: "retryable" });
  return host;
}

export async function podsOf({ site }: Stage, selector: string): Promise<readonly KubePod[]> {
  const { items } = await site.kube.list(PODS, { namespace: "default", labelSelector: selector });
  return items.map((item) => {
    const parsed = parsePod(item);
    if (!parsed.ok) throw new Error(parsed.problem);
    return parsed.value;
  });
}

export function workersOf(stage: Stage, instance: string): Promise<readonly KubePod[]> {
  return podsOf(stage, `app=trino,component=worker,instance=${instance}`);
}

/** Polls until it holds; false when it did not within the time: what did not happen is a result of the demo, no error. What throws did not happen yet. */
export async function happens({ clock, signal }: Stage, limitMs: number, holds: () => Promise<boolean> | boolean): Promise<boolean> {
  for (const end = clock.monotonic() + limitMs; clock.monotonic() < end; await clock.sleep(POLL_MS, signal))
    if (await isSo(holds)) return true;
  return false;
}

async function isSo(holds: () => Promise<boolean> | boolean): Promise<boolean> {
  try {
    return await holds();
  } catch {
    return false; // a node is just going, or coming
  }
}

/** Undefined when it does not settle within the time. */
export async function within<T>({ clock, signal }: Stage, limitMs: number, what: Promise<T>): Promise<T | undefined> {
  const over = new AbortController();
  const late = clock.sleep(limitMs, AbortSignal.any([signal, over.signal])).then(
    () => undefined,
    () => {
      signal.throwIfAborted();
      return undefined;
    },
  );
  try {
    return await Promise.race([what, late]);
  } finally {
    over.abort();
  }
}

export function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}
