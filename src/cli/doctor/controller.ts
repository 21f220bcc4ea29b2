/** The controller: whether it answers, what its clock says, whether it is ready; and the processes of `relevo up`. */
import { parseInstant } from "../../kernel/clock.ts";
import { bad, type Finding, ok } from "../../model/finding.ts";
import { healthView, readinessView } from "../../server/views.ts";
import type { ControllerClient } from "../client.ts";
import type { CliContext } from "../context.ts";
import { readRunFile, runFilePath } from "../run-file.ts";

/** More than this apart, times that people compare mislead. */
const CLOCK_OFFSET_MS = 1_000;

export function checkRunFile(context: CliContext): readonly Finding[] {
  const run = readRunFile(context.cwd);
  if (run === undefined)
    return [
      bad(
        "run file",
        "refused",
        `${runFilePath(context.cwd)} is not there`,
        "start npx relevo up here, or name a controller with --server",
      ),
    ];
  const dead = Object.entries(run.pids).filter(([, pid]) => pid !== null && !context.isAlive(pid));
  if (dead.length === 0) return [ok("run file", "names processes that live")];
  return [
    bad(
      "run file",
      "warning",
      `names processes that are gone: ${dead.map(([name, pid]) => `${name} ${pid}`).join(", ")}`,
      "start npx relevo up again",
    ),
  ];
}

export async function checkController(context: CliContext, client: ControllerClient): Promise<readonly Finding[]> {
  const before = context.clock.now();
  const { now, version } = await client.get("/healthz", healthView);
  const after = context.clock.now();
  const offset = Math.round((parseInstant(now) ?? before) - (before + after) / 2);
  const reach = ok("controller", `version ${version} answers at ${client.url}`);
  if (Math.abs(offset) <= CLOCK_OFFSET_MS + (after - before)) return [reach, ok("clock", `the controller's differs by ${offset} ms`)];
  return [
    reach,
    bad(
      "clock",
      "warning",
      `the controller's differs by ${offset} ms`,
      "synchronise the clocks: deadlines and ages that are shown mislead, no safety rests on them",
    ),
  ];
}

export async function checkReadiness(client: ControllerClient): Promise<readonly Finding[]> {
  const { checks } = await client.get("/readyz", readinessView);
  return checks.map(({ name, ok: isOk, message }) =>
    isOk ? ok(name, message) : bad(name, "refused", message, WHAT_TO_DO[name] ?? "see the controller's log"),
  );
}

const WHAT_TO_DO: Readonly<Record<string, string>> = {
  store: "free space or repair the disk: nothing is admitted, sealed or deleted until the store can be written",
  cluster: "make the Kubernetes API reachable: nothing is created or deleted there until it is",
};
