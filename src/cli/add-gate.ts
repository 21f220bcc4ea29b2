/** The command about gates: its options and its help. */
import type { Command } from "commander";
import type { CliContext } from "./context.ts";
import type { ExitCode } from "./exit.ts";
import { collect } from "./option-values.ts";
import { optionsOfNested } from "./options-of.ts";

export function addGate(program: Command, context: CliContext, ended: (code: ExitCode) => void): void {
  program
    .command("gate")
    .description("experiments with a negative control")
    .command("run")
    .description(
      "kills a worker in the middle of a query, with fault tolerance and without, and says what that shows; exit code 0 pass, 1 fail, 3 invalid or non-discriminating, 4 exception",
    )
    .requiredOption("-f, --filename <file>", "a Gate (docs/gate.md), or - for standard input")
    .option("--report <file>", "where the report goes too: as Markdown, or as JSON when its name ends in .json")
    .option("--kubeconfig <file>", "of the cluster whose pods are killed (default: what relevo up wrote here, or kubectl's own)")
    .option("--context <name>", "of that file")
    .option("--exception <why>", "runs nothing and records that one goes on without this gate: never a pass")
    .option("--follow-up <what>", "with --exception: what is still to be done; may be repeated", collect)
    .action(async (_options, command: Command) =>
      ended(await (await import("./gate/run.ts")).runGateCommand(context, optionsOfNested(command))),
    );
}
