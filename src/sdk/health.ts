/** The instance's own health: every check of the application, each bounded in time. */
import type { Clock } from "../kernel/clock.ts";

/** True or nothing when it is well, false or a sentence when it is not. Throwing counts as not well. */
export type HealthCheck = () => boolean | string | void | Promise<boolean | string | void>;

/** A check that takes longer counts as failed: a health answer that never comes helps nobody. */
export const HEALTH_CHECK_LIMIT_MS = 1_000;

export class HealthChecks {
  readonly #checks: ReadonlyMap<string, HealthCheck>;
  readonly #clock: Clock;
  /** A check that hangs is not started a second time. */
  readonly #running = new Map<string, Promise<string | null>>();

  constructor(checks: Readonly<Record<string, HealthCheck>>, clock: Clock) {
    this.#checks = new Map(Object.entries(checks));
    this.#clock = clock;
  }

  /** Null when all pass, else why the first one does not. */
  async findReason(): Promise<string | null> {
    if (this.#checks.size === 0) return null;
    const reasons = await Promise.all([...this.#checks].map(([name, check]) => this.#bounded(name, check)));
    return reasons.find((reason) => reason !== null) ?? null;
  }

  #bounded(name: string, check: HealthCheck): Promise<string | null> {
    let running = this.#running.get(name);
    if (running === undefined) {
      running = runCheck(name, check).finally(() => this.#running.delete(name));
      this.#running.set(name, running);
    }
    const started = running;
    return new Promise((resolve) => {
      const timer = this.#clock.after(HEALTH_CHECK_LIMIT_MS, () => resolve(`${name}: no answer within ${HEALTH_CHECK_LIMIT_MS} ms`));
      void started.then((reason) => {
        timer.cancel();
        resolve(reason);
      });
    });
  }
}

async function runCheck(name: string, check: HealthCheck): Promise<string | null> {
  try {
    const answer = await check();
    if (answer === undefined || answer === true) return null;
    return answer === false ? `${name}: failed` : `${name}: ${answer}`;
  } catch (error) {
    return `${name}: ${error instanceof Error ? error.message : String(error)}`;
  }
}
