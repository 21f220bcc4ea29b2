/** `relevo release, seal`: what only an operator may decide, with who and why; the controller keeps both. */
import { z } from "zod";
import { formatDuration, parseDuration } from "../../kernel/units.ts";
import { forcedSealView } from "../../server/views.ts";
import { connect } from "../client.ts";
import type { CliContext, GlobalOptions } from "../context.ts";
import { EXIT, type ExitCode, UsageError } from "../exit.ts";
import { renderDocument } from "../output.ts";

export interface OverruleOptions extends GlobalOptions {
  readonly reason: string;
}

export async function release(context: CliContext, operation: string, options: OverruleOptions): Promise<ExitCode> {
  const body = { operation, by: context.user, why: options.reason };
  const { steps } = await connect(context, options).post("/v1/release", body, z.object({ steps: z.array(z.string()) }));
  context.out(
    renderDocument({ operation, steps }, options.output) ??
      `released: ${steps.join(", ")}; what is to be done is decided anew from what is seen now\n`,
  );
  return EXIT.done;
}

export interface SealOptions extends OverruleOptions {
  readonly force?: boolean;
  readonly until: string;
}

const MAX_EXCEPTION_MS = 90 * 24 * 3_600_000;

export async function seal(context: CliContext, instance: string, options: SealOptions): Promise<ExitCode> {
  if (options.force !== true)
    throw new UsageError("seal_needs_force", "Instances are sealed by themselves once they have nothing more to do.", {
      found: "no --force",
      allowed: "--force, which gives up what the instance still has",
      todo: `npx relevo explain ${instance} says what it waits for`,
    });
  const duration = parseDuration(options.until);
  if (duration === undefined || duration === 0 || duration > MAX_EXCEPTION_MS)
    throw new UsageError("duration_invalid", "--until is not valid.", {
      found: options.until,
      allowed: `how long somebody looks after what was lost: a duration such as 24h, at most ${formatDuration(MAX_EXCEPTION_MS)}`,
    });
  const body = { by: context.user, why: options.reason, for: options.until };
  const path = `/v1/instances/${encodeURIComponent(instance)}/force-seal`;
  const sealed = await connect(context, options).post(path, body, forcedSealView);
  const lost = sealed.obligations === null ? "an unknown number of" : String(sealed.obligations);
  context.out(
    renderDocument(sealed, options.output) ??
      `${instance} is sealed with ${lost} requests and sessions given up: counted as forced, outside the zero-loss claim; doctor names it until it is gone and ${sealed.until} is over\n`,
  );
  return EXIT.done;
}
