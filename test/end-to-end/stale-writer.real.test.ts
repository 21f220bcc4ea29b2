/**
 * A process that is stopped by SIGSTOP for longer than its writer lease, replaced meanwhile, and continued: what it still brings is refused where it lands,
 * and it stops itself (S10, I1, I2). The control is the same without a lease: the stale result lands. Level: real processes.
 */
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { compareEpochs, type Epoch } from "../../src/kernel/epoch.ts";
import type { Stamp } from "../../src/sdk/index.ts";
import { type Fleet, startFleet } from "./fleet.ts";
import { signal, startLanding, type TestLanding } from "./landing.ts";

let landing: TestLanding | undefined;
let fleet: Fleet | undefined;
let stopped: number | undefined;
afterEach(async () => {
  if (stopped !== undefined) signal(stopped, "SIGCONT");
  stopped = undefined;
  await fleet?.close();
  landing?.close();
});

async function landed(): Promise<TestLanding> {
  landing = await startLanding();
  return landing;
}

/** One piece of work through the gateway that is under way, and the process that does it, stopped. */
async function stoppedAtWork(landing: TestLanding, lease: object | undefined) {
  fleet = await startFleet({
    desired: 2,
    program: join(import.meta.dirname, "careless.mjs"),
    env: { LANDING_URL: landing.url },
    spec: { ...(lease === undefined ? {} : { state: { lease } }), disruption: { mode: "Act", unreachableAfter: "2s" } },
    gracePeriodS: 600,
  });
  const { until, serving } = fleet;
  const gateway = await fleet.gateway();
  await until("both serve", async () => (await serving()).length === 2);
  if (lease !== undefined) await until("both write", () => landing.opened.length === 2);
  const ask = (id: string) => fetch(`${gateway.url}/work?id=${id}`, { method: "POST", headers: { host: "orders" } });

  const answer = ask("w-1").then((response) => [response.status, response.headers.get("relevo-rejected")]);
  await until("the work has begun", () => landing.begun.has("w-1"));
  const work = landing.begun.get("w-1");
  const record = await fleet.instance(work?.instance ?? "");
  const address = `http://${record.incarnation.host}:${record.incarnation.port}`;
  const pid = Number(await (await fetch(`${address}/pid`)).text());
  signal(pid, "SIGSTOP");
  stopped = pid;
  await until("its replacement serves", async () => (await serving()).some(({ replaces }) => replaces === record.id));
  return { fleet, answer, ask, work, record, address, pid };
}

test("stopped for longer than its lease, its results are refused at the gateway and where they land, and it stops itself", async () => {
  const landing = await landed();
  const {
    fleet: { until, controlPlane },
    answer,
    ask,
    work,
    record,
    address,
    pid,
  } = await stoppedAtWork(landing, { ttl: "1s" });

  // Its replacement has taken over, and the landing knows.
  const former = work?.stamp?.epoch as Epoch;
  const isNext = ({ stamp }: { stamp: Stamp }) =>
    stamp.workload === work?.stamp?.workload && compareEpochs(stamp.epoch as Epoch, former) > 0;
  await until("its replacement writes", () => landing.opened.some(isNext));
  const next = landing.opened.find(isNext);
  expect((await fleet?.instance(next?.instance ?? ""))?.replaces).toBe(record.id);
  // The gateway no longer waits for an answer that could only be stale.
  expect(await answer).toEqual([502, "stale_writer"]);
  expect(landing.results).toEqual([]);

  work?.goOn();
  signal(pid, "SIGCONT");

  await until("it brought its result", () => landing.results.length === 1);
  expect(landing.results).toEqual([{ id: "w-1", stamp: work?.stamp, instance: record.id, outcome: "stale_writer" }]);
  // It has noticed by itself, and takes nothing any more.
  const health = await (await fetch(`${address}/relevo/v1/health`)).json();
  expect(health).toMatchObject({ ok: false, reason: expect.stringMatching(/^lease_/) });
  const refused = await fetch(`${address}/work?id=w-2`, { method: "POST" });
  expect([refused.status, refused.headers.get("relevo-not-taken")]).toEqual([503, "1"]);
  await until("it closed itself", async () => (await identityOf(address)).state === "closed");

  // Whoever writes now gets through, and nothing of the former writer ever lands.
  const after = ask("w-3").then(({ status }) => status);
  await until("the next work has begun", () => landing.begun.has("w-3"));
  landing.begun.get("w-3")?.goOn();
  expect(await after).toBe(201);
  expect(landing.results.map(({ id, outcome }) => [id, outcome])).toEqual([
    ["w-1", "stale_writer"],
    ["w-3", "landed"],
  ]);
  const [workload] = (await controlPlane.listWorkloads({ limit: 10 })).filter(({ workload: { ordinal } }) => ordinal === record.ordinal);
  expect(compareEpochs(workload?.workload.minAcceptedEpoch ?? former, former)).toBeGreaterThan(0);
});

test("the control: the same without a lease, and the stale result lands after its replacement took over", async () => {
  const landing = await landed();
  const {
    fleet: { until },
    answer,
    work,
    record,
    pid,
  } = await stoppedAtWork(landing, undefined);
  expect((await answer)[0]).toBeGreaterThanOrEqual(500);
  expect(landing.results).toEqual([]);

  work?.goOn();
  signal(pid, "SIGCONT");

  await until("it brought its result", () => landing.results.length === 1);
  expect(landing.results).toEqual([{ id: "w-1", stamp: null, instance: record.id, outcome: "landed" }]);
});

async function identityOf(address: string): Promise<{ readonly state: string }> {
  return (await fetch(`${address}/relevo/v1/identity`)).json() as Promise<{ readonly state: string }>;
}
