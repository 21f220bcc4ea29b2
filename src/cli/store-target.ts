/** Which store a command means. A password comes from a file or the environment, never from an argument, which everybody on the machine sees. */
import { resolve } from "node:path";
import type { CliContext } from "./context.ts";
import { UsageError } from "./exit.ts";
import { readTextFile } from "./text-file.ts";

export interface StoreTarget {
  /** An absolute path, or a `postgresql://` URL. */
  readonly store: string;
  /** As its file has it when it is asked for. Throws `file_unreadable`. Absent: PGPASSWORD, PGPASSFILE, or what the URL of RELEVO_STORE has. */
  readonly storePassword?: () => string;
}

export interface StoreTargetOptions {
  readonly store?: string | undefined;
  readonly storePasswordFile?: string | undefined;
}

export const DEFAULT_STORE = ".relevo/store.db";
const URL_PATTERN = /^postgres(ql)?:\/\//;
const WITH_PASSWORD = /^postgres(ql)?:\/\/[^/?@]*:[^/?@]+@/;

/** `--store`, else RELEVO_STORE, else the file of `relevo up`. Errors: `store_password_shown`, `file_unreadable`. */
export function storeTargetOf(context: CliContext, { store, storePasswordFile }: StoreTargetOptions): StoreTarget {
  if (store !== undefined && WITH_PASSWORD.test(store))
    throw new UsageError("store_password_shown", "The URL of --store holds a password, which is seen in the list of processes.", {
      found: store.replace(/:[^:/?@]+@/, ":…@"),
      allowed: "PGPASSWORD, PGPASSFILE, --store-password-file, or the whole URL in RELEVO_STORE",
    });
  const target = store ?? context.env["RELEVO_STORE"] ?? DEFAULT_STORE;
  if (!URL_PATTERN.test(target)) return { store: resolve(context.cwd, target) };
  const file = storePasswordFile ?? context.env["RELEVO_STORE_PASSWORD_FILE"];
  if (file === undefined) return { store: target };
  passwordIn(context, file);
  return { store: target, storePassword: () => passwordIn(context, file) };
}

function passwordIn(context: CliContext, file: string): string {
  return readTextFile(context, file).trim();
}
