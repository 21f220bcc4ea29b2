/** Act 1: the coordinator's node drifts. The next cluster is there first, and the old one goes when its last query and its last transaction have ended. */
import { allNumbers } from "./clients.ts";
import { startJdbc } from "./jdbc.ts";
import { CLUSTER_WITHIN_MS, clusterNamed, happens, note, POOL, seconds, servingCluster, type Stage } from "./stage.ts";

const ACT = "voluntary";
const ASKERS = 2;
const SLOW_ROWS = 2_000_000;
const ENDED_WITHIN_MS = 3 * 60_000;
const OVER_WITHIN_MS = 60_000;

export interface PlayedVoluntary {
  /** The next one served, and the old one was sealed with its work done, and went. */
  readonly replaced: boolean;
  readonly seal: string | null;
  /** Of the JDBC driver alone. */
  readonly jdbc: { readonly sent: number; readonly right: number };
}

export async function playVoluntary(stage: Stage): Promise<PlayedVoluntary> {
  const jdbc = startJdbc(stage.site, stage.clients, ACT);
  const played = await playDrift(stage);
  const own = await jdbc.stop();
  note(stage, ACT, `Trino's JDBC driver was among the clients: ${own.right} of its ${own.sent} queries were answered right`);
  return { ...played, jdbc: own };
}

async function playDrift(stage: Stage): Promise<Omit<PlayedVoluntary, "jdbc">> {
  const { site, clients, clock } = stage;
  const old = await servingCluster(stage);
  const over = new AbortController();
  const release = Promise.withResolvers<void>();
  const asking = Array.from({ length: ASKERS }, () => clients.keepAsking(ACT, over.signal));
  const slow = clients.readSlowly(ACT, clients.client(), allNumbers(SLOW_ROWS), release.promise);
  const transaction = clients.transact(ACT, release.promise);
  try {
    await clock.sleep(OVER_WITHIN_MS / 20, stage.signal);
    note(
      stage,
      ACT,
      `a query of ${SLOW_ROWS} rows and a transaction are open at ${old.id}; the node of its coordinator, ${old.node}, drifts`,
    );
    const startedAt = clock.monotonic();
    await site.world.drift(old.node ?? "");
    const isServed = await happens(stage, CLUSTER_WITHIN_MS, async () =>
      (await site.world.instances(POOL)).some(({ phase, replaces }) => phase === "serving" && replaces === old.id),
    );
    if (!isServed) return { replaced: false, seal: null };
    const next = await servingCluster(stage);
    note(stage, ACT, `${next.id} serves ${seconds(clock.monotonic() - startedAt)} after the drift, on ${next.node}`);
    const drains = await happens(stage, OVER_WITHIN_MS, async () => (await clusterNamed(stage, old.id))?.phase === "draining");
    if (drains)
      note(
        stage,
        ACT,
        `${old.id} drains with ${(await clusterNamed(stage, old.id))?.sessions ?? "?"} open at the gateway; its query and its transaction go on`,
      );
    release.resolve();
    const [read, isCommitted] = await Promise.all([slow, transaction]);
    note(stage, ACT, `the query of ${SLOW_ROWS} rows ended ${read.how}, the transaction was ${isCommitted ? "committed" : "lost"}`);
    let seal: string | null = null;
    const isGone = await happens(stage, ENDED_WITHIN_MS, async () => {
      const seen = await clusterNamed(stage, old.id);
      seal = seen?.seal ?? seal;
      return seen === undefined || seen.phase === "deleted";
    });
    note(stage, ACT, isGone ? `${old.id} is sealed (${seal ?? "not seen"}) and gone` : `${old.id} is not gone`);
    return { replaced: drains && isGone, seal };
  } finally {
    release.resolve();
    over.abort();
    await Promise.all(asking);
  }
}
