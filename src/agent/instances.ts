/**
 * The instances on this node: asked of the API server while it answers, remembered while it does not, also over a restart of the agent.
 *
 * 1. A list that could not be read changes nothing: the last one counts.
 * 2. What was remembered is never trusted by itself: whoever calls an instance asks it first who it is (`hints.ts`).
 */
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { RelevoError } from "../kernel/errors.ts";
import { LABELS } from "../model/marks.ts";
import type { HttpCaller } from "./http.ts";

export interface LocalInstance {
  readonly instance: string;
  readonly podUid: string;
  readonly host: string;
  /** Where it may listen, the likeliest first. */
  readonly ports: readonly number[];
}

export interface PodSource {
  readonly baseUrl: string;
  /** Read at each call: a service account's token is renewed in its file. */
  readonly token: () => string | undefined;
  readonly ca: string | undefined;
}

export interface LocalInstancesOptions {
  readonly http: HttpCaller;
  readonly node: string;
  /** Absent: only what was remembered. */
  readonly pods: PodSource | undefined;
  /** Absent: a restart forgets. */
  readonly file: string | undefined;
  readonly onTrouble: (sentence: string, error: unknown) => void;
}

const TIMEOUT_MS = 5_000;
const MAX_LIST_BYTES = 4 * 1024 * 1024;
const MAX_FILE_BYTES = 512 * 1024;
export const MAX_INSTANCES = 256;
const MAX_PORTS = 4;

export class LocalInstances {
  readonly #options: LocalInstancesOptions;
  #known: readonly LocalInstance[];
  #isListedEmpty = false;

  constructor(options: LocalInstancesOptions) {
    this.#options = options;
    this.#known = this.#remembered();
  }

  get known(): readonly LocalInstance[] {
    return this.#known;
  }

  /** Nothing of ours runs or is about to run here, whether it can be told anything or not, and the last look at the API server said so. */
  get isKnownEmpty(): boolean {
    return this.#isListedEmpty;
  }

  /** Never rejects but when it was stopped. */
  async refresh(signal: AbortSignal): Promise<void> {
    const { pods, http, node, onTrouble } = this.#options;
    if (pods === undefined) return;
    const query = new URLSearchParams({ fieldSelector: `spec.nodeName=${node}`, labelSelector: LABELS.instance, resourceVersion: "0" });
    try {
      const bearer = pods.token();
      const { status, text } = await http(
        {
          url: `${pods.baseUrl}/api/v1/pods?${query}`,
          headers: { accept: "application/json", ...(bearer === undefined ? {} : { authorization: `Bearer ${bearer}` }) },
          timeoutMs: TIMEOUT_MS,
          maxBytes: MAX_LIST_BYTES,
          ca: pods.ca,
        },
        signal,
      );
      if (status !== 200) throw new RelevoError("pods_not_listed", "The API server does not list the pods.", { found: `status ${status}` });
      const all = podsIn(text);
      this.#learn(all.flatMap(instanceOf).toSorted(byPod).slice(0, MAX_INSTANCES));
      this.#isListedEmpty = all.every(isOver);
    } catch (error) {
      signal.throwIfAborted();
      this.#isListedEmpty = false;
      onTrouble("the instances on this node cannot be listed; those of the last look count", error);
    }
  }

  #learn(found: readonly LocalInstance[]): void {
    const { file, onTrouble } = this.#options;
    const isNews = JSON.stringify(found) !== JSON.stringify(this.#known);
    this.#known = found;
    if (file === undefined || !isNews) return;
    try {
      writeFileSync(`${file}.new`, JSON.stringify(found), { mode: 0o600 });
      renameSync(`${file}.new`, file);
    } catch (error) {
      onTrouble("the instances on this node cannot be written down", error);
    }
  }

  #remembered(): readonly LocalInstance[] {
    const { file, onTrouble } = this.#options;
    if (file === undefined) return [];
    try {
      const text = readFileSync(file, "utf8");
      const value: unknown = text.length > MAX_FILE_BYTES ? undefined : JSON.parse(text);
      return Array.isArray(value) ? value.filter(isLocalInstance).slice(0, MAX_INSTANCES) : [];
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") onTrouble("what was written down of the instances cannot be read", error);
      return [];
    }
  }
}

function isLocalInstance(value: unknown): value is LocalInstance {
  if (typeof value !== "object" || value === null) return false;
  const { instance, podUid, host, ports } = value as Record<string, unknown>;
  return (
    typeof instance === "string" && typeof podUid === "string" && typeof host === "string" && Array.isArray(ports) && ports.every(isPort)
  );
}

/** The fields of a pod that count here; everything about them is checked. */
interface Pod {
  readonly metadata?: { readonly uid?: unknown; readonly labels?: Readonly<Record<string, unknown>>; readonly deletionTimestamp?: unknown };
  readonly spec?: { readonly containers?: readonly Container[] };
  readonly status?: { readonly podIP?: unknown; readonly phase?: unknown };
}
interface Container {
  readonly ports?: readonly { readonly containerPort?: unknown }[];
  readonly env?: readonly { readonly name?: unknown; readonly value?: unknown }[];
}

/** Throws for what is no list of pods. */
function podsIn(text: string): readonly (Pod | null)[] {
  const { items } = JSON.parse(text) as { readonly items?: unknown };
  if (!Array.isArray(items)) throw new RelevoError("pods_not_listed", "The API server answered with no list.");
  return items as readonly (Pod | null)[];
}

/** What can be told something; a pod that is odd is left out. */
function instanceOf(pod: Pod | null): readonly LocalInstance[] {
  const instance = pod?.metadata?.labels?.[LABELS.instance];
  const podUid = pod?.metadata?.uid;
  const host = pod?.status?.podIP;
  if (pod?.status?.phase !== "Running" || typeof instance !== "string" || typeof podUid !== "string" || typeof host !== "string") return [];
  const ports = portsOf(pod.spec?.containers);
  return host === "" || ports.length === 0 ? [] : [{ instance, podUid, host, ports }];
}

function byPod(a: LocalInstance, b: LocalInstance): number {
  return a.podUid < b.podUid ? -1 : 1;
}

function isOver(pod: Pod | null): boolean {
  const phase = pod?.status?.phase;
  return phase === "Succeeded" || phase === "Failed";
}

/** What `PORT` says, as the protocol's own default does, then the ports that are declared. */
function portsOf(containers: unknown): readonly number[] {
  if (!Array.isArray(containers)) return [];
  const all = containers as readonly (Container | null)[];
  const said = all.flatMap((each) => listOf(each?.env).flatMap((entry) => (entry?.name === "PORT" ? [Number(entry.value)] : [])));
  const declared = all.flatMap((each) => listOf(each?.ports).map((entry) => entry?.containerPort));
  return [...new Set([...said, ...declared].filter(isPort))].slice(0, MAX_PORTS);
}

function listOf<T>(value: readonly T[] | undefined): readonly (T | null)[] {
  return Array.isArray(value) ? (value as readonly (T | null)[]) : [];
}

function isPort(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value > 0 && value <= 65_535;
}
