/**
 * Writer leases under several controllers: whoever is asked renews them, the pool's owner judges them, and an owner that dies takes no writer with it, nor does
 * it bring one back. Level: real processes, a real database.
 */
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { compareEpochs, type Epoch } from "../../src/kernel/epoch.ts";
import type { Workload } from "../../src/model/writer.ts";
import type { Stamp } from "../../src/sdk/index.ts";
import { Controllers } from "./controllers.ts";
import { violationsOf } from "./history.ts";
import { signal, startLanding, type TestLanding } from "./landing.ts";

const POOL = "alpha";
const TTL = "3s";
/** Of each writer, under a new owner: by then it has been judged for some TTLs. */
const RENEWALS = 10;
const TIMEOUT_MS = 180_000;

let fleet: Controllers | undefined;
let landing: TestLanding | undefined;
let stopped: number | undefined;
afterEach(async () => {
  if (stopped !== undefined) signal(stopped, "SIGCONT");
  stopped = undefined;
  await fleet?.close();
  landing?.close();
});

test(
  "the owner of a pool is killed: its writers write on under the same epochs; it is killed while a writer is late: that one is fenced, and what it brings is stale (I1, I2, I4)",
  async () => {
    landing = await startLanding();
    const { opened, begun, results } = landing;
    const controllers = await Controllers.start({
      replicas: 3,
      pools: [POOL],
      pool: {
        program: join(import.meta.dirname, "careless.mjs"),
        env: { LANDING_URL: landing.url },
        spec: { state: { lease: { ttl: TTL } }, disruption: { mode: "Act", unreachableAfter: "2s" } },
        gracePeriodS: 600,
      },
    });
    fleet = controllers;
    const until = controllers.until.bind(controllers);
    await until("both serve and write", async () => (await controllers.serving(POOL)) === 2 && opened.length === 2);

    const before = await workloads();
    expect(before.map(({ holder }) => holder?.instance).toSorted()).toEqual(opened.map(({ instance }) => instance).toSorted());
    await killOwner();
    const taken = await workloads();
    await until("each was renewed again and again", async () =>
      (await workloads()).every(({ renewals }, at) => renewals >= (taken[at]?.renewals ?? 0) + RENEWALS),
    );
    expect((await workloads()).map(unrenewed)).toEqual(before.map(unrenewed));
    expect(await controllers.store.listEvidence(`default/${POOL}`, 10)).toEqual([]);
    expect(opened.length).toBe(2);

    const answer = ask("w-1");
    await until("the work has begun", () => begun.has("w-1"));
    const work = begun.get("w-1");
    const former = work?.stamp?.epoch as Epoch;
    stopped = await pidOf(work?.instance ?? "");
    signal(stopped, "SIGSTOP");
    await killOwner();
    const isNext = ({ stamp }: { readonly stamp: Stamp }) =>
      stamp.workload === work?.stamp?.workload && compareEpochs(stamp.epoch as Epoch, former) > 0;
    await until("its replacement writes", () => opened.some(isNext));
    expect(await answer).toEqual([502, "stale_writer"]);

    work?.goOn();
    signal(stopped, "SIGCONT");
    await until("it brought its result", () => results.length === 1);
    expect(results.map(({ id, outcome }) => [id, outcome])).toEqual([["w-1", "stale_writer"]]);
    // The other one has never noticed.
    const other = before.find(({ holder }) => holder?.instance !== work?.instance);
    expect((await workloads()).map(unrenewed)).toContainEqual(other && unrenewed(other));
    expect(violationsOf(await controllers.history.read())).toEqual([]);
  },
  TIMEOUT_MS,
);

async function workloads(): Promise<readonly Workload[]> {
  return ((await fleet?.rows(POOL))?.workloads ?? []).toSorted((a, b) => a.ordinal - b.ordinal);
}

function unrenewed({ renewals: _, ...rest }: Workload): Omit<Workload, "renewals"> {
  return rest;
}

async function killOwner(): Promise<void> {
  const owner = async () => (await fleet?.owners([POOL]))?.get(POOL) ?? null;
  const victim = (await owner()) ?? "";
  await fleet?.replicas.get(victim)?.signal("SIGKILL");
  await fleet?.until("another one has the pool", async () => ![null, victim].includes(await owner()));
}

async function ask(id: string): Promise<readonly [number, string | null]> {
  const response = await fetch(`${fleet?.gateways[0]?.url}/work?id=${id}`, { method: "POST", headers: { host: `${POOL}.example` } });
  return [response.status, response.headers.get("relevo-rejected")];
}

async function pidOf(instance: string): Promise<number> {
  const record = (await fleet?.rows(POOL))?.instances.find(({ id }) => id === instance);
  return Number(await (await fetch(`http://${record?.incarnation.host}:${record?.incarnation.port}/pid`)).text());
}
