/**
 * Tokens from a file, for where there is no Kubernetes to ask: YAML, a list of `{ name, role, tokenHash }`. The file holds hashes, so whoever reads it can call
 * nobody. It is read again when it changes: taking a line out ends its token within a second.
 */
import { timingSafeEqual } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { parse } from "yaml";
import { z } from "zod";
import type { Clock } from "../kernel/clock.ts";
import { RelevoError } from "../kernel/errors.ts";
import { digestOf, TOKEN_ROLES, tokenName, type TokenRole } from "./access.ts";
import type { Authenticator, Caller } from "./callers.ts";
import { type FileLog, WatchedFile } from "./watched-file.ts";

const MAX_FILE_BYTES = 1024 * 1024;
const MIN_TOKEN_CHARS = 16;

const entrySchema = z
  .strictObject({
    name: tokenName,
    role: z.enum(TOKEN_ROLES),
    /** `sha256:` and 64 hexadecimal digits, as `relevo token create` prints it. */
    tokenHash: z
      .string()
      .regex(/^sha256:[0-9a-f]{64}$/, "sha256: and 64 hexadecimal digits")
      .optional(),
    token: z.string().min(MIN_TOKEN_CHARS).max(4_096).optional(),
  })
  .refine(({ tokenHash, token }) => (tokenHash === undefined) !== (token === undefined), "either tokenHash or token");
const fileSchema = z.array(entrySchema).max(10_000);

interface Entry {
  readonly hash: Buffer;
  readonly caller: Caller;
}

/** Throws `token_file_invalid`, which never shows what is in the file. */
export function parseTokenFile(text: string, path: string): readonly Entry[] {
  let value: unknown;
  try {
    value = parse(text);
  } catch (cause) {
    throw invalid(path, "it is not YAML", cause);
  }
  const result = fileSchema.safeParse(value ?? []);
  if (!result.success) {
    const issue = result.error.issues[0];
    throw invalid(path, `${issue?.path.join(".") || "the file"}: ${issue?.message ?? "no valid form"}`);
  }
  const entries = result.data.map(({ name, role, tokenHash, token }) => ({
    hash: tokenHash === undefined ? digestOf(token ?? "") : Buffer.from(tokenHash.slice("sha256:".length), "hex"),
    caller: callerOf(name, role),
  }));
  if (new Set(entries.map(({ hash }) => hash.toString("hex"))).size < entries.length) throw invalid(path, "the same token is there twice");
  return entries;
}

export class TokenFile implements Authenticator {
  readonly #file: WatchedFile<readonly Entry[]>;

  /** Throws `token_file_invalid` when it cannot be read or is wrong. */
  constructor(path: string, clock: Clock, log: FileLog) {
    this.#file = new WatchedFile({
      ...{ path, clock, read: () => parseTokenFile(textOf(path), path) },
      onRead: ({ length }) => log.info({ event: "token_file", tokens: length }, "the token file was read again"),
      onTrouble: (trouble) => log.error({ event: "token_file", code: "token_file_invalid" }, `the tokens from before stay: ${trouble}`),
    });
  }

  async identify(token: string): Promise<Caller | undefined> {
    const given = digestOf(token);
    let found: Caller | undefined;
    // All of them, whichever fits: the time tells nothing.
    for (const { hash, caller } of this.#file.current()) if (timingSafeEqual(hash, given)) found = caller;
    return found;
  }
}

/** A replica's name is the beginning of its ids; any other name is only shown. */
function callerOf(name: string, role: TokenRole): Caller {
  if (role === "gateway") return { kind: "gateway", name, replica: name };
  if (role === "agent") return { kind: "agent", name, node: name };
  return { kind: "person", name, role };
}

function textOf(path: string): string {
  try {
    const { size } = statSync(path);
    if (size > MAX_FILE_BYTES) throw invalid(path, `it has ${size} bytes`);
    return readFileSync(path, "utf8");
  } catch (cause) {
    if (cause instanceof RelevoError) throw cause;
    throw invalid(path, "it cannot be read", cause);
  }
}

function invalid(path: string, why: string, cause?: unknown): RelevoError {
  return new RelevoError("token_file_invalid", `The token file ${path} is not valid: ${why}.`, {
    cause,
    allowed: `a list of { name, role: ${TOKEN_ROLES.join(" | ")}, tokenHash: sha256:… }`,
    todo: "relevo token create --name NAME --role ROLE prints a token and its line",
  });
}
