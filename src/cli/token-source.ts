/** With which token a process calls a controller. A file is read at each use: a token that Kubernetes puts there is another one every hour. */
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { RelevoError } from "../kernel/errors.ts";
import type { CliContext } from "./context.ts";

/** RELEVO_TOKEN, else the content of RELEVO_TOKEN_FILE; undefined: none. The function throws `token_unreadable`. */
export function tokenSourceOf({ env, cwd }: Pick<CliContext, "env" | "cwd">): () => string | undefined {
  const given = env.RELEVO_TOKEN;
  if (given !== undefined && given !== "") return () => given;
  const file = env.RELEVO_TOKEN_FILE;
  if (file === undefined || file === "") return () => undefined;
  const path = resolve(cwd, file);
  return () => {
    try {
      return readFileSync(path, "utf8").trim();
    } catch (cause) {
      throw new RelevoError("token_unreadable", `The token in ${path} cannot be read.`, {
        class: "retryable",
        found: (cause as NodeJS.ErrnoException).code,
        cause,
        todo: "see RELEVO_TOKEN_FILE",
      });
    }
  };
}
