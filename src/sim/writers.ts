/**
 * What instances write under a writer lease, and where it lands: the holder and the landing are those of the SDK; what is modelled is when they write, the way
 * to the controller, and writers that do not stop themselves.
 */
import type { Clock } from "../kernel/clock.ts";
import type { Epoch } from "../kernel/epoch.ts";
import { RelevoError } from "../kernel/errors.ts";
import { integerBetween, type Random } from "../kernel/random.ts";
import type { LeaseAccess, LeaseGrant } from "../model/protocol.ts";
import { createLanding, type Landing, memoryEpochs, type Stamp } from "../sdk/landing.ts";
import { WriterLease } from "../sdk/lease.ts";
import type { LeaseAnswer } from "../sdk/lease-call.ts";
import { createSink, type Sink } from "../sdk/sink.ts";
import type { LeaseRenewal } from "../store/port.ts";
import type { EventLog } from "./event-log.ts";
import type { Observe } from "./events.ts";
import type { InstanceProcess } from "./instances.ts";

const WRITE_EVERY_MS = [300, 1_500] as const;
/** Between the look at the lease and the landing. */
const ON_ITS_WAY_MS = [0, 40] as const;
const NETWORK_MS = 2;
const GRACE_MS = 20_000;

export interface WritersOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: EventLog;
  readonly observe: Observe;
  /** Over the wire, to whichever controller is there. */
  readonly renew: (renewal: LeaseRenewal) => Promise<LeaseGrant>;
  /** What reaches the process from outside reaches it, and what it says gets out. */
  readonly isConnected: (process: InstanceProcess) => boolean;
}

export class Writers {
  readonly #options: WritersOptions;
  readonly #landing: Landing<undefined> = createLanding(memoryEpochs());
  readonly #leases = new Map<InstanceProcess, WriterLease>();

  constructor(options: WritersOptions) {
    this.#options = options;
  }

  leaseOf(process: InstanceProcess): WriterLease | undefined {
    return this.#leases.get(process);
  }

  /** The first admission begins it; a repeated one brings the access again. */
  admitted(process: InstanceProcess, access: LeaseAccess): void {
    const known = this.#leases.get(process);
    if (known !== undefined) return known.take(access);
    const { log } = this.#options;
    const clock = process.sim.clock(this.#options.clock);
    const lease: WriterLease = new WriterLease({
      bootId: process.bootId,
      clock,
      graceMs: GRACE_MS,
      call: ({ pool, instance }, bootId, held, limitMs) =>
        this.#call(process, clock, { pool, instance, bootId, ...(held ?? { epoch: null }) }, limitMs),
      onLease: async (stamp) => {
        await clock.sleep(NETWORK_MS);
        await this.#landing.open(stamp);
        log.add(`writer ${process.podName} opens ${stamp.workload} ${stamp.epoch}`);
        this.#tell(process, stamp);
      },
      onLost: () => {
        log.add(`writer ${process.podName} stops for good: ${lease.reason?.split(":", 1)[0]}`);
        process.state = "closed";
      },
      report: (sentence) => log.add(`writer ${process.podName} ${sentence.split(":", 1)[0]}`),
    });
    this.#leases.set(process, lease);
    lease.take(access);
    this.#write(process, clock, lease);
  }

  ended(process: InstanceProcess): void {
    this.#leases.get(process)?.stop();
    this.#leases.delete(process);
  }

  #write(process: InstanceProcess, clock: Clock, lease: WriterLease): void {
    const sink: Sink<null, void> = createSink<null>({ writer: lease, land: (_, stamp) => this.#land(process, clock, stamp) });
    const next = (): void => {
      clock.after(integerBetween(this.#options.random, ...WRITE_EVERY_MS), () => {
        const defied = process.defiesLease && process.lastStamp !== null;
        const written = defied ? this.#land(process, clock, process.lastStamp) : sink.write(null);
        written.catch((error: unknown) => {
          if (!(error instanceof RelevoError)) this.#options.observe({ type: "unhandled", error: String(error) });
        });
        next();
      });
    };
    next();
  }

  async #land(process: InstanceProcess, clock: Clock, stamp: Stamp | null): Promise<void> {
    if (stamp === null) return;
    process.lastStamp = stamp;
    await clock.sleep(integerBetween(this.#options.random, ...ON_ITS_WAY_MS));
    try {
      await this.#landing.land(stamp, () => this.#tell(process, stamp));
    } catch (error) {
      this.#options.observe({ type: "landing_refused", ...stamp, bootId: process.bootId });
      throw error;
    }
  }

  #tell({ bootId }: InstanceProcess, { workload, epoch }: Stamp): void {
    this.#options.observe({ type: "landed", workload, epoch, bootId });
  }

  async #call(process: InstanceProcess, clock: Clock, renewal: LeaseRenewal, limitMs: number): Promise<LeaseAnswer> {
    const limit = new AbortController();
    const late = clock.sleep(limitMs, limit.signal).then(
      (): LeaseAnswer => ({ kind: "failed", why: "no answer" }),
      (): LeaseAnswer => ({ kind: "failed", why: "over" }),
    );
    const answer = await Promise.race([this.#ask(process, clock, renewal), late]);
    limit.abort(new Error("over"));
    return answer;
  }

  async #ask(process: InstanceProcess, clock: Clock, renewal: LeaseRenewal): Promise<LeaseAnswer> {
    await clock.sleep(NETWORK_MS);
    if (!this.#options.isConnected(process)) return { kind: "failed", why: "not connected" };
    try {
      const { ordinal, writerEpoch, ttlMs, proof } = await this.#options.renew(renewal);
      await clock.sleep(NETWORK_MS);
      if (!this.#options.isConnected(process)) return await new Promise(() => {});
      return { kind: "renewed", ordinal, epoch: writerEpoch as Epoch, ttlMs, ...(proof === undefined ? {} : { proof }) };
    } catch (error) {
      const code = error instanceof RelevoError ? error.code : "unexpected";
      if (code === "lease_not_held" || code === "lease_fenced") return { kind: "refused", code };
      return { kind: "failed", why: code };
    }
  }
}
