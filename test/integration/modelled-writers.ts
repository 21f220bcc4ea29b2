/**
 * The holder's side of a writer lease, as an instance has it: it asks over HTTP with the token of its admission, and stops itself when it was not able to renew
 * for the TTL. Its clock is the virtual one.
 */
import type { Clock, Timer } from "../../src/kernel/clock.ts";
import type { LeaseAccess, LeaseGrant } from "../../src/model/protocol.ts";

const ASK_EVERY_MS = 500;

export interface LeaseAnswer {
  readonly status: number;
  readonly body: unknown;
}

/** What is sent back of the grant. */
export interface Granted {
  readonly epoch: string;
  readonly ordinal: number;
  readonly proof: string | undefined;
}

export type Renew = (access: LeaseAccess, bootId: string, granted: Granted | null) => Promise<LeaseAnswer>;

export interface Writer {
  readonly access: LeaseAccess;
  readonly bootId: string;
  epoch: string | null;
  granted: Granted | null;
  /** Monotonic ms: until then it may write. */
  until: number;
  /** Refused for good, with this code. */
  over: string | null;
  renewals: number;
  timer: Timer | undefined;
}

export class ModelledWriters {
  readonly #clock: Clock;
  readonly #renew: Renew;
  readonly #isRunning: (bootId: string) => boolean;
  /** By boot id. */
  readonly all = new Map<string, Writer>();
  /** Instances whose renewals do not get through. */
  readonly silent = new Set<string>();
  /** Instances that know nothing of leases. */
  readonly ignorant = new Set<string>();

  constructor(clock: Clock, renew: Renew, isRunning: (bootId: string) => boolean) {
    this.#clock = clock;
    this.#renew = renew;
    this.#isRunning = isRunning;
  }

  admitted(access: LeaseAccess, bootId: string): void {
    if (this.all.has(bootId) || this.ignorant.has(access.instance)) return;
    const writer: Writer = { access, bootId, epoch: null, granted: null, until: 0, over: null, renewals: 0, timer: undefined };
    this.all.set(bootId, writer);
    this.#later(writer, 0);
  }

  /** Who believes right now that it may write for this pool, with its epoch. */
  writing(pool = "default/orders"): readonly { readonly instance: string; readonly epoch: string }[] {
    return [...this.all.values()].flatMap(({ access, bootId, epoch, until, over }) =>
      access.pool === pool && epoch !== null && over === null && this.#clock.monotonic() < until && this.#isRunning(bootId)
        ? [{ instance: access.instance, epoch }]
        : [],
    );
  }

  /** It held the lease and must not write any more, or not now. */
  hasLapsed(bootId: string): boolean {
    const writer = this.all.get(bootId);
    return writer !== undefined && writer.epoch !== null && (writer.over !== null || this.#clock.monotonic() >= writer.until);
  }

  of(instance: string): Writer | undefined {
    return [...this.all.values()].findLast(({ access }) => access.instance === instance);
  }

  stop(): void {
    for (const { timer } of this.all.values()) timer?.cancel();
  }

  #later(writer: Writer, delayMs: number): void {
    writer.timer = this.#clock.after(delayMs, () => void this.#ask(writer));
  }

  async #ask(writer: Writer): Promise<void> {
    const { access, bootId } = writer;
    if (!this.#isRunning(bootId)) return;
    const sentAt = this.#clock.monotonic();
    const answer = this.silent.has(access.instance) ? undefined : await this.#renew(access, bootId, writer.granted).catch(() => undefined);
    if (answer?.status === 200) {
      const { ordinal, writerEpoch, ttlMs, proof } = answer.body as LeaseGrant;
      writer.epoch = writerEpoch;
      writer.granted = { epoch: writerEpoch, ordinal, proof };
      writer.until = sentAt + ttlMs;
      writer.renewals += 1;
    }
    const code = (answer?.body as { readonly error?: { readonly code: string } } | undefined)?.error?.code;
    if (code === "lease_fenced") writer.over = code;
    else this.#later(writer, answer?.status === 200 ? access.ttlMs / 3 : ASK_EVERY_MS);
  }
}
