/** The driver against a real cluster of three processes; the tests follow one another on the same one. Needs tools/peers/trino.sh fetch. */
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { InstanceTarget, MemberTarget } from "../../src/drivers/port.ts";
import { engineAt } from "../../src/drivers/trino/engine.ts";
import { type Statement, StatementClient } from "../../src/drivers/trino/statement-client.ts";
import { TrinoDriver } from "../../src/drivers/trino/trino-driver.ts";
import { workerAt } from "../../src/drivers/trino/worker.ts";
import { systemClock } from "../../src/kernel/system.ts";
import { startTrino, TRINO_USER, type TrinoCluster, type TrinoNode } from "./server.ts";

const SOON = { timeout: 120_000, interval: 250 };
/** Ends only when it is cancelled. */
const ENDLESS = "SELECT count(*), sum(x * 7 % 11) FROM TABLE(sequence(1, 30000000000)) AS t(x)";
/** Longer than a worker waits before it looks at its tasks. */
const LONG = "SELECT count(*), sum(x % 7), sum(x * 7 % 11) FROM TABLE(sequence(1, 400000000)) AS t(x)";
const MANY = 400_000_000;

const driver = new TrinoDriver({ clock: systemClock });
const exchange = mkdtempSync(join(tmpdir(), "relevo-exchange-"));
const clients: StatementClient[] = [];
let cluster: TrinoCluster;
let bootId: string;

beforeAll(async () => {
  cluster = await startTrino({ exchange: { folder: exchange } });
  bootId = (await driver.identity(target())).bootId;
});

afterAll(async () => {
  for (const client of clients) await client.close();
  await driver.destroy();
  await cluster?.stop();
  rmSync(exchange, { recursive: true, force: true });
});

interface Declared {
  readonly workers?: number;
  readonly members?: readonly TrinoNode[];
  readonly boot?: string | null;
}

function target({ workers = 2, members = [], boot = null }: Declared = {}): InstanceTarget {
  const { host, port } = cluster.coordinator;
  const trino = { user: TRINO_USER, workers, members };
  return { host, port, bootId: boot, protocol: "trino/v1", healthPath: "/v1/info/coordinator", trino };
}

function memberOf({ host, port }: TrinoNode): MemberTarget {
  return { host, port, trino: { user: TRINO_USER, workers: 0 } };
}

function worker(index: number): TrinoNode {
  const found = cluster.workers[index];
  if (found === undefined) throw new Error(`no worker ${index}`);
  return found;
}

function ann(session: Readonly<Record<string, string>> = {}): StatementClient {
  const client = new StatementClient({ base: cluster.coordinator.base, user: "ann", source: "test", clock: systemClock, session });
  clients.push(client);
  return client;
}

/** A statement that nobody polls is not begun: it is followed until the engine runs it. */
async function running(sql: string): Promise<Statement> {
  const statement = await ann().start(sql);
  for (let state = ""; state !== "RUNNING"; ) {
    const page = await statement.next();
    if (page?.nextUri === undefined) throw new Error(`it ended: ${page?.error?.message}`);
    ({ state } = page);
  }
  return statement;
}

const call = (step = "s1") => ({ step, bootId, deadline: null });
const unfinished = async () => {
  const { requests, transactions } = await driver.obligations(target({ boot: bootId }));
  return { requests, transactions };
};

test("a cluster says which process it is, and is well", async () => {
  expect(bootId).toMatch(/^c\/[a-z0-9]{5}$/);
  expect(await driver.identity(target())).toMatchObject({ protocol: "trino/v1", instance: "c", state: "ready" });
  expect(await driver.health(target())).toEqual({ ok: true, bootId, reason: null });
});

test("it is prepared when a task ran on each declared worker, and not while one is missing (D7, T12)", async () => {
  expect(await driver.prepare(target(), call())).toEqual({ kind: "answered", answer: { bootId, step: "s1", state: "ready" } });
  await expect(driver.prepare(target({ workers: 3 }), call())).rejects.toMatchObject({ code: "trino_workers_missing", class: "retryable" });
});

test("the probe names each worker with fault tolerance as well (T12)", async () => {
  const client = ann({ retry_policy: "TASK" });
  const { queryId, rows, error } = await client.query("SELECT DISTINCT node_id, query_id FROM system.runtime.tasks");

  expect(error).toBeUndefined();
  const own = rows.filter(([, query]) => query === queryId).map(([node]) => node);
  expect(own).toEqual(expect.arrayContaining(["w1", "w2"]));
});

test("a running query and an open transaction are its obligations, and none is left when they have ended", async () => {
  expect(await unfinished()).toEqual({ requests: 0, transactions: 0 });

  const endless = await running(ENDLESS);
  await expect.poll(unfinished, SOON).toEqual({ requests: 1, transactions: 0 });
  await endless.cancel();
  await expect.poll(unfinished, SOON).toEqual({ requests: 0, transactions: 0 });

  const client = ann();
  await client.query("START TRANSACTION");
  await expect.poll(unfinished, SOON).toEqual({ requests: 0, transactions: 1 });
  expect((await client.query("SELECT count(*) FROM tpch.tiny.nation")).rows).toEqual([[25]]);
  expect((await client.query("COMMIT")).error).toBeUndefined();
  await expect.poll(unfinished, SOON).toEqual({ requests: 0, transactions: 0 });
});

test("of many queued queries no list is needed, and what failed by itself is not unfinished", async () => {
  expect((await ann().query("SELECT 1 / 0")).error?.name).toBe("DIVISION_BY_ZERO");
  await expect.poll(unfinished, SOON).toEqual({ requests: 0, transactions: 0 });
  const engine = engineAt({ base: cluster.coordinator.base, user: TRINO_USER, clock: systemClock });
  expect((await engine.queries()).find(({ sql }) => sql === "SELECT 1 / 0")).toMatchObject({
    state: "FAILED",
    user: "ann",
    source: "test",
  });
});

test("a worker of another environment is named; without permission on itself it cannot be drained, and the error says what to configure", async () => {
  const stranger = await cluster.addWorker({ environment: "other", mayShutDown: false, launcher: true });
  const own = workerAt({ base: stranger.base, user: TRINO_USER, clock: systemClock });
  await expect
    .poll(
      () =>
        own.info().then(
          ({ isStarting }) => isStarting,
          () => true,
        ),
      SOON,
    )
    .toBe(false);

  await expect(driver.prepare(target({ workers: 3, members: cluster.workers }), call())).rejects.toMatchObject({
    code: "trino_wrong_environment",
    allowed: "environment test, version 483",
  });
  expect(await own.maySetState()).toBe(false);
  expect(await workerAt({ base: worker(0).base, user: TRINO_USER, clock: systemClock }).maySetState()).toBe(true);
  await expect(driver.drainMember(memberOf(stranger), "reversible")).rejects.toMatchObject({
    code: "trino_shutdown_forbidden",
    class: "terminal",
  });
  expect(await driver.memberState(memberOf(stranger))).toBe("active");

  await stranger.kill();
  expect(existsSync(join(stranger.folder, "var/run/launcher.pid"))).toBe(true);
  expect(await driver.memberState(memberOf(stranger))).toBe("gone");
});

test("a drained worker is taken back; meanwhile the cluster is well and not prepared", async () => {
  const member = memberOf(worker(0));
  await driver.drainMember(member, "reversible");
  await expect.poll(() => driver.memberState(member), SOON).toBe("drained");
  await expect
    .poll(
      () =>
        driver.prepare(target(), call()).then(
          () => "prepared",
          (error: { code: string }) => error.code,
        ),
      SOON,
    )
    .toBe("trino_workers_missing");
  expect(await driver.health(target())).toMatchObject({ ok: true });

  await driver.resumeMember(member);
  expect(await driver.memberState(member)).toBe("active");
  await expect
    .poll(
      () =>
        driver.prepare(target(), call()).then(
          ({ kind }) => kind,
          () => "not yet",
        ),
      SOON,
    )
    .toBe("answered");
});

test("a worker that shuts down finishes what it has, and is gone then", async () => {
  const member = memberOf(worker(1));
  const long = ann().query(LONG);
  await expect.poll(unfinished, SOON).toEqual({ requests: 1, transactions: 0 });
  await driver.drainMember(member, "final");

  await expect(driver.resumeMember(member)).rejects.toMatchObject({ code: "wrong_state" });
  const { rows, error } = await long;
  expect(error).toBeUndefined();
  expect(rows[0]?.[0]).toBe(MANY);
  await worker(1).ended();
  expect(await driver.memberState(member)).toBe("gone");
});

test("without any worker it is not well", async () => {
  await worker(0).kill();
  const at = systemClock.monotonic();
  await expect.poll(() => driver.health(target()), SOON).toEqual({ ok: false, bootId, reason: "no_active_worker" });
  process.stderr.write(`the coordinator noticed after ${Math.round(systemClock.monotonic() - at)} ms\n`);
});

test("a coordinator started anew at the same address is another process, and lost queries are told (D13)", async () => {
  worker(0).begin();
  await cluster.untilActive(1);
  const lost = await running(ENDLESS);
  await cluster.coordinator.kill();
  cluster.coordinator.begin();
  await cluster.untilActive(1);

  const identity = await driver.identity(target());
  expect(identity.bootId).not.toBe(bootId);
  const mismatch = { code: "boot_id_mismatch", class: "conflict", found: identity.bootId, allowed: bootId };
  await expect(driver.obligations(target({ boot: bootId }))).rejects.toMatchObject(mismatch);
  await expect(driver.admit(target(), call())).rejects.toMatchObject(mismatch);
  await expect(lost.next()).rejects.toMatchObject({ code: "trino_query_gone" });
});
