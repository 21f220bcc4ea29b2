/** The example as processes: one writer at a time, and what is stale does not land (S10). */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { expect, onTestFinished, test } from "vitest";

interface Answer {
  readonly status: number;
  readonly body: unknown;
}

/** Starts a program of this folder; settles with the port in its first line. */
async function start(program: string, env: Record<string, string>): Promise<{ readonly url: string; readonly child: ChildProcess }> {
  const child = spawn(process.execPath, [join(import.meta.dirname, program)], {
    env: { ...process.env, PORT: "0", HOST: "127.0.0.1", ...env },
    stdio: ["ignore", "pipe", "inherit"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  for await (const line of createInterface({ input: child.stdout })) {
    const { port } = JSON.parse(line) as { readonly port: number };
    return { url: `http://127.0.0.1:${port}`, child };
  }
  throw new Error(`${program} ended`);
}

async function post(url: string, body: unknown, headers: Record<string, string> = {}): Promise<Answer> {
  const answer = await fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
  return { status: answer.status, body: await answer.json() };
}

/** A controller that answers renewals as the test says. */
async function startController() {
  const controller: { status: number; answer: unknown } = { status: 200, answer: null };
  const server = createServer((request, response) => {
    request.resume().on("end", () => response.writeHead(controller.status).end(JSON.stringify(controller.answer)));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  return { controller, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/leases/renew` };
}

const granted = (writerEpoch: string) => ({ pool: "default/accounts", ordinal: 0, writerEpoch, ttlMs: 300 });

test("deposits land under the epoch of their writer; a fenced writer stops, and an older one's do not land", async () => {
  const dir = await mkdtemp(join(tmpdir(), "accounts-"));
  onTestFinished(() => rm(dir, { recursive: true, force: true }));
  const landing = await start("landing.mjs", { DATABASE: join(dir, "accounts.db") });
  const { controller, url: leaseUrl } = await startController();
  controller.answer = granted("1.4");
  const accounts = await start("accounts.mjs", { LANDING_URL: landing.url, RELEVO_INSTANCE: "accounts-1" });
  const { bootId } = (await (await fetch(`${accounts.url}/relevo/v1/identity`)).json()) as { readonly bootId: string };
  const lease = { url: leaseUrl, token: "t", pool: "default/accounts", instance: "accounts-1", ttlMs: 300 };
  await post(`${accounts.url}/relevo/v1/admit`, { bootId, lease }, { "idempotency-key": "step-1" });

  expect(await post(`${accounts.url}/deposits`, { id: "d-1", account: "alice", cents: 500 })).toEqual({
    status: 201,
    body: { id: "d-1", cents: 500, deposits: 1 },
  });

  // Its successor has begun.
  const next = { workload: "default/accounts#0", epoch: "1.5" };
  expect(await post(`${landing.url}/open`, { stamp: next })).toEqual({ status: 200, body: { opened: true } });
  const stale = { id: "d-2", account: "alice", cents: 500, stamp: { ...next, epoch: "1.4" } };
  expect(await post(`${landing.url}/deposits`, stale)).toMatchObject({ status: 409, body: { error: { code: "stale_writer" } } });
  expect(await post(`${accounts.url}/deposits`, { id: "d-3", account: "alice", cents: 500 })).toMatchObject({ status: 503 });
  const health = async () => (await fetch(`${accounts.url}/relevo/v1/health`)).json();
  expect(await health()).toMatchObject({ ok: false, reason: "stale_writer: a landing says that there is a newer writer" });
  expect(await (await fetch(`${landing.url}/accounts/alice`)).json()).toEqual({ cents: 500, deposits: 1 });
});

test("without a lease it refuses to write, and without protection everything lands", async () => {
  const dir = await mkdtemp(join(tmpdir(), "accounts-"));
  onTestFinished(() => rm(dir, { recursive: true, force: true }));
  const landing = await start("landing.mjs", { DATABASE: join(dir, "accounts.db") });
  const [refusing, unfenced] = await Promise.all([
    start("accounts.mjs", { LANDING_URL: landing.url }),
    start("accounts.mjs", { LANDING_URL: landing.url, UNFENCED: "1" }),
  ]);

  expect(await post(`${refusing.url}/deposits`, { id: "d-1", account: "bob", cents: 1 })).toMatchObject({
    status: 503,
    body: { error: { code: "writer_lease_missing" } },
  });
  expect(await post(`${unfenced.url}/deposits`, { id: "d-2", account: "bob", cents: 2 })).toMatchObject({
    status: 201,
    body: { cents: 2 },
  });
});
