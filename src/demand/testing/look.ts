/** One look as the monitor takes it: what the source answered or threw, judged. */
import { systemClock } from "../../kernel/system.ts";
import type { DemandReading } from "../../model/demand.ts";
import type { DemandSource } from "../port.ts";
import { type Expected, judgeReading, troubleOfError } from "../validity.ts";

export function within(ms: number): AbortSignal {
  const abort = new AbortController();
  systemClock.after(ms, () => abort.abort());
  return abort.signal;
}

/** The reading, or its trouble as `CODE: detail`. */
export async function look(
  source: DemandSource,
  expected: Partial<Expected> = {},
  signal: AbortSignal = within(10_000),
): Promise<DemandReading | string> {
  try {
    const judgement = judgeReading(await source.read(signal), {
      flow: null,
      maxAgeMs: 60_000,
      former: null,
      at: systemClock.monotonic(),
      ...expected,
    });
    return "valid" in judgement ? judgement.valid.reading : `${judgement.trouble.code}: ${judgement.trouble.detail}`;
  } catch (error) {
    const { code, detail } = troubleOfError(error);
    return `${code}: ${detail}`;
  }
}

/** The code alone; `valid` for a reading. */
export async function troubleOf(...args: Parameters<typeof look>): Promise<string> {
  const seen = await look(...args);
  return typeof seen === "string" ? seen.replace(/:.*$/s, "") : "valid";
}
