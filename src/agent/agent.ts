/**
 * The process on each node: it watches the metadata of its machine, and tells.
 *
 * 1. A notice goes to the controllers until one of them has kept it. When none has within two seconds, the instances on the node are told too; whatever
 *    becomes of that, the controllers are told as soon as one is back.
 * 2. It depends on no API server: who its machine is, its metadata says; which instances are here, it remembers.
 * 3. A part that is away, slow, hangs or answers with garbage makes no notice and takes none back: it is named in the heartbeat.
 */
import type { Clock } from "../kernel/clock.ts";
import type { Random } from "../kernel/random.ts";
import { agentReport, type MachineIdentity } from "../notices/agent-report.ts";
import { type Look, StandingNotices, type Telling } from "../notices/standing.ts";
import type { Cloud, Watch } from "./clouds/cloud.ts";
import type { Controllers } from "./controllers.ts";
import type { Hints } from "./hints.ts";
import type { LocalInstances } from "./instances.ts";
import { Outbox } from "./outbox.ts";
import { aboutMs, backOffMs, pause } from "./pause.ts";

export type AgentLog = (level: "debug" | "info" | "warn" | "error", message: string, fields: Readonly<Record<string, unknown>>) => void;

export interface AgentOptions {
  readonly node: string;
  readonly cloud: Cloud;
  readonly identity: MachineIdentity;
  readonly controllers: Pick<Controllers, "deliver" | "heartbeat">;
  readonly instances: Pick<LocalInstances, "known" | "refresh">;
  readonly hints: Pick<Hints, "give" | "takeBack" | "standing" | "forgetOthers">;
  readonly clock: Clock;
  readonly random: Random;
  readonly bootId: string | null;
  readonly log: AgentLog;
}

export const HEARTBEAT_MS = 30_000;
export const HINT_AFTER_MS = 2_000;
const HINT_AGAIN_MS = 5_000;
const REFRESH_MS = 30_000;
const DELIVERY = { firstMs: 250, mostMs: 5_000 };
/** Metadata that failed is looked at again within this, or three times its own pace. */
const LOOK_AGAIN_MOST_MS = 5_000;
const MAX_TROUBLE = 200;

export class NodeAgent {
  readonly #options: AgentOptions;
  readonly #outbox = new Outbox();
  readonly #stop = new AbortController();
  /** What cannot be read now, by its path or part. */
  readonly #troubles = new Map<string, string>();
  /** What the machine goes for, as metadata says now. */
  readonly #going = new Set<string>();
  #loops: Promise<unknown> = Promise.resolve();

  constructor(options: AgentOptions) {
    this.#options = options;
  }

  start(): void {
    const { cloud } = this.#options;
    this.#loops = Promise.all([
      ...cloud.watches.map((watch) => this.#watch(watch)),
      this.#deliver(),
      this.#every(HEARTBEAT_MS, () => this.#beat()),
      this.#every(REFRESH_MS, () => this.#refresh()),
    ]);
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#loops;
  }

  /** One sentence, or that all is well. */
  get trouble(): string | null {
    const [first] = this.#troubles.values();
    if (first !== undefined) return first.slice(0, MAX_TROUBLE);
    return this.#outbox.dropped === 0 ? null : `${this.#outbox.dropped} notices could not be kept until a controller heard them`;
  }

  async #watch(watch: Watch): Promise<void> {
    const { clock, random } = this.#options;
    const { signal } = this.#stop;
    const standing = new StandingNotices({ goneAfter: watch.goneAfter });
    for (let failures = 0; !signal.aborted; ) {
      const looks = await watch.look(signal).catch((error: unknown) => {
        if (signal.aborted) return [];
        throw error;
      });
      if (signal.aborted) return;
      for (const look of looks) this.#take(standing, look);
      failures = looks.every((look) => "failed" in look) ? failures + 1 : 0;
      const mostMs = Math.max(LOOK_AGAIN_MOST_MS, 3 * watch.everyMs);
      const restMs = failures === 0 ? aboutMs(random, watch.everyMs) : backOffMs(random, failures, Math.max(250, watch.everyMs), mostMs);
      if (!(await pause(clock, restMs, signal))) return;
    }
  }

  #take(standing: StandingNotices, look: Look): void {
    const { clock, log } = this.#options;
    if ("failed" in look) {
      if (!this.#troubles.has(look.kind)) log("warn", "metadata cannot be read", { path: look.kind, why: look.failed });
      this.#troubles.set(look.kind, look.failed);
      return;
    }
    if (this.#troubles.delete(look.kind)) log("info", "metadata can be read again", { path: look.kind });
    const tellings = standing.step(look, clock.now(), clock.monotonic());
    if (standing.isFull) this.#troubles.set(look.kind, `${look.kind} says more than is kept`);
    if (tellings.length === 0) return;
    for (const { state, kind, part, document, isGoing } of tellings)
      log("info", "metadata says", { state, path: kind, part, document, isGoing });
    this.#outbox.add(tellings);
    for (const telling of tellings) this.#heed(telling);
  }

  #heed(telling: Telling): void {
    const key = `${telling.kind} ${telling.part ?? ""}`;
    if (telling.state === "gone" || !telling.isGoing) {
      if (this.#going.delete(key) && this.#going.size === 0) void this.#takeBackHints();
      return;
    }
    this.#going.add(key);
    void this.#hintUnlessHeard(telling);
  }

  /** Until a controller has kept it, or the machine stays after all. */
  async #hintUnlessHeard(telling: Telling): Promise<void> {
    const { clock, hints, instances, log } = this.#options;
    const { signal } = this.#stop;
    if (!(await pause(clock, HINT_AFTER_MS, signal))) return;
    while (!signal.aborted && this.#outbox.has(telling) && this.#going.size > 0) {
      log("warn", "no controller hears that the machine goes: the instances here are told", { instances: instances.known.length });
      await hints.give(instances.known, signal);
      // The machine may have turned out to stay while they were told.
      if (this.#going.size === 0) return this.#takeBackHints();
      if (!(await pause(clock, HINT_AGAIN_MS, signal))) return;
      await instances.refresh(signal).catch(() => undefined); // it was stopped
    }
  }

  async #takeBackHints(): Promise<void> {
    const { clock, hints } = this.#options;
    const { signal } = this.#stop;
    while (!signal.aborted && this.#going.size === 0 && hints.standing > 0) {
      await hints.takeBack(signal);
      if (hints.standing > 0 && !(await pause(clock, HINT_AGAIN_MS, signal))) return;
    }
  }

  async #deliver(): Promise<void> {
    const { clock, random, log } = this.#options;
    const { signal } = this.#stop;
    for (let failures = 0; ; ) {
      const telling = await this.#outbox.next(signal);
      if (telling === undefined) return;
      try {
        await this.#deliverOne(telling);
        if (failures > 0) log("info", "a controller hears again", { failures });
        this.#troubles.delete("controllers");
        failures = 0;
      } catch (error) {
        if (signal.aborted) return;
        if (failures === 0) log("warn", "no controller keeps the notice now", { error });
        this.#troubles.set("controllers", "notices wait for a controller");
        if (!(await pause(clock, backOffMs(random, failures++, DELIVERY.firstMs, DELIVERY.mostMs), signal))) return;
      }
    }
  }

  async #deliverOne(telling: Telling): Promise<void> {
    const { controllers, cloud, identity, clock, bootId, log } = this.#options;
    const report = agentReport(identity, telling, { ageMs: clock.monotonic() - telling.seen, bootId });
    const delivery = await controllers.deliver(cloud.source, report, this.#stop.signal);
    this.#outbox.done(telling);
    const { kind, part, state } = telling;
    if (delivery === "kept") log("info", "a controller has kept the notice", { path: kind, part, state, ageMs: report.ageMs });
    else log("error", "the controller refuses the notice for good", { path: kind, part, state, why: delivery.refused });
  }

  async #beat(): Promise<void> {
    const { controllers, cloud, node, log } = this.#options;
    try {
      await controllers.heartbeat(cloud.source, { from: node, everyMs: HEARTBEAT_MS, trouble: this.trouble }, this.#stop.signal);
    } catch (error) {
      if (!this.#stop.signal.aborted) log("debug", "no controller takes the heartbeat", { error });
    }
  }

  async #refresh(): Promise<void> {
    const { instances, hints } = this.#options;
    await instances.refresh(this.#stop.signal).catch(() => undefined); // it was stopped
    hints.forgetOthers(instances.known);
  }

  async #every(ms: number, work: () => Promise<void>): Promise<void> {
    const { clock, random } = this.#options;
    const { signal } = this.#stop;
    do await work();
    while (await pause(clock, aboutMs(random, ms), signal));
  }
}
