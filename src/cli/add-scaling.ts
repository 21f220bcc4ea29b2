/** The commands about sizes that follow a demand: their options and their help. */
import type { Command } from "commander";
import type { CliContext } from "./context.ts";
import type { ExitCode } from "./exit.ts";
import { collect, count } from "./option-values.ts";
import { optionsOf } from "./options-of.ts";

type Ended = (code: ExitCode) => void;

export function addScaling(program: Command, context: CliContext, ended: Ended): void {
  program
    .command("check")
    .description("before the size of a pool is left to Relevo: signal, credentials, flow, value and owner at each site; changes nothing")
    .argument("[pool]")
    .option("-f, --filename <file>", "of a document that is not applied yet, or - for standard input")
    .action(async (pool: string | undefined, _options, command: Command) =>
      ended(await (await import("./scaling/check.ts")).check(context, pool, optionsOf(command))),
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
}
