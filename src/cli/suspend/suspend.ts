/** `relevo suspend | resume | status POOL`: asked until nothing runs, or until it serves again, and measured from the command to there (T19, T20). */
import { formatDuration } from "../../kernel/units.ts";
import { type SuspensionPhase, type SuspensionStatus, suspensionStatusSchema } from "../../model/suspension.ts";
import { connect, poolKeyOf } from "../client.ts";
import type { CliContext, GlobalOptions } from "../context.ts";
import { EXIT, type ExitCode } from "../exit.ts";
import { renderDocument } from "../output.ts";

const ASK_EVERY_MS = 1_000;

interface WaitOptions extends GlobalOptions {
  readonly for: number;
}

export interface SuspendOptions extends WaitOptions {
  readonly drain?: boolean;
}

/** Exit code 4 when something still runs after `--for`. */
export async function suspend(context: CliContext, name: string, options: SuspendOptions): Promise<ExitCode> {
  const pool = poolKeyOf(name, options.namespace);
  const client = connect(context, options);
  const body = { by: context.user, drain: options.drain ?? false };
  return until(context, options, "off", () => client.post(`/v1/pools/${pool}/suspend`, body, suspensionStatusSchema));
}

/** Exit code 4 when it does not serve again after `--for`. */
export async function resume(context: CliContext, name: string, options: WaitOptions): Promise<ExitCode> {
  const pool = poolKeyOf(name, options.namespace);
  const client = connect(context, options);
  return until(context, options, "on", () => client.post(`/v1/pools/${pool}/resume`, { by: context.user }, suspensionStatusSchema));
}

export async function status(context: CliContext, name: string, options: GlobalOptions): Promise<ExitCode> {
  const pool = poolKeyOf(name, options.namespace);
  const seen = await connect(context, options).get(`/v1/pools/${pool}/suspension`, suspensionStatusSchema);
  context.out(renderDocument(seen, options.output) ?? textOf(seen));
  return EXIT.done;
}

/** The call may be repeated: it goes on with what is left. */
async function until(
  context: CliContext,
  options: WaitOptions,
  wanted: SuspensionPhase,
  ask: () => Promise<SuspensionStatus>,
): Promise<ExitCode> {
  const { clock, signal } = context;
  const startedAt = clock.monotonic();
  for (;;) {
    const seen = await ask();
    const tookMs = Math.round(clock.monotonic() - startedAt);
    const isThere = seen.phase === wanted;
    if (isThere || tookMs >= options.for || signal.aborted) {
      const end = `${isThere ? "after" : "not yet after"} ${formatDuration(tookMs)}\n`;
      context.out(renderDocument({ ...seen, tookMs }, options.output) ?? `${textOf(seen)}${end}`);
      return isThere ? EXIT.done : EXIT.held;
    }
    await clock.sleep(ASK_EVERY_MS, signal);
  }
}

function textOf({ pool, phase, serving, desired, instances, parts, residue, perMonth }: SuspensionStatus): string {
  const bill = Object.entries(perMonth).map(([currency, sum]) => `${sum} ${currency} per month`);
  return [
    `pool ${pool} is ${phase}: ${serving} of ${desired} serve, ${instances} are there`,
    ...parts.map(
      ({ object, running, restoresTo, trouble }) =>
        `  ${object}: ${trouble ?? (running === null ? "by its own field" : `${running} running`)}${restoresTo === null ? "" : `, goes back to ${restoresTo}`}`,
    ),
    ...residue.map(({ what, price, currency, per }) => `  goes on: ${what}, ${price} ${currency} per ${per}`),
    ...(bill.length === 0 ? [] : [`  together ${bill.join(", ")}`]),
    "",
  ].join("\n");
}
