/**
 * What the instances on this node are told when the machine goes and no controller hears of it.
 *
 * 1. A hint is a `drain` without a deadline, whose key begins with `hint-`: it ends nothing and takes nothing away. Only a process that is admitted is told,
 *    and only after it said itself that it is the instance that is meant.
 * 2. A hint is taken back (`resume`) when the machine stays after all. An instance that does not know the call goes on as it is: it serves.
 * 3. Each process is told once; one that could not be told is tried again at the next round.
 */
import type { Ids } from "../kernel/ids.ts";
import type { HttpCaller } from "./http.ts";
import type { LocalInstance } from "./instances.ts";

/** As src/model/protocol.ts says; written here because that loads zod, which this process is too small for. A test holds them together. */
export const PREFIX = "/relevo/v1";
export const HINT_PREFIX = "hint-";

export interface HintsOptions {
  readonly http: HttpCaller;
  readonly ids: Ids;
  readonly onTold: (told: { readonly instance: string; readonly call: "drain" | "resume" }) => void;
  readonly onTrouble: (sentence: string, error: unknown) => void;
}

interface Told {
  readonly base: string;
  readonly instance: string;
  readonly bootId: string;
}

interface Found {
  readonly bootId: string;
  readonly state: string;
}

const TIMEOUT_MS = 2_000;
/** A drain waits for the hook of the workload. */
const CALL_TIMEOUT_MS = 10_000;
const MAX_ANSWER_BYTES = 16 * 1024;
const AT_ONCE = 16;

export class Hints {
  readonly #options: HintsOptions;
  readonly #told = new Map<string, Told>();
  /** Pods that are being told: two things that are said of one machine are one hint. */
  readonly #telling = new Set<string>();

  constructor(options: HintsOptions) {
    this.#options = options;
  }

  /** How many processes are told to make ready for the end. */
  get standing(): number {
    return this.#told.size;
  }

  /** Tells those that were not told yet. */
  async give(instances: readonly LocalInstance[], signal: AbortSignal): Promise<void> {
    const waiting = [...instances];
    const work = async (): Promise<void> => {
      for (let next = waiting.shift(); next !== undefined && !signal.aborted; next = waiting.shift()) await this.#giveOne(next, signal);
    };
    await Promise.all(Array.from({ length: Math.min(AT_ONCE, instances.length) }, work));
  }

  /** Takes all back; what cannot be taken back now is kept for the next time. */
  async takeBack(signal: AbortSignal): Promise<void> {
    for (const [key, told] of this.#told) {
      try {
        const status = await this.#call(told, "resume", signal);
        // A process that is another one by now, or does not know the call, needs nothing.
        if (status >= 500) continue;
        this.#told.delete(key);
        if (status < 300) this.#options.onTold({ instance: told.instance, call: "resume" });
      } catch (error) {
        if (signal.aborted) return;
        this.#options.onTrouble(`the hint to ${told.instance} cannot be taken back`, error);
      }
    }
  }

  /** Of those that are not on the node any more nothing is kept. */
  forgetOthers(instances: readonly LocalInstance[]): void {
    const here = new Set(instances.map(({ podUid }) => podUid));
    for (const key of this.#told.keys()) if (!here.has(key)) this.#told.delete(key);
  }

  async #giveOne({ instance, podUid, host, ports }: LocalInstance, signal: AbortSignal): Promise<void> {
    if (this.#telling.has(podUid)) return;
    this.#telling.add(podUid);
    try {
      for (const port of ports) {
        const base = `http://${host.includes(":") ? `[${host}]` : host}:${port}${PREFIX}`;
        const found = await this.#identify(base, instance, signal);
        if (found === undefined) continue;
        if (found.state !== "admitted" || this.#told.get(podUid)?.bootId === found.bootId) return;
        const told = { base, instance, bootId: found.bootId };
        if ((await this.#call(told, "drain", signal)) >= 300) return;
        this.#told.set(podUid, told);
        this.#options.onTold({ instance, call: "drain" });
        return;
      }
    } catch (error) {
      if (!signal.aborted) this.#options.onTrouble(`${instance} cannot be told`, error);
    } finally {
      this.#telling.delete(podUid);
    }
  }

  /** Undefined: nobody there, or not the one that is meant. */
  async #identify(base: string, instance: string, signal: AbortSignal): Promise<Found | undefined> {
    const call = { url: `${base}/identity`, timeoutMs: TIMEOUT_MS, maxBytes: MAX_ANSWER_BYTES };
    const answer = await this.#options.http(call, signal).catch(() => undefined); // nobody at this port
    if (answer?.status !== 200) return undefined;
    try {
      const said = JSON.parse(answer.text) as Partial<Record<string, unknown>> | null;
      if (said?.["protocol"] !== "relevo/v1" || said["instance"] !== instance) return undefined;
      const { bootId, state } = said;
      return typeof bootId === "string" && typeof state === "string" ? { bootId, state } : undefined;
    } catch {
      return undefined; // another server
    }
  }

  async #call({ base, bootId }: Told, call: "drain" | "resume", signal: AbortSignal): Promise<number> {
    const { http, ids } = this.#options;
    const { status } = await http(
      {
        method: "POST",
        url: `${base}/${call}`,
        headers: { "content-type": "application/json", "idempotency-key": ids.next(HINT_PREFIX.slice(0, -1)) },
        body: JSON.stringify({ bootId, deadline: null }),
        timeoutMs: CALL_TIMEOUT_MS,
        maxBytes: MAX_ANSWER_BYTES,
      },
      signal,
    );
    return status;
  }
}
