/** One node's instances are replaced on the ordinary path, under requests of our own; what came of it is counted by the client and before and after. */
import { z } from "zod";
import { RelevoError } from "../../kernel/errors.ts";
import { instanceView, type InstanceView, type PoolView, poolView } from "../../server/views.ts";
import type { ControllerClient } from "../client.ts";
import type { CliContext } from "../context.ts";
import { HeldError } from "../exit.ts";
import { howToThaw } from "../thaw.ts";
import { VerifyingClient } from "./client.ts";
import { type Replacement, sumOf } from "./report.ts";

export interface ReplaceOptions {
  readonly pool: string;
  readonly node: string;
  readonly url: string;
  readonly perSecond: number;
  readonly withinMs: number;
}

const LOOK_EVERY_MS = 200;
/** Requests before the first drain, and after the last: what is undisturbed. */
const CALM_MS = 2_000;
/** Gateways report every second. */
const REPORTED_WITHIN_MS = 2_500;
const MAX_INSTANCES = 1_000;

/** Throws `verify_refused` before anything is changed. */
export async function replaceNode(context: CliContext, client: ControllerClient, options: ReplaceOptions): Promise<Replacement> {
  const { clock, signal } = context;
  const before = await readPool(client, options.pool);
  const onNode = (await instancesOf(client, options.pool)).filter(({ node, phase }) => node === options.node && phase === "serving");
  refuse(before, onNode, options);
  const requests = new VerifyingClient({ url: options.url, perSecond: options.perSecond, fetch: context.fetch, clock });
  await assertReached(requests, options.url);
  const ids = onNode.map(({ id }) => id);
  let least = before.serving;
  let isFinished = false;
  requests.start();
  try {
    await clock.sleep(CALM_MS, signal);
    requests.openWindow();
    for (const id of ids)
      await client.post(
        `/v1/instances/${encodeURIComponent(id)}/drain`,
        { by: context.user, why: `verify disruption of ${options.node}` },
        z.object({ evidence: z.string() }),
      );
    const end = clock.monotonic() + options.withinMs;
    while (!isFinished && clock.monotonic() < end) {
      await clock.sleep(LOOK_EVERY_MS, signal);
      const pool = await readPool(client, options.pool);
      least = Math.min(least, pool.serving);
      const phases = new Map((await instancesOf(client, options.pool)).map(({ id, phase }) => [id, phase]));
      isFinished = pool.serving >= before.serving && ids.every((id) => (phases.get(id) ?? "deleted") === "deleted");
    }
    await clock.sleep(CALM_MS, signal);
  } finally {
    await requests.stop();
  }
  await clock.sleep(REPORTED_WITHIN_MS, signal);
  const after = await readPool(client, options.pool);
  const all = await instancesOf(client, options.pool);
  const [lostBefore, lostAfter] = [sumOf(before.losses), sumOf(after.losses)];
  return {
    node: options.node,
    instances: ids,
    replacements: all
      .filter(({ replaces }) => replaces !== null && ids.includes(replaces))
      .map(({ id, node }) => `${id} on ${node ?? "no node"}`),
    isFinished,
    servingBefore: before.serving,
    servingLeast: least,
    client: requests.counts(),
    acceptedByRoute: after.traffic === null ? null : after.traffic.accepted - (before.traffic?.accepted ?? 0),
    lost: {
      forced: lostAfter.forced - lostBefore.forced,
      obligations: lostAfter.obligations - lostBefore.obligations,
      assumedSeals: lostAfter.assumedSeals - lostBefore.assumedSeals,
    },
  };
}

function refuse(pool: PoolView, onNode: readonly InstanceView[], { node }: ReplaceOptions): void {
  if (pool.freeze !== null)
    throw new HeldError("pool_frozen", `Pool ${pool.pool} is frozen until ${pool.freeze.until}.`, {
      found: pool.freeze.why,
      todo: howToThaw(pool.pool, pool.freeze),
    });
  if (onNode.length === 0) throw refused(`No instance of ${pool.pool} serves on ${node}.`, node, "see npx relevo get instances -o wide");
  if (pool.serving < 2 || pool.serving < pool.desired)
    throw refused(
      `${pool.serving} of ${pool.desired} instances serve: only a pool with all, and at least two, can show anything.`,
      pool.serving,
      `npx relevo explain ${pool.pool}`,
    );
}

async function assertReached(requests: VerifyingClient, url: string): Promise<void> {
  let found: unknown;
  try {
    const status = await requests.probe();
    if (status < 500 && status !== 404) return;
    found = `status ${status}`;
  } catch (error) {
    found = error instanceof Error ? error.message : String(error);
  }
  throw refused(
    `The service does not answer a plain GET at ${url}, so nothing could be told from it.`,
    found,
    "name the gateway's address and a path by --gateway URL/path",
  );
}

function refused(sentence: string, found: unknown, todo: string): RelevoError {
  return new RelevoError("verify_refused", sentence, { found, todo });
}

function readPool(client: ControllerClient, pool: string): Promise<PoolView> {
  return client.get(`/v1/pools/${pool}`, poolView);
}

function instancesOf(client: ControllerClient, pool: string): Promise<readonly InstanceView[]> {
  return client.list(`/v1/instances?limit=${MAX_INSTANCES}&pool=${encodeURIComponent(pool)}`, instanceView);
}
