/**
 * `relevo bundle`: what somebody needs to see who helps, in one JSON document: states, evidence, steps, reasons, counts, versions, and logs when they are given.
 * It holds what the API shows, which has no blueprint, no environment, no Secret and no body of a notice; and whatever still looks like a secret is taken out.
 */
import { closeSync, fstatSync, openSync, readdirSync, readFileSync, readSync, statSync, writeFileSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import querystring from "node:querystring";
import { z } from "zod";
import { formatInstant } from "../../kernel/clock.ts";
import { describeError } from "../../kernel/errors.ts";
import { healthView, poolView } from "../../server/views.ts";
import { type ControllerClient, connect } from "../client.ts";
import type { CliContext, GlobalOptions } from "../context.ts";
import { EXIT, type ExitCode, UsageError } from "../exit.ts";
import { readRunFile } from "../run-file.ts";
import { redactor } from "../redact.ts";
import { tokenSourceOf } from "../token-source.ts";
import { VERSION } from "../version.ts";

export interface BundleOptions extends GlobalOptions {
  /** `-`: standard output. */
  readonly file?: string;
  /** Files, or folders of them. */
  readonly logs?: readonly string[];
}

/** Bound of each part, so that a large site makes a document that can still be sent. */
const ITEMS_MAX = 1_000;
const POOLS_EXPLAINED_MAX = 100;
const LOG_TAIL_BYTES = 2 * 1024 * 1024;
const LOG_FILES_MAX = 50;
/** Keys, stores and kubeconfigs lie beside logs: of a folder only what is called like one is taken. */
const LOG_NAME = /\.(log|out|err|txt|jsonl)(\.|$)|^(stdout|stderr|syslog|messages)\b/;

const LISTS: Readonly<Record<string, string>> = {
  pools: "/v1/pools",
  instances: `/v1/instances?limit=${ITEMS_MAX}`,
  evidence: `/v1/evidence?limit=${ITEMS_MAX}`,
  steps: `/v1/steps?limit=${ITEMS_MAX}`,
  events: `/v1/events?limit=${ITEMS_MAX}`,
  workloads: `/v1/workloads?limit=${ITEMS_MAX}`,
  notices: `/v1/notices?limit=${ITEMS_MAX}`,
  sources: "/v1/sources",
  cordons: "/v1/cordons",
  nodes: "/v1/nodes",
  controllers: "/v1/controllers",
  gateways: "/v1/gateways",
  forcedSeals: "/v1/forced-seals",
};
const ONES: Readonly<Record<string, string>> = {
  health: "/healthz",
  readiness: "/readyz",
  store: "/v1/store",
  capacity: "/v1/capacity",
  caller: "/v1/whoami",
};

export async function bundle(context: CliContext, options: BundleOptions): Promise<ExitCode> {
  const client = connect(context, options);
  await client.get("/healthz", healthView); // a controller that does not answer is one sentence, not a bundle of them
  const redact = redactor(secretsOf(context));
  const at = formatInstant(context.clock.now());
  const content = redact({
    at,
    versions: { relevo: VERSION, node: process.versions.node, platform: `${process.platform} ${process.arch}` },
    ...(await readAll(client)),
    logs: (options.logs ?? []).flatMap((path) => logsIn(context, resolve(context.cwd, path))),
  });
  const text = `${JSON.stringify(content, null, 1)}\n`;
  const file = options.file ?? `relevo-bundle-${at.replaceAll(/[:.]/g, "-")}.json`;
  if (file === "-") context.out(text);
  else {
    write(resolve(context.cwd, file), text);
    context.out(`${file}: ${Math.ceil(text.length / 1024)} KiB; look through it before you send it\n`);
  }
  return EXIT.done;
}

/** A part that cannot be had says why, and the others are there. */
function partOf(read: () => Promise<unknown>): Promise<unknown> {
  return read().catch((error: unknown) => ({ missing: describeError(error) }));
}

async function readAll(client: ControllerClient): Promise<Readonly<Record<string, unknown>>> {
  const parts: Record<string, unknown> = {};
  const add = async (name: string, read: () => Promise<unknown>) => {
    parts[name] = await partOf(read);
  };
  for (const [name, path] of Object.entries(LISTS)) await add(name, async () => client.list(path, z.unknown()));
  for (const [name, path] of Object.entries(ONES)) await add(name, async () => client.get(path, z.unknown()));
  await add("metrics", () => client.text("/metrics"));
  await add("explanations", async () => {
    const pools = (await client.list("/v1/pools", poolView)).slice(0, POOLS_EXPLAINED_MAX);
    const explained: unknown[] = [];
    for (const { pool } of pools)
      explained.push(await partOf(() => client.get(`/v1/explain?subject=${encodeURIComponent(pool)}`, z.unknown())));
    return explained;
  });
  return parts;
}

/** What `relevo up` keeps beside its store. */
const KEY_FILES = ["gateway.key", "store.db.lease-key", "webhook.secret"];

/** What this command knows to be secret, wherever it turns up. */
function secretsOf(context: CliContext): readonly string[] {
  const run = readRunFile(context.cwd);
  const { RELEVO_WEBHOOK_SECRET, RELEVO_STORE, RELEVO_STORE_PASSWORD_FILE, PGPASSWORD } = context.env;
  return [
    tokenSourceOf(context)(),
    RELEVO_WEBHOOK_SECRET,
    PGPASSWORD,
    ...passwordsIn(RELEVO_STORE),
    RELEVO_STORE_PASSWORD_FILE === undefined ? undefined : textOf(resolve(context.cwd, RELEVO_STORE_PASSWORD_FILE)),
    run?.token,
    run?.webhookSecret,
    ...(run === undefined ? [] : KEY_FILES.map((name) => textOf(join(dirname(dirname(run.kubeconfig)), name)))),
  ].flatMap((secret) => secret ?? []);
}

/** As it stands in a URL, and as it is. */
function passwordsIn(url: string | undefined): readonly string[] {
  const password = url === undefined ? undefined : URL.parse(url)?.password;
  if (password === undefined) return [];
  return [password, querystring.unescape(password)];
}

/** Of a file that need not be here: it is another process that reads it. */
function textOf(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8").trim();
  } catch {
    return undefined;
  }
}

function logsIn(context: CliContext, path: string): readonly { readonly file: string; readonly tail: readonly string[] }[] {
  try {
    const asked = statSync(path);
    if (asked.isFile()) return [{ file: basename(path), tail: tailOf(path) }];
    if (!asked.isDirectory())
      throw new UsageError("file_unreadable", `${path} is no file and no folder.`, { allowed: "files, or folders of them" });
    const files = readdirSync(path, { withFileTypes: true }).filter((entry) => entry.isFile());
    const others = files.filter(({ name }) => !LOG_NAME.test(name));
    if (others.length > 0) context.err(`${path}: left out, not named as logs are: ${others.map(({ name }) => name).join(", ")}\n`);
    return files
      .filter(({ name }) => LOG_NAME.test(name))
      .slice(0, LOG_FILES_MAX)
      .map(({ name }) => name)
      .toSorted()
      .map((name) => ({ file: name, tail: tailOf(join(path, name)) }));
  } catch (cause) {
    if (cause instanceof UsageError) throw cause;
    throw new UsageError("file_unreadable", `${path} cannot be read.`, { found: (cause as NodeJS.ErrnoException).code, cause });
  }
}

function tailOf(path: string): readonly string[] {
  const file = openSync(path, "r");
  try {
    const { size } = fstatSync(file);
    const from = Math.max(0, size - LOG_TAIL_BYTES);
    const bytes = Buffer.alloc(Math.min(size, LOG_TAIL_BYTES));
    const read = readSync(file, bytes, 0, bytes.length, from);
    const lines = bytes.subarray(0, read).toString("utf8").split("\n");
    // The first one may be half of one.
    return (from === 0 ? lines : lines.slice(1)).filter((line) => line !== "");
  } finally {
    closeSync(file);
  }
}

function write(path: string, text: string): void {
  try {
    writeFileSync(path, text, { mode: 0o600, flag: "wx" });
  } catch (cause) {
    throw new UsageError("file_not_written", `${path} cannot be written.`, {
      found: (cause as NodeJS.ErrnoException).code,
      todo: "name another by --file, or - for standard output",
      cause,
    });
  }
}
