/** What a command is given to read: a file of the working folder, or its standard input as `-`. */
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import type { CliContext } from "./context.ts";
import { UsageError } from "./exit.ts";

/** Throws `file_unreadable`. */
export async function readText(context: Pick<CliContext, "cwd" | "readStdin">, file: string): Promise<string> {
  return file === "-" ? context.readStdin() : readTextFile(context, file);
}

/** Throws `file_unreadable`. */
export function readTextFile({ cwd }: Pick<CliContext, "cwd">, file: string): string {
  try {
    return readFileSync(resolve(cwd, file), "utf8");
  } catch (cause) {
    throw new UsageError("file_unreadable", `${file} cannot be read.`, { found: (cause as NodeJS.ErrnoException).code, cause });
  }
}

/** As mistakes in it are placed. */
export function shownName(file: string): string {
  return file === "-" ? "stdin" : file;
}
