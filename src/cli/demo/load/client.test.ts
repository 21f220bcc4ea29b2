import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterEach, beforeEach, expect, test } from "vitest";
import { systemClock, systemIds, systemRandom } from "../../../kernel/system.ts";
import { LoadClient, type LoadOptions } from "./client.ts";
import { Ledger } from "./ledger.ts";
import { type LedgerServer, serveLedger } from "./ledger-server.ts";
import type { Mix } from "./mix.ts";
import { REQUEST_KINDS } from "./outcome.ts";

const ORDERS = join(import.meta.dirname, "../../../../examples/orders/orders.mjs");

const SHORT_MIX: Mix = {
  perSecond: { order: 0, charge: 0, export: 0, live: 0, tx: 0 },
  exportSeconds: [0.4, 0.8],
  liveSeconds: [0.4, 0.8],
  txSeconds: [0.4, 0.8],
  stepMs: 100,
  http2Share: 0,
};
/** Nothing ends by itself before the test has killed the process. */
const LONG_MIX: Mix = { ...SHORT_MIX, exportSeconds: [30, 30], liveSeconds: [30, 30], txSeconds: [30, 30] };

let folder: string;
let ledger: Ledger;
let server: LedgerServer;
let orders: ChildProcess;
let url: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "load-"));
  ledger = await Ledger.open(join(folder, "ledger"));
  server = await serveLedger(ledger);
  orders = spawn(process.execPath, [ORDERS], {
    env: { ...process.env, HOST: "127.0.0.1", PORT: "0", LEDGER_URL: server.url },
    stdio: ["ignore", "pipe", "inherit"],
  });
  url = await announcedUrl(orders);
});
afterEach(async () => {
  orders.kill("SIGKILL");
  await server.close();
  await ledger.close();
  await rm(folder, { recursive: true });
});

async function announcedUrl(child: ChildProcess): Promise<string> {
  if (child.stdout === null) throw new Error("orders has no stdout");
  for await (const line of createInterface({ input: child.stdout })) {
    const { host, port } = JSON.parse(line) as { readonly host: string; readonly port: number };
    return `http://${host}:${port}`;
  }
  throw new Error("orders ended before it served");
}

function clientOf(mix: Mix, changes: Partial<LoadOptions> = {}): LoadClient {
  const options = { url, http2Url: null, ledgerUrl: server.url, mix, ...changes };
  return new LoadClient(options, { clock: systemClock, random: systemRandom, ids: systemIds });
}

test("undisturbed, every kind of request completes, and the ledger has all that was acknowledged (D19)", async () => {
  const client = clientOf(SHORT_MIX);
  client.startAct("undisturbed");
  for (const kind of REQUEST_KINDS) for (let i = 0; i < 20; i++) client.begin(kind);
  const { result, traces } = await client.endAct("undisturbed");
  await client.stop();

  expect(result).toMatchObject({
    sent: 100,
    completed: 100,
    queued: 0,
    rejected: 0,
    cut: 0,
    lost: 0,
    retried: 0,
    doubled: 0,
    problems: [],
  });
  expect(Object.values(result.byKind).map((kind) => kind.completed)).toEqual([20, 20, 20, 20, 20]);
  expect(result.p99Ms).toBeGreaterThan(0);
  expect(traces.length).toBe(100);
});

test("control: when the process is killed under them, each long request is cut and what comes after is lost (D19)", async () => {
  const client = clientOf(LONG_MIX);
  client.startAct("killed");
  for (const kind of ["export", "live", "tx"] as const) for (let i = 0; i < 5; i++) client.begin(kind);
  // Each session has an acknowledged message and each transaction an item; the streams have begun as well.
  await expect.poll(() => obligations()).toEqual({ requests: 5, upgraded: 5, transactions: 5 });
  await expect.poll(() => ledger.counts().ids).toBeGreaterThanOrEqual(5);
  orders.kill("SIGKILL");
  await new Promise((resolve) => orders.once("exit", resolve));
  for (const kind of ["order", "charge"] as const) client.begin(kind);
  const { result } = await client.endAct("killed");
  await client.stop();

  expect(result).toMatchObject({ sent: 17, completed: 0, rejected: 0, cut: 15, lost: 2 });
});

test("a WebSocket that is closed at a deadline, with all acknowledged, completes (S4)", async () => {
  const client = clientOf(LONG_MIX);
  client.startAct("deadline");
  for (let i = 0; i < 10; i++) client.begin("live");
  await expect.poll(async () => (await obligations()).upgraded).toBe(10);
  const { bootId } = (await (await fetch(`${url}/relevo/v1/identity`)).json()) as { readonly bootId: string };
  const deadline = new Date(systemClock.now() + 2_300).toISOString();
  await fetch(`${url}/relevo/v1/drain`, {
    method: "POST",
    headers: { "idempotency-key": "s1" },
    body: JSON.stringify({ bootId, deadline }),
  });
  const { result } = await client.endAct("deadline");
  await client.stop();

  expect(result).toMatchObject({ sent: 10, completed: 10, cut: 0, lost: 0 });
});

test("an id that was acknowledged and is not in the ledger is lost", async () => {
  const other = await Ledger.open(join(folder, "other"));
  const elsewhere = await serveLedger(other);
  const client = clientOf(SHORT_MIX, { ledgerUrl: elsewhere.url });
  client.startAct("wrong ledger");
  for (let i = 0; i < 3; i++) client.begin("order");
  const { result } = await client.endAct("wrong ledger");
  await client.stop();
  await elsewhere.close();
  await other.close();

  expect(result).toMatchObject({ sent: 3, completed: 0, lost: 3 });
});

test("a request belongs to the act in which it began; those between acts to none", async () => {
  const client = clientOf(SHORT_MIX);
  client.begin("order");
  client.startAct("first");
  expect(() => client.startAct("second")).toThrow(expect.objectContaining({ code: "act_running" }));
  client.begin("tx");
  const first = client.endAct("first");
  client.begin("order");
  client.startAct("second");
  client.begin("order");
  client.begin("order");
  const second = client.endAct("second");

  expect([(await first).result.sent, (await second).result.sent]).toEqual([1, 2]);
  await expect(client.endAct("first")).rejects.toMatchObject({ code: "no_act" });
  await client.stop();
});

async function obligations(): Promise<{ readonly requests: number; readonly upgraded: number; readonly transactions: number }> {
  const { bootId: _, ...counts } = (await (await fetch(`${url}/relevo/v1/obligations`)).json()) as {
    readonly bootId: string;
    readonly requests: number;
    readonly upgraded: number;
    readonly transactions: number;
  };
  return counts;
}
