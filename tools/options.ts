/** The options of a tool: `--help` prints its usage and ends with 0, an option that it does not have is told in a sentence and ends with 2. */
import { parseArgs, type ParseArgsConfig } from "node:util";

type Options = NonNullable<ParseArgsConfig["options"]>;
type Values<T extends Options> = ReturnType<typeof parseArgs<{ options: T }>>["values"];

/** Of this process's command line. Ends the process on `--help` and on mistakes. */
export function readOptions<const T extends Options>(usage: string, options: T): Values<T> {
  if (process.argv.slice(2).some((arg) => arg === "--help" || arg === "-h")) {
    process.stdout.write(`${usage}\n`);
    process.exit(0);
  }
  try {
    return parseArgs({ options }).values as Values<T>;
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n\n${usage}\n`);
    process.exit(2);
  }
}
