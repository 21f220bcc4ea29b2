import { createServer, type RequestListener, type Server } from "node:http";
import { type AddressInfo, createServer as createTcpServer } from "node:net";
import { afterAll, afterEach, expect, test } from "vitest";
import { instanceContract } from "../../../test/contracts/instance.ts";
import { systemClock } from "../../kernel/system.ts";
import { VirtualClock } from "../../kernel/virtual-clock.ts";
import { createInstance, type RelevoInstance } from "../../sdk/index.ts";
import type { InstanceTarget } from "../port.ts";
import { MAX_ANSWER_BYTES, READ_LIMIT_MS, ServiceDriver } from "./service-driver.ts";

const driver = new ServiceDriver({ clock: systemClock });
afterAll(() => driver.destroy());

const instances: RelevoInstance[] = [];
const servers: Server[] = [];
afterEach(async () => {
  for (const instance of instances.splice(0)) await instance.stop();
  for (const server of servers.splice(0)) server.close().closeAllConnections();
});

instanceContract("the SDK", {
  driver,
  async start() {
    const instance = createInstance({ handler: (_request, response) => response.end("hello"), env: { HOST: "127.0.0.1", PORT: "0" } });
    instances.push(instance);
    return { ...(await instance.listen()), bootId: null, protocol: "relevo/v1", healthPath: "/relevo/v1/health" };
  },
});

async function targetOf(handler: RequestListener, protocol: InstanceTarget["protocol"] = "relevo/v1"): Promise<InstanceTarget> {
  const server = createServer(handler);
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { host: "127.0.0.1", port: (server.address() as AddressInfo).port, bootId: null, protocol, healthPath: "/healthz" };
}

const CALL = { step: "s1", bootId: "b", deadline: null };

test("an instance without the protocol has no identity and no obligations, and calls come to nothing", async () => {
  const target = await targetOf((request, response) => response.writeHead(request.url === "/healthz" ? 204 : 500).end(), "none");

  expect([
    await driver.identity(target),
    await driver.obligations(target),
    await driver.health(target),
    await driver.prepare(target, CALL),
    await driver.admit(target, CALL),
    await driver.drain(target, CALL),
    await driver.close(target, CALL),
  ]).toEqual([
    null,
    null,
    { ok: true, bootId: null, reason: null },
    { kind: "not_spoken" },
    { kind: "not_spoken" },
    { kind: "not_spoken" },
    { kind: "not_spoken" },
  ]);
});

test("without the protocol, another status than 2xx is the reason why it is not well", async () => {
  const target = await targetOf((_request, response) => response.writeHead(503).end(), "none");

  expect(await driver.health(target)).toEqual({ ok: false, bootId: null, reason: "status_503" });
});

test("where nothing listens nothing can have happened: retryable", async () => {
  const target = await targetOf(() => undefined);
  servers[0]?.close();

  await expect(driver.admit(target, CALL)).rejects.toMatchObject({
    code: "instance_unreachable",
    class: "retryable",
    found: "ECONNREFUSED",
  });
});

test("a connection that is lost before the answer leaves open what happened: retryable with the same step", async () => {
  const target = await targetOf((request) => request.socket.destroy());

  await expect(driver.admit(target, CALL)).rejects.toMatchObject({ code: "instance_connection_lost", class: "retryable" });
});

test.each([
  ["says nothing", (): void => undefined],
  ["trickles its answer", (_request: unknown, response: Parameters<RequestListener>[1]): void => void response.write("{")],
])("an instance that %s is given up after the limit", async (_what, handler) => {
  const clock = new VirtualClock();
  const impatient = new ServiceDriver({ clock });
  const arrived = Promise.withResolvers<void>();
  const target = await targetOf((request, response) => {
    handler(request, response);
    arrived.resolve();
  });
  const reading = impatient.identity(target);
  reading.catch(() => undefined); // judged below
  await arrived.promise;

  await clock.advance(READ_LIMIT_MS - 1);
  expect(clock.pendingTimers).toBe(1);
  await clock.advance(1);

  await expect(reading).rejects.toMatchObject({ code: "instance_timeout", class: "retryable" });
  await impatient.destroy();
});

test("the obligations of another process are not taken for those of the one that is meant", async () => {
  const target = await targetOf((_request, response) => response.end('{"bootId":"b2","requests":0,"upgraded":0,"transactions":0}'));

  expect(await driver.obligations(target)).toEqual({ bootId: "b2", requests: 0, upgraded: 0, transactions: 0 });
  await expect(driver.obligations({ ...target, bootId: "b1" })).rejects.toMatchObject({
    code: "boot_id_mismatch",
    class: "conflict",
    found: "b2",
  });
});

const answers: [string, RequestListener, string, string][] = [
  ["fails", (_request, response) => response.writeHead(500).end("oops"), "instance_failed", "retryable"],
  ["refuses", (_request, response) => response.writeHead(403).end(), "instance_refused", "terminal"],
  ["answers no JSON", (_request, response) => response.end("<html>"), "instance_answer_invalid", "terminal"],
  ["answers another shape", (_request, response) => response.end('{"bootId":1}'), "instance_answer_invalid", "terminal"],
  [
    "answers for another step",
    (_request, response) => response.end('{"bootId":"b","step":"s0","state":"admitted"}'),
    "instance_answer_invalid",
    "terminal",
  ],
  [
    "gives a conflict that the protocol does not know",
    (_request, response) => response.writeHead(409).end('{"error":{"code":"mood","message":"no"}}'),
    "instance_refused",
    "terminal",
  ],
  ["answers without end", (_request, response) => response.end("x".repeat(MAX_ANSWER_BYTES + 1)), "instance_answer_invalid", "terminal"],
];
test.each(answers)("an instance that %s", async (_what, handler, code, errorClass) => {
  const target = await targetOf(handler);

  await expect(driver.admit(target, CALL)).rejects.toMatchObject({ code, class: errorClass });
});

test("what does not speak HTTP is told apart from what is away", async () => {
  const server = createTcpServer((socket) => socket.once("data", () => socket.end("SSH-2.0-OpenSSH_9.2\r\n"))).listen(0, "127.0.0.1");
  const { port } = await new Promise<AddressInfo>((resolve) => server.on("listening", () => resolve(server.address() as AddressInfo)));
  const target: InstanceTarget = { host: "127.0.0.1", port, bootId: null, protocol: "relevo/v1", healthPath: "/" };

  await expect(driver.identity(target)).rejects.toMatchObject({ code: "instance_answer_invalid", class: "terminal" });
  server.close();
});

test("an admission brings the access to a writer lease along; without one there is no such field", async () => {
  const bodies: unknown[] = [];
  const target = await targetOf(async (request, response) => {
    let text = "";
    for await (const chunk of request) text += chunk;
    bodies.push(JSON.parse(text));
    response.end(JSON.stringify({ bootId: "b", step: "s1", state: "admitted" }));
  });
  const lease = { url: "http://127.0.0.1:1/v1/leases/renew", token: "t", pool: "default/orders", instance: "orders-1", ttlMs: 10_000 };

  await driver.admit(target, { ...CALL, lease });
  await driver.admit(target, CALL);

  expect(bodies).toEqual([
    { bootId: "b", deadline: null, lease },
    { bootId: "b", deadline: null },
  ]);
});
