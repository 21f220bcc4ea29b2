/** `relevo store migrate, export, import`: from the options of the command line to what is done and said. What is said goes to standard error: an export may go to output. */
import { resolve } from "node:path";
import type { CliContext } from "../context.ts";
import { EXIT, type ExitCode } from "../exit.ts";
import { renderDocument } from "../output.ts";
import type { StoreCommand, StoreCommandOptions } from "../process-commands.ts";
import { storeTargetOf } from "../store-target.ts";
import { exportStore, importStore, migrateStore } from "./store-process.ts";

export async function storeCommand(context: CliContext, what: StoreCommand, options: StoreCommandOptions): Promise<ExitCode> {
  const target = storeTargetOf(context, options);
  const isDry = options.dryRun === true;
  const file = options.file === undefined || options.file === "-" ? undefined : resolve(context.cwd, options.file);
  const transfer = { ...target, file, say: context.err };
  switch (what) {
    case "migrate": {
      const { from, to } = await migrateStore(target, isDry);
      const done = from === to ? "is up to date" : isDry ? "would be migrated" : "was migrated";
      context.out(renderDocument({ from, to, dryRun: isDry }, options.output) ?? `the store ${done}: schema ${from} to ${to}\n`);
      return EXIT.done;
    }
    case "export": {
      const rows = await exportStore(transfer);
      context.err(
        `${rows} rows written${file === undefined ? "" : ` to ${file}`}; keep it as a secret: it holds the key of writer leases\n`,
      );
      return EXIT.done;
    }
    case "import": {
      const rows = await importStore({ ...transfer, isDry });
      context.out(
        renderDocument({ rows, dryRun: isDry }, options.output) ??
          `${rows} rows ${isDry ? "would be taken; nothing was changed" : "were taken"}\n`,
      );
      return EXIT.done;
    }
    default:
      return what satisfies never;
  }
}
