/** Several controllers on one PostgreSQL: pools change hands when one dies, ends or stands still, and the clients notice nothing. Level: real processes. */
import { afterEach, expect, test } from "vitest";
import type { Mix } from "../../src/cli/demo/load/mix.ts";
import { systemClock as clock } from "../../src/kernel/system.ts";
import { Controllers } from "./controllers.ts";
import { violationsOf } from "./history.ts";

const POOLS = ["alpha", "bravo", "charlie", "delta"];
const MIX: Mix = {
  perSecond: { order: 20, charge: 5, export: 1, live: 0, tx: 1 },
  exportSeconds: [0.5, 1.5],
  liveSeconds: [0.5, 1.5],
  txSeconds: [1, 3],
  stepMs: 100,
  http2Share: 0.3,
};
const TIMEOUT_MS = 180_000;

let fleet: Controllers;
afterEach(() => fleet.close());

test(
  "three controllers share the pools; one that is killed is replaced within 5 s, one that ends at once, one that stood still commits nothing (I4)",
  async () => {
    fleet = await Controllers.start({ replicas: 3, pools: POOLS });
    for (const pool of POOLS) await fleet.until(`two of ${pool} serve`, async () => (await fleet.serving(pool)) === 2);
    const before = await fleet.owners(POOLS);
    const loads = POOLS.slice(0, 2).map((pool) => fleet.load(pool, MIX));
    for (const load of loads) load.startAct("hand-overs");
    await fleet.until("it is under load", () => loads.every((load) => load.snapshot().outcomes.completed > 40));

    expect(await drainThroughAnother(ownerOf(before, "delta"))).toEqual({ status: 200, reason: "operator_drain" });

    const victim = ownerOf(before, POOLS[0]);
    const his = POOLS.filter((pool) => before.get(pool) === victim);
    const areAnothers = async () => [...(await fleet.owners(his)).values()].every((owner) => owner !== null && owner !== victim);
    const areHis = async () => [...(await fleet.owners(his)).values()].every((owner) => owner === victim);
    const handOver = async (signal: "SIGKILL" | "SIGTERM" | "SIGSTOP") => {
      const from = clock.monotonic();
      const ended = fleet.replicas.get(victim)?.signal(signal);
      await fleet.until("his pools are another's", areAnothers);
      const tookMs = clock.monotonic() - from;
      await ended;
      console.log(`${signal} to ${victim}, which has ${his.join(", ")}: ${Math.round(tookMs)} ms`);
      return tookMs;
    };

    expect(await handOver("SIGKILL")).toBeLessThan(5_000);
    await fleet.replica(victim);
    await fleet.until("he has his pools again", areHis);

    expect(await handOver("SIGTERM")).toBeLessThan(1_500);
    await fleet.replica(victim);
    await fleet.until("he has his pools again", areHis);

    await handOver("SIGSTOP");
    await fleet.replicas.get(victim)?.signal("SIGCONT");
    await fleet.until("he has his pools again", areHis);
    for (const pool of POOLS) await fleet.until(`two of ${pool} serve`, async () => (await fleet.serving(pool)) === 2);

    const results = await Promise.all(loads.map((load) => load.endAct("hand-overs")));
    for (const { result } of results) expect(result).toMatchObject({ rejected: 0, cut: 0, lost: 0, doubled: 0, problems: [] });
    expect(violationsOf(await fleet.history.read())).toEqual([]);
  },
  TIMEOUT_MS,
);

/** A command reaches the pool's owner through any replica, and each tells of all. */
async function drainThroughAnother(owner: string): Promise<{ readonly status: number; readonly reason: string | undefined }> {
  const other = [...fleet.replicas].find(([name]) => name !== owner)?.[1].url ?? "";
  const told = (await (await fetch(`${other}/v1/controllers`)).json()) as {
    items: { controller: string; live: boolean; pools: string[] }[];
  };
  expect(told.items.map(({ controller, live }) => [controller, live])).toEqual(
    [...fleet.replicas.keys()].toSorted().map((name) => [name, true]),
  );
  expect(told.items.flatMap(({ pools }) => pools).toSorted()).toEqual(POOLS.map((pool) => `default/${pool}`));
  const instance = (await fleet.rows("delta"))?.instances[0]?.id ?? "";
  const answer = await fetch(`${other}/v1/instances/${instance}/drain`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ by: "a test", why: "to show it" }),
  });
  await fleet.until("it was replaced", async () => {
    const instances = (await fleet.rows("delta"))?.instances ?? [];
    return instances.length === 2 && instances.every(({ id, phase }) => id !== instance && phase === "serving");
  });
  const evidence = await fleet.store.listEvidence("default/delta", 10);
  return { status: answer.status, reason: evidence.find((each) => each.instance === instance)?.reason };
}

function ownerOf(owners: ReadonlyMap<string, string | null>, pool: string | undefined): string {
  const owner = owners.get(pool ?? "");
  if (owner === undefined || owner === null) throw new Error(`nobody has ${pool}`);
  return owner;
}
