/** The commands about sizes that follow a demand: their options and their help. */
import { type Command, InvalidArgumentError } from "commander";
import type { CliContext } from "./context.ts";
import type { ExitCode } from "./exit.ts";
import { collect, count, durationOption } from "./option-values.ts";
import { optionsOf, optionsOfNested } from "./options-of.ts";

type Ended = (code: ExitCode) => void;

export function addScaling(program: Command, context: CliContext, ended: Ended): void {
  program
    .command("check")
    .description(
      "what stands in the way of a pool, and how far each setting of its Trino clusters has come; changes nothing unless it is asked to",
    )
    .argument("[pool]")
    .option("-f, --filename <file>", "of a document that is not applied yet, or - for standard input")
    .option("--restart", "instances with a stale setting are replaced as in any drain, and checked again")
    .addOption(durationOption("--for <duration>", "so long that may take", 900_000))
    .action(async (pool: string | undefined, _options, command: Command) =>
      ended(await (await import("./scaling/check.ts")).check(context, pool, optionsOf(command))),
    );

  const waits = durationOption("--for <duration>", "so long that is waited for", 1_800_000);
  const byName = (name: "suspend" | "resume" | "status", what: string) => program.command(name).description(what).argument("<pool>");
  byName("suspend", "runs nothing of a pool any more, by its owner's own field; says what goes on billing")
    .option("--drain", "what runs is waited for, and nothing new is taken")
    .addOption(waits)
    .action(async (pool: string, _options, command: Command) =>
      ended(await (await import("./suspend/suspend.ts")).suspend(context, pool, optionsOf(command))),
    );
  byName("resume", "what a suspended pool had, until it serves again")
    .addOption(waits)
    .action(async (pool: string, _options, command: Command) =>
      ended(await (await import("./suspend/suspend.ts")).resume(context, pool, optionsOf(command))),
    );
  byName("status", "whether a pool is suspended, what of it runs, and what goes on billing").action(
    async (pool: string, _options, command: Command) =>
      ended(await (await import("./suspend/suspend.ts")).status(context, pool, optionsOf(command))),
  );

  program
    .command("promote")
    .description("records that something goes ahead of its gate, with what is still to be done: an exception, never a pass")
    .argument("[pool]")
    .option("--what <what>", "what is promoted (default: the pool)")
    .option("--before <gate>", "the gate that it has not passed")
    .option("--why <why>", "is noted and shown")
    .option("--follow-up <what>", "what is still to be done; may be repeated", collect)
    .option("--done <exception>", "its follow-ups are done")
    .option("--item <n>", "only this one of them, from 1", count)
    .action(async (pool: string | undefined, _options, command: Command) =>
      ended(await (await import("./scaling/promote.ts")).promote(context, pool, optionsOf(command))),
    );

  fed(program.command("loadtest"))
    .description("puts tagged jobs through the pool's own queue and writes what it can do as its proven capacity")
    .argument("<pool>")
    .option("--jobs <n>", "of each phase", jobs, 200)
    .option("--stuck-share <share>", "of the jobs of the second phase hang on purpose; 0: there is no second phase", share, 0.1)
    .option("--stuck-payload <json>", "what such a job holds, or @ and a file with it")
    .addOption(durationOption("--for <duration>", "each phase may take so long", 600_000))
    .option("--report <file>", "where the full report goes, as JSON")
    .action(async (pool: string, _options, command: Command) =>
      ended(await (await import("./scaling/loadtest.ts")).loadtest(context, pool, optionsOf(command))),
    );
}

export function addVerifyScaling(verify: Command, context: CliContext, ended: Ended): void {
  fed(verify.command("scaling"))
    .description("that more instances serve when work comes, and that the work is done; what was put in is taken back whatever happens")
    .argument("<pool>")
    .option("--jobs <n>", "how many (default: enough for two instances more)", jobs)
    .addOption(durationOption("--within <duration>", "the window in which it must happen", 120_000))
    .addOption(durationOption("--control <duration>", "so long before it nothing is put in, and nothing may move", 10_000))
    .option("--report <file>", "where the report goes too, as JSON: the evidence of an acceptance")
    .action(async (pool: string, _options, command: Command) =>
      ended(await (await import("./scaling/verify-scaling.ts")).verifyScaling(context, pool, optionsOfNested(command))),
    );
}

function fed(command: Command): Command {
  return command
    .requiredOption("--connections <file>", "where the queue is: the file that the controller has")
    .option("--payload <json>", "what a job holds, or @ and a file with it; the workers must understand it", "{}");
}

const MOST_JOBS = 100_000;

function jobs(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 1 || value > MOST_JOBS)
    throw new InvalidArgumentError(`Allowed: a whole number from 1 to ${MOST_JOBS}.`);
  return value;
}

function share(text: string): number {
  const value = Number(text);
  if (!(value >= 0 && value < 1)) throw new InvalidArgumentError("Allowed: a share from 0 to less than 1, such as 0.1.");
  return value;
}
