/**
 * Answers lifecycle hooks of terminating machines: keeps them waiting while instances of ours are on the machine, lets them go on when none is left.
 *
 * 1. Only machines of this cluster are answered for: of another's nobody here knows whether it is drained.
 * 2. Which replica answers does not matter: an action that is no longer there was answered by another.
 * 3. A hook that is not answered in time goes on by itself: this is a courtesy with a limit, and never extends what the group allows (48 h, or 100 times
 *    its time-out).
 */
import type { Clock, Instant, Timer } from "../../kernel/clock.ts";
import type { NoticeRecord } from "../../store/port.ts";
import { type LifecycleAction, lifecycleActionOf } from "./parse.ts";

/** The calls of EC2 Auto Scaling that are used; `sdk-groups.ts` makes them. */
export interface AutoScalingGroups {
  /** `over`: there is no such action any more. */
  complete(action: LifecycleAction): Promise<"done" | "over">;
  heartbeat(action: LifecycleAction): Promise<"done" | "over">;
  /** How long the hook waits without a heartbeat. */
  timeoutMs(group: string, hook: string): Promise<number>;
  close(): void;
}

/** `unknown`: not seen here, or not now. `occupied`: its node carries instances of ours. */
export type MachineState = "unknown" | "occupied" | "free" | "gone";

export interface LifecycleKeeperOptions {
  readonly groups: AutoScalingGroups;
  readonly open: () => readonly NoticeRecord[];
  readonly stateOf: (machineId: string) => MachineState;
  readonly clock: Clock;
  readonly log: (level: "debug" | "info" | "warn" | "error", message: string, fields: Readonly<Record<string, unknown>>) => void;
}

const LOOK_EVERY_MS = 2_000;
/** Where the hook cannot be read: the least that a group allows. */
const LEAST_TIMEOUT_MS = 30_000;
const MOST_BETWEEN_MS = 5 * 60_000;
/** As EC2 Auto Scaling: nothing waits longer. */
const LONGEST_MS = 48 * 3_600_000;
const AT_ONCE = 8;
const MAX_ACTIONS = 10_000;

interface Kept {
  readonly action: LifecycleAction;
  readonly since: Instant;
  nextBeatAt: Instant;
  /** After a failure. */
  notBefore: Instant;
  failures: number;
}

export class LifecycleKeeper {
  readonly #options: LifecycleKeeperOptions;
  readonly #kept = new Map<string, Kept>();
  readonly #over = new Set<string>();
  readonly #timeouts = new Map<string, number>();
  #timer: Timer | undefined;
  #isStopped = false;

  constructor(options: LifecycleKeeperOptions) {
    this.#options = options;
  }

  start(): void {
    if (this.#isStopped) return;
    this.#timer = this.#options.clock.after(LOOK_EVERY_MS, () => void this.#look().finally(() => this.start()));
  }

  stop(): void {
    this.#isStopped = true;
    this.#timer?.cancel();
    this.#options.groups.close();
  }

  async #look(): Promise<void> {
    const now = this.#options.clock.now();
    this.#takeNew(now);
    const due = [...this.#kept.values()].filter((kept) => now >= kept.notBefore);
    for (let at = 0; at < due.length && !this.#isStopped; at += AT_ONCE)
      await Promise.all(due.slice(at, at + AT_ONCE).map((kept) => this.#answer(kept)));
  }

  #takeNew(now: Instant): void {
    for (const notice of this.#options.open()) {
      const action = notice.body === "" ? undefined : lifecycleActionOf(notice.body);
      if (!action || this.#over.has(action.token) || this.#kept.has(action.token) || this.#kept.size >= MAX_ACTIONS) continue;
      this.#kept.set(action.token, { action, since: now, nextBeatAt: now, notBefore: now, failures: 0 });
    }
    for (const kept of this.#kept.values()) if (now - kept.since >= LONGEST_MS) this.#end(kept);
  }

  async #answer(kept: Kept): Promise<void> {
    const { action } = kept;
    const { groups, clock, log } = this.#options;
    const state = this.#options.stateOf(action.machineId);
    if (state === "unknown" || (state === "occupied" && clock.now() < kept.nextBeatAt)) return;
    try {
      if (state !== "occupied") {
        const answer = await groups.complete(action);
        this.#end(kept);
        log("info", "a lifecycle action was completed", { group: action.group, machine: action.machineId, answer });
        return;
      }
      const everyMs = Math.min(MOST_BETWEEN_MS, (await this.#timeoutOf(action)) / 3);
      kept.nextBeatAt = clock.now() + everyMs;
      if ((await groups.heartbeat(action)) === "over") this.#end(kept);
      kept.failures = 0;
    } catch (error) {
      kept.notBefore = clock.now() + Math.min(60_000, 1_000 * 2 ** Math.min(kept.failures++, 6));
      log("warn", "a lifecycle hook could not be answered", { group: action.group, hook: action.hook, machine: action.machineId, error });
    }
  }

  async #timeoutOf({ group, hook }: LifecycleAction): Promise<number> {
    const key = `${group}/${hook}`;
    const known = this.#timeouts.get(key);
    if (known !== undefined) return known;
    try {
      const timeout = await this.#options.groups.timeoutMs(group, hook);
      this.#timeouts.set(key, timeout);
      return timeout;
    } catch (error) {
      this.#options.log("debug", "a lifecycle hook could not be read", { group, hook, error });
      return LEAST_TIMEOUT_MS;
    }
  }

  #end({ action }: Kept): void {
    this.#kept.delete(action.token);
    this.#over.add(action.token);
    if (this.#over.size > MAX_ACTIONS) for (const oldest of this.#over) if (this.#over.delete(oldest)) break;
  }
}
