/** Which cloud this machine is of, and which machine: asked until an answer comes, because metadata may come up after the agent. */
import type { Clock } from "../kernel/clock.ts";
import type { Random } from "../kernel/random.ts";
import type { MachineIdentity } from "../notices/agent-report.ts";
import type { AgentLog } from "./agent.ts";
import { type Cloud, sentenceOf } from "./clouds/cloud.ts";
import { backOffMs, pause } from "./pause.ts";

export interface Detected {
  readonly cloud: Cloud;
  readonly identity: MachineIdentity;
}

export interface DetectOptions {
  /** One where it is configured. */
  readonly clouds: readonly Cloud[];
  readonly clock: Clock;
  readonly random: Random;
  readonly log: AgentLog;
}

const RETRY = { firstMs: 1_000, mostMs: 30_000 };

/** Undefined when it was stopped before. */
export async function detectCloud({ clouds, clock, random, log }: DetectOptions, signal: AbortSignal): Promise<Detected | undefined> {
  for (let failures = 0; !signal.aborted; failures++) {
    const answers = await Promise.allSettled(clouds.map(async (cloud) => ({ cloud, identity: await cloud.identify(signal) })));
    for (const answer of answers) if (answer.status === "fulfilled") return answer.value;
    if (signal.aborted) return undefined;
    if (failures === 0) {
      const why = answers.map((answer, at) => `${clouds[at]?.name}: ${answer.status === "rejected" ? sentenceOf(answer.reason) : ""}`);
      log("warn", "no metadata says which machine this is; it is asked again", { why });
    }
    if (!(await pause(clock, backOffMs(random, failures, RETRY.firstMs, RETRY.mostMs), signal))) return undefined;
  }
  return undefined;
}
