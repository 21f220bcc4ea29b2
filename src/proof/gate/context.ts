/** What the parts of a gate's run share. */
import type { Clock } from "../../kernel/clock.ts";
import { describeError, isRetryable } from "../../kernel/errors.ts";
import type { GateSpec } from "../../model/gate.ts";
import { within } from "./bounded.ts";
import type { ExchangeListing, GateEngine, GateNode, Killer, ReadyWorkers } from "./ports.ts";

export interface GatePorts {
  readonly engine: GateEngine;
  readonly killer: Killer;
  readonly listing: ExchangeListing;
  readonly ready: ReadyWorkers;
  readonly clock: Clock;
  /** Told what happens, a line each. */
  readonly tell: (line: string) => void;
  /** Aborts when the user has had enough: what runs is cancelled. */
  readonly signal: AbortSignal;
}

export interface GateContext extends GatePorts {
  readonly spec: GateSpec;
  readonly declaredWorkers: number;
  /** Milliseconds since the gate began. */
  readonly at: () => number;
}

/** Of one look; a system table is read from all nodes and fails or waits while one of them dies. */
const LOOK_MS = 30_000;
/** Between two looks. */
export const PAUSE_MS = 250;

/** Workers that have announced themselves and are active; a coordinator is none, even where it runs tasks. */
export async function activeWorkers({ engine, clock }: Pick<GateContext, "engine" | "clock">): Promise<readonly GateNode[]> {
  const nodes = await within(clock, LOOK_MS, "A read of system.runtime.nodes", engine.nodes());
  return nodes.filter(({ isCoordinator, state }) => !isCoordinator && state === "active");
}

/** A look that may fail: undefined and the reason then, never an end of the run. */
export async function look<T>(
  clock: Clock,
  what: string,
  call: () => Promise<T>,
): Promise<{ readonly seen: T } | { readonly failed: string }> {
  try {
    return { seen: await within(clock, LOOK_MS, what, call()) };
  } catch (error) {
    return { failed: describeError(error) };
  }
}

/** The same again while it may succeed, a few times. */
export async function patiently<T>(
  { clock, signal }: Pick<GateContext, "clock" | "signal">,
  what: string,
  attempts: number,
  call: () => Promise<T>,
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await within(clock, LOOK_MS, what, call());
    } catch (error) {
      if (attempt >= attempts || !isRetryable(error)) throw error;
      await clock.sleep(PAUSE_MS * 2 ** attempt, signal);
    }
  }
}
