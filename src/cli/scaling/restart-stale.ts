/** Replaces the instances that have a stale setting, as an operator's drain does, and waits for the last of them (T15). */
import { z } from "zod";
import type { EffectReport } from "../../model/effect.ts";
import { instanceView, poolView } from "../../server/views.ts";
import type { ControllerClient } from "../client.ts";
import type { CliContext } from "../context.ts";
import { HeldError } from "../exit.ts";

export interface RestartOf {
  readonly pool: string;
  readonly report: EffectReport;
  readonly withinMs?: number | undefined;
}

const WITHIN_MS = 900_000;
const LOOK_EVERY_MS = 1_000;
const WHY = "relevo check --restart: its configuration is stale";
const NO_MORE: readonly string[] = ["sealed", "retiring", "retired", "deleted"];

/** False: none is stale. Throws HeldError `restart_unfinished` when the replacements do not serve in time; what was begun goes on. */
export async function restartStale(
  context: CliContext,
  client: ControllerClient,
  { pool, report, withinMs = WITHIN_MS }: RestartOf,
): Promise<boolean> {
  const stale = [...new Set(report.rows.filter(({ state }) => state === "stale").map(({ instance }) => instance))];
  if (stale.length === 0) return false;
  for (const instance of stale)
    await client.post(
      `/v1/instances/${encodeURIComponent(instance)}/drain`,
      { by: context.user, why: WHY },
      z.object({ evidence: z.string() }),
    );
  context.err(`${stale.join(", ")} will make way: stale\n`);
  const until = context.clock.monotonic() + withinMs;
  for (;;) {
    const there = await stillThere(client, pool, stale);
    const { serving, desired } = await client.get(`/v1/pools/${pool}`, poolView);
    if (there.length === 0 && serving >= desired) return true;
    if (context.clock.monotonic() >= until)
      throw new HeldError("restart_unfinished", `Not all stale instances of pool ${pool} are replaced yet.`, {
        found: there.length === 0 ? `${serving} of ${desired} serve` : `still there: ${there.join(", ")}`,
        todo: `see npx relevo explain ${there[0] ?? pool}; it goes on by itself, and npx relevo check shows how it ended`,
      });
    await context.clock.sleep(LOOK_EVERY_MS);
  }
}

async function stillThere(client: ControllerClient, pool: string, wanted: readonly string[]): Promise<readonly string[]> {
  const instances = await client.list(`/v1/instances?pool=${encodeURIComponent(pool)}`, instanceView);
  const phases = new Map(instances.map(({ id, phase }) => [id, phase as string]));
  return wanted.filter((id) => !NO_MORE.includes(phases.get(id) ?? "deleted"));
}
