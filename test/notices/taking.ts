/** Starts, kills and ends a taker of notices, and says what it must find. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { systemClock } from "../../src/kernel/system.ts";
import { rebalanceRecommendation, spotInterruptionWarning, stateChange } from "../../src/notices/eventbridge/compose.ts";

export interface TakerSetting {
  readonly store: string;
  readonly queue: string;
  readonly nodes: number;
  readonly visibilitySeconds: number;
}

export interface TakerCost {
  readonly cpuMs: number;
  readonly rssMiB: number;
  /** Notices whose machine may still be here. */
  readonly open: number;
}

export const machineName = (index: number): string => `i-${String(index).padStart(17, "0")}`;

/** As a storm sends them: warnings, the states that follow, recommendations; some about machines of others. By the event's number. */
export function messageOf(number: number, nodes: number, at = systemClock.now()): string {
  const machineId = machineName(number % (nodes + Math.ceil(nodes / 10)));
  const event = { id: `event-${number}`, at, machineId };
  switch (number % 4) {
    case 0:
    case 1:
      return spotInterruptionWarning(event);
    case 2:
      return stateChange(event, "shutting-down");
    default:
      return rebalanceRecommendation(event);
  }
}

export class Taker {
  readonly #child: ChildProcess;
  readonly #lines: AsyncIterator<string>;

  private constructor(child: ChildProcess, lines: AsyncIterator<string>) {
    this.#child = child;
    this.#lines = lines;
  }

  /** Settles when it receives. */
  static async start(setting: TakerSetting): Promise<Taker> {
    const child = spawn(process.execPath, [new URL("./taker.ts", import.meta.url).pathname, JSON.stringify(setting)], {
      stdio: ["ignore", "pipe", "inherit"],
      env: { ...process.env, AWS_ACCESS_KEY_ID: "stand-in", AWS_SECRET_ACCESS_KEY: "stand-in", AWS_REGION: "eu-west-1" },
    });
    if (child.stdout === null) throw new Error("the taker has no output");
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    const first = await lines.next();
    if (first.value !== "ready") throw new Error(`the taker did not start: ${String(first.value)}`);
    return new Taker(child, lines);
  }

  async kill(): Promise<void> {
    const ended = once(this.#child, "exit");
    this.#child.kill("SIGKILL");
    await ended;
  }

  async end(): Promise<TakerCost> {
    const ended = once(this.#child, "exit");
    this.#child.kill("SIGTERM");
    const { value } = await this.#lines.next();
    await ended;
    return JSON.parse(String(value)) as TakerCost;
  }
}
