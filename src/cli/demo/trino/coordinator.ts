/**
 * Act 4: the coordinator is killed. Its running queries are lost, which is Trino's own limit: each client is told so in the protocol's own shape, and none hangs.
 * Reads may be sent again. What the fault-tolerant ones left in the exchange is swept once no coordinator knows their queries.
 */
import { listExchange, sweepExchange } from "../../../proof/exchange/sweep.ts";
import { coordinatorOfQuery } from "../../../model/trino.ts";
import { ownQuery } from "../../../proof/gate/own-query.ts";
import { allNumbers, type Checked, type Ended, numbers, whyOf } from "./clients.ts";
import { serverOf } from "./processes.ts";
import { CLUSTER_WITHIN_MS, engineOf, happens, note, POOL, seconds, servingCluster, type Stage, within } from "./stage.ts";

const ACT = "coordinator";
const SLOW_ROWS = 3_000_000;
const TOLERANT_ROWS = 400_000_000;
const RUNNING_WITHIN_MS = 60_000;
/** From the kill: as patient as Trino's own clients are, and some more. */
const TOLD_WITHIN_MS = 4 * 60_000;
/** Workers go on writing until they miss their coordinator. */
const QUIET_MS = 20_000;
const SWEPT_WITHIN_MS = 3 * 60_000;

export interface PlayedCoordinator {
  readonly lost: number;
  readonly explicit: number;
  readonly hung: number;
  readonly resubmitted: { readonly sent: number; readonly right: number };
  readonly orphans: { readonly left: number; readonly swept: number };
}

export async function playCoordinator(stage: Stage): Promise<PlayedCoordinator> {
  const { site, clients, clock } = stage;
  const cluster = await servingCluster(stage);
  const engine = engineOf(stage, cluster);
  const never = new Promise<void>(() => undefined);
  const plain = allNumbers(SLOW_ROWS);
  const tolerant: Checked = { sql: ownQuery(TOLERANT_ROWS), rows: [] };
  const running = [
    clients.readSlowly(ACT, clients.client(), plain, never),
    clients.readSlowly(ACT, clients.client(), plain, never),
    clients.check(ACT, clients.client("TASK"), tolerant),
  ];
  for (const each of running) each.catch(() => undefined); // the demo ends: whoever awaits it is told
  const isLoaded = await happens(stage, RUNNING_WITHIN_MS, async () => {
    const queries = (await engine.unfinished("483")).filter(({ source, state }) => source === "relevo-demo" && state === "RUNNING");
    return queries.length === running.length && (await listExchange(site.exchange, clock.now())).length > 0;
  });
  const server = serverOf(cluster.pod ?? "");
  if (!isLoaded || server === undefined) throw new Error(`the queries do not run, or no server runs in ${cluster.pod}`);
  note(stage, ACT, `${running.length} queries run, one of them with files in the exchange; SIGKILL to the coordinator ${server.pid}`);
  const killedAt = clock.monotonic();
  process.kill(server.pid, "SIGKILL");

  const ends = await Promise.all(running.map((each) => within(stage, TOLD_WITHIN_MS, each)));
  for (const ended of ends) note(stage, ACT, ended === undefined ? "a client was left hanging" : `a client was told: ${whyOf(ended)}`);
  note(stage, ACT, `the last client was told ${seconds(clock.monotonic() - killedAt)} after the kill`);
  const isBack = await happens(stage, CLUSTER_WITHIN_MS, async () => (await site.world.serving(POOL)) === 1);
  note(stage, ACT, isBack ? `a cluster serves again ${seconds(clock.monotonic() - killedAt)} after the kill` : "no cluster serves");
  const again = await Promise.all([numbers(SLOW_ROWS), numbers(SLOW_ROWS)].map((each) => clients.check(ACT, clients.client(), each)));
  note(stage, ACT, `reads were sent again: ${again.map(whyOf).join(", ")}`);
  return {
    lost: running.length,
    explicit: ends.filter((ended) => isExplicit(ended)).length,
    hung: ends.filter((ended) => ended === undefined).length,
    resubmitted: { sent: again.length, right: again.filter(({ how }) => how === "right").length },
    orphans: await sweep(stage),
  };
}

function isExplicit(ended: Ended | undefined): boolean {
  return ended?.how === "explicit";
}

/** Every coordinator of the pool is asked what it knows; of one that gives no answer nothing is swept. */
async function sweep(stage: Stage): Promise<PlayedCoordinator["orphans"]> {
  const { site, clock } = stage;
  const left = (await listExchange(site.exchange, clock.now())).length;
  const swept: string[] = [];
  await happens(stage, SWEPT_WITHIN_MS, async () => {
    const answered = new Map<string, Set<string>>();
    const clusters = (await site.world.instances(POOL)).filter(({ phase }) => phase !== "deleted" && phase !== "failed");
    for (const cluster of clusters) {
      const engine = engineOf(stage, cluster);
      answered.set((await engine.info()).coordinatorId ?? "", new Set((await engine.queries()).map(({ queryId }) => queryId)));
    }
    swept.push(
      ...(await sweepExchange(site.exchange, { known: { answered, silent: new Set() }, now: () => clock.now(), quietMs: QUIET_MS })),
    );
    return (await listExchange(site.exchange, clock.now())).length === 0;
  });
  const owners = new Set(swept.map((name) => coordinatorOfQuery(name.split(".")[1] ?? "") ?? "?"));
  note(
    stage,
    ACT,
    `${left} folders of the exchange were left behind; ${swept.length} swept, of the coordinator ${[...owners].join(", ") || "-"}`,
  );
  return { left, swept: swept.length };
}
