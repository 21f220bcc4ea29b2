/** Real processes of `orders` behind the gateway, under the demo's own load; the controller's part is played by the test. Level: real processes. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterEach, beforeEach, expect, test } from "vitest";
import { LoadClient } from "../../src/cli/demo/load/client.ts";
import { Ledger } from "../../src/cli/demo/load/ledger.ts";
import { type LedgerServer, serveLedger } from "../../src/cli/demo/load/ledger-server.ts";
import type { Mix } from "../../src/cli/demo/load/mix.ts";
import type { InstanceTarget } from "../../src/drivers/port.ts";
import { ServiceDriver } from "../../src/drivers/service/service-driver.ts";
import { type Gateway, startGateway } from "../../src/gateway/server.ts";
import { epoch } from "../../src/kernel/epoch.ts";
import { systemClock, systemIds, systemRandom } from "../../src/kernel/system.ts";
import type { Member, RoutePolicy } from "../../src/model/membership.ts";

const ORDERS = join(import.meta.dirname, "../../examples/orders/orders.mjs");
const POLICY: RoutePolicy = {
  hosts: [],
  retry: "idempotent",
  tries: 3,
  perTryTimeoutMs: 2_000,
  queueLimit: 500,
  queueWaitMs: 5_000,
  priority: "standard",
  slowStartMs: 0,
  concurrency: 256,
  healthPath: "/relevo/v1/health",
  healthEveryMs: 200,
  trino: null,
};
const MIX: Mix = {
  perSecond: { order: 40, charge: 20, export: 4, live: 4, tx: 4 },
  exportSeconds: [0.5, 1.5],
  liveSeconds: [0.5, 1.5],
  txSeconds: [0.5, 1.5],
  stepMs: 100,
  http2Share: 0.4,
};
const LOSSLESS = { queued: 0, rejected: 0, cut: 0, lost: 0, doubled: 0, problems: [] };

interface Running {
  readonly name: string;
  readonly child: ChildProcess;
  readonly target: InstanceTarget;
  readonly bootId: string;
}

let folder: string;
let ledger: Ledger;
let ledgerServer: LedgerServer;
let gateway: Gateway;
let driver: ServiceDriver;
let load: LoadClient;
let instances: Running[];
let generation: number;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "gateway-"));
  ledger = await Ledger.open(join(folder, "ledger"));
  ledgerServer = await serveLedger(ledger);
  driver = new ServiceDriver({ clock: systemClock });
  const log = { debug() {}, info() {}, warn() {}, error() {} };
  const ports = { clock: systemClock, ids: systemIds, random: systemRandom };
  gateway = await startGateway({
    host: "127.0.0.1",
    port: 0,
    controllerUrl: null,
    tokenKeys: [{ id: "k1", secret: "0123456789abcdef" }],
    log,
    ...ports,
  });
  instances = [];
  generation = 1;
  await Promise.all([startOrders("orders-a"), startOrders("orders-b")]);
  route(instances.map((instance) => memberOf(instance)));
  await expect.poll(() => gateway.report().routes[0]?.members.every((member) => member.health === "passing")).toBe(true);
  load = new LoadClient({ url: gateway.url, http2Url: gateway.url, ledgerUrl: ledgerServer.url, mix: MIX }, ports);
  load.start();
});
afterEach(async () => {
  await load.stop();
  await gateway.close({ graceMs: 0 });
  for (const { child } of instances) child.kill("SIGKILL");
  await driver.destroy();
  await ledgerServer.close();
  await ledger.close();
  await rm(folder, { recursive: true });
});

async function startOrders(name: string): Promise<Running> {
  const env = { ...process.env, HOST: "127.0.0.1", PORT: "0", LEDGER_URL: ledgerServer.url, RELEVO_INSTANCE: name };
  const child = spawn(process.execPath, [ORDERS], { env, stdio: ["ignore", "pipe", "inherit"] });
  if (child.stdout === null) throw new Error("orders has no stdout");
  const line = await new Promise<string>((resolve) =>
    createInterface({ input: child.stdout as NodeJS.ReadableStream }).once("line", resolve),
  );
  const { host, port, bootId } = JSON.parse(line) as { readonly host: string; readonly port: number; readonly bootId: string };
  const running: Running = { name, child, bootId, target: { host, port, bootId, protocol: "relevo/v1", healthPath: "/relevo/v1/health" } };
  instances.push(running);
  await driver.admit(running.target, { step: `admit-${name}`, bootId, deadline: null });
  return running;
}

function memberOf({ name, bootId, target }: Running, state: Member["state"] = "serving", deadline: number | null = null): Member {
  return { instance: name, incarnation: 1, bootId, host: target.host, port: target.port, state, deadline, writer: null };
}

function route(members: Member[]): void {
  gateway.apply({
    type: "membership",
    complete: true,
    ttlMs: 600_000,
    routes: [{ route: "orders", generation: epoch(1, generation++), policy: POLICY, members }],
  });
}

function reportOf(name: string): { readonly requests: number; readonly sessions: number; readonly upgraded: number } {
  const found = gateway.report().routes[0]?.members.find((member) => member.instance === name);
  return { requests: found?.requests ?? 0, sessions: found?.sessions ?? 0, upgraded: found?.upgraded ?? 0 };
}

function pair(): readonly [Running, Running] {
  const [first, second] = instances;
  if (first === undefined || second === undefined) throw new Error("two instances were started");
  return [first, second];
}

test("a drain that waits for every obligation loses nothing, and the instance's own count agrees with the gateway's (D5, D19)", async () => {
  const [leaving, staying] = pair();
  load.startAct("voluntary");
  await expect
    .poll(() => reportOf(leaving.name), { timeout: 10_000 })
    .toMatchObject({ sessions: expect.toSatisfy((count: number) => count > 0) });

  route([memberOf(leaving, "draining"), memberOf(staying)]);
  await driver.drain(leaving.target, { step: "drain-1", bootId: leaving.bootId, deadline: null });
  await expect.poll(() => reportOf(leaving.name), { timeout: 10_000 }).toEqual({ requests: 0, sessions: 0, upgraded: 0 });
  expect(await driver.obligations(leaving.target)).toEqual({ bootId: leaving.bootId, requests: 0, upgraded: 0, transactions: 0 });
  route([memberOf(leaving, "sealed"), memberOf(staying)]);
  await driver.close(leaving.target, { step: "close-1", bootId: leaving.bootId, deadline: null });
  leaving.child.kill("SIGTERM");
  const [code] = await new Promise<[number | null]>((resolve) => leaving.child.once("exit", (status) => resolve([status])));
  const { result } = await load.endAct("voluntary");

  expect(code).toBe(0);
  expect(result).toMatchObject(LOSSLESS);
  expect(result.completed).toBeGreaterThan(20);
});

test("at a deadline that sessions outlive they are closed with 1012 in time, and the kill at the deadline takes nothing (S4, D19)", async () => {
  const [leaving, staying] = pair();
  load.startAct("deadline", { ...MIX, liveSeconds: [60, 60] });
  await expect.poll(() => reportOf(leaving.name).upgraded, { timeout: 10_000 }).toBeGreaterThan(0);

  const deadline = systemClock.now() + 4_000;
  route([memberOf(leaving, "draining", deadline), memberOf(staying)]);
  await driver.drain(leaving.target, { step: "drain-1", bootId: leaving.bootId, deadline });
  await expect.poll(() => reportOf(leaving.name), { timeout: 10_000 }).toEqual({ requests: 0, sessions: 0, upgraded: 0 });
  expect(systemClock.now()).toBeLessThan(deadline);
  leaving.child.kill("SIGKILL");
  route([memberOf(staying)]);
  const ended = load.endAct("deadline");
  // The act's sessions on the other instance would last a minute: they are ended in the same way.
  await driver.drain(staying.target, { step: "drain-2", bootId: staying.bootId, deadline: systemClock.now() + 2_000 });
  const { result } = await ended;

  expect(result).toMatchObject(LOSSLESS);
  expect(result.byKind.live.completed).toBeGreaterThan(0);
});

test("control: a kill without a drain cuts what is under way, and the counts say so (D18, D19)", async () => {
  const [dying, staying] = pair();
  load.startAct("forced");
  await expect.poll(() => reportOf(dying.name).upgraded + reportOf(dying.name).sessions, { timeout: 10_000 }).toBeGreaterThan(1);

  dying.child.kill("SIGKILL");
  await expect.poll(() => load.snapshot().outcomes.cut, { timeout: 10_000 }).toBeGreaterThan(0);
  route([memberOf(staying)]);
  const { result } = await load.endAct("forced");

  expect(result.cut).toBeGreaterThan(0);
  expect(result).toMatchObject({ lost: 0, doubled: 0 });
  expect(result.byKind.order).toMatchObject({ rejected: 0, cut: 0, lost: 0 });
});
