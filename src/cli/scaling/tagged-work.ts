/** Work of a command's own in a pool's queue: put in by a tag, watched, and taken back whatever happens. */
import { accessSync, constants, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { isAt } from "../../demand/connections.ts";
import { openFeed, type WorkFeed } from "../../demand/feed.ts";
import { describeError, RelevoError } from "../../kernel/errors.ts";
import { readConnections } from "../../demand/read-connections.ts";
import { type FollowedView, followedView } from "../../server/scale-views.ts";
import type { ControllerClient } from "../client.ts";
import type { CliContext, GlobalOptions } from "../context.ts";
import { UsageError } from "../exit.ts";
import { readTextFile } from "../text-file.ts";

export interface TaggedOptions extends GlobalOptions {
  /** The file that the controller has. */
  readonly connections: string;
  /** JSON, or `@file`. */
  readonly payload: string;
}

export interface TaggedWork {
  readonly followed: FollowedView;
  readonly tag: string;
  readonly feed: WorkFeed;
}

/** Nothing is put in yet. Throws `connections_invalid`, `signal_cannot_be_fed`, `connection_missing`. */
export async function openTaggedWork(
  context: CliContext,
  client: ControllerClient,
  pool: string,
  options: TaggedOptions,
  word: string,
): Promise<TaggedWork> {
  const followed = await client.get(`/v1/pools/${pool}/followed`, followedView);
  const { signal, sites } = followed;
  const connections = readConnections(resolve(context.cwd, options.connections), context.env);
  const site = sites[0] ?? "";
  const connection = "connection" in signal ? connections.find((each) => each.name === signal.connection && isAt(each, site)) : undefined;
  const tag = `relevo-${word}-${context.ids.next("run")}-`;
  return { followed, tag, feed: openFeed(signal, connection, tag, context.clock) };
}

/** What a job holds; the pool's workers must understand it. */
export function payloadOf(context: CliContext, option: string, text: string): unknown {
  const json = text.startsWith("@") ? readTextFile(context, text.slice(1)) : text;
  try {
    return JSON.parse(json) as unknown;
  } catch (cause) {
    throw new UsageError("payload_invalid", `${option} is no JSON.`, {
      found: json.slice(0, 80),
      allowed: "JSON, or @ and a file with it",
      cause,
    });
  }
}

/** Before anything is put in: a report that cannot be written after minutes of work is lost. Throws `report_unwritable`. */
export function assertReportCanBeWritten({ cwd }: Pick<CliContext, "cwd">, report: string | undefined): void {
  if (report === undefined) return;
  const path = resolve(cwd, report);
  try {
    const isThere = statSync(path, { throwIfNoEntry: false });
    if (isThere?.isDirectory()) throw Object.assign(new Error("a folder"), { code: "EISDIR" });
    accessSync(isThere === undefined ? dirname(path) : path, constants.W_OK);
  } catch (cause) {
    throw new UsageError("report_unwritable", `${report} cannot be written.`, { found: (cause as NodeJS.ErrnoException).code, cause });
  }
}

const LEFT_WITHIN_MS = 30_000;
const POLL_MS = 250;

export interface Cleared {
  readonly removed: number;
  readonly left: number;
}

/** Takes back what waits, and gives what workers have begun the time to end. Returns what is left of it then. Throws `work_left_behind`. */
export async function clearWork(work: TaggedWork, context: CliContext): Promise<Cleared> {
  try {
    return await clear(work, context);
  } catch (cause) {
    throw new RelevoError("work_left_behind", "What was put in could not be taken back.", {
      found: describeError(cause),
      todo: `when the queue answers again: DELETE /v1/queues/QUEUE/tagged?prefix=${work.tag}`,
      cause,
    });
  }
}

async function clear({ feed }: TaggedWork, { clock }: CliContext): Promise<Cleared> {
  let removed = await feed.clear();
  for (const end = clock.monotonic() + LEFT_WITHIN_MS; ; await clock.sleep(POLL_MS)) {
    const { waiting, taken, dead } = await feed.counts();
    // One that its worker gave back waits again.
    if (waiting + dead > 0) removed += await feed.clear();
    else if (taken === 0) return { removed, left: 0 };
    if (clock.monotonic() > end) return { removed, left: taken };
  }
}
