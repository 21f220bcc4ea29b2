import { expect, test } from "vitest";
import { WebSocket, WebSocketServer } from "ws";
import type { InstanceOptions } from "./index.ts";
import { type Started, start } from "./test-kit.ts";

interface Live extends Started {
  /** Lets the server acknowledge what it received. */
  readonly acknowledge: () => void;
}

/** A server whose messages are acknowledged when the test says so. */
async function startLive(options: Partial<InstanceOptions> = {}): Promise<Live> {
  const wss = new WebSocketServer({ noServer: true });
  const acknowledged = Promise.withResolvers<void>();
  const started: Started = await start({
    onUpgrade: (request, socket, head) =>
      wss.handleUpgrade(request, socket, head, (ws) => {
        const pending: Promise<void>[] = [];
        ws.on("message", (data) => pending.push(acknowledged.promise.then(() => ws.send(`ack ${String(data)}`))));
        started.instance.registerWebSocket(socket, ws, { beforeClose: async () => void (await Promise.all(pending)) });
      }),
    ...options,
  });
  return { ...started, acknowledge: () => acknowledged.resolve() };
}

interface Peer {
  readonly ws: WebSocket;
  readonly log: string[];
}

async function connectTo({ base, instance }: Started): Promise<Peer> {
  const before = instance.obligations().upgraded;
  const ws = new WebSocket(base.replace("http", "ws"));
  const log: string[] = [];
  ws.on("message", (data) => log.push(String(data)));
  ws.on("close", (code) => log.push(`closed ${code}`));
  await new Promise((resolve, reject) => ws.once("open", resolve).once("error", reject));
  expect(instance.obligations().upgraded).toBe(before + 1);
  return { ws, log };
}

/** A pong comes back once all that was sent before the ping has arrived. */
async function arrived(ws: WebSocket): Promise<void> {
  const pong = new Promise<void>((resolve) => ws.once("pong", () => resolve()));
  ws.ping();
  await pong;
}

test("a WebSocket that outlives a drain's deadline is closed with 1012 shortly before, after its messages were acknowledged (S4)", async () => {
  const live = await startLive();
  const { ws, log } = await connectTo(live);
  ws.send("m1");
  await arrived(ws);

  await live.instance.perform("drain", "step-1", live.clock.now() + 20_000);
  await live.clock.advance(17_999);
  expect(log).toEqual([]);
  await live.clock.advance(1);
  live.acknowledge();
  await expect.poll(() => log).toEqual(["ack m1", "closed 1012"]);
  expect(live.instance.obligations().upgraded).toBe(0);
  expect(live.reports).toEqual([]);
});

test("a drain without a deadline closes nothing (D5)", async () => {
  const live = await startLive();
  const { ws, log } = await connectTo(live);

  await live.instance.perform("drain", "step-1", null);
  await live.clock.advance(7 * 24 * 3_600_000);
  expect([log, live.instance.obligations().upgraded]).toEqual([[], 1]);

  ws.close(1000);
  await live.instance.whenIdle();
});

test("a later drain brings the deadline forward and never moves it back", async () => {
  const { instance, clock } = await start();
  const now = clock.now();
  const seen: (number | null)[] = [];
  for (const deadline of [null, now + 60_000, now + 120_000, now + 20_000, null]) {
    await instance.perform("drain", "step", deadline);
    seen.push(instance.deadline === null ? null : instance.deadline - now);
  }

  expect(seen).toEqual([null, 60_000, 60_000, 20_000, 20_000]);
});

test("messages that are never acknowledged do not hold the close up beyond half of the margin", async () => {
  const live = await startLive({ closeMarginMs: 1_000 });
  const { ws, log } = await connectTo(live);
  ws.send("m1");
  await arrived(ws);
  await live.instance.perform("drain", "step-1", live.clock.now() + 5_000);

  await live.clock.advance(4_500);

  await expect.poll(() => log).toEqual(["closed 1012"]);
  expect(live.reports).toEqual(["beforeClose took longer than 500 ms; the connection is closed all the same"]);
});

test("a peer that does not answer the close is cut before the deadline", async () => {
  const live = await startLive();
  const { ws, log } = await connectTo(live);
  ws.pause(); // it reads no close frame, so it never answers
  await live.instance.perform("drain", "step-1", live.clock.now() + 5_000);

  await live.clock.advance(3_000);
  expect(live.instance.obligations().upgraded).toBe(1);
  await live.clock.advance(500);
  await expect.poll(() => live.instance.obligations().upgraded).toBe(0);
  ws.resume();
  await expect.poll(() => log.length).toBe(1);
});

test("a WebSocket that was never registered gets the close frame all the same", async () => {
  const wss = new WebSocketServer({ noServer: true });
  const started = await start({ onUpgrade: (request, socket, head) => wss.handleUpgrade(request, socket, head, () => undefined) });
  const { log } = await connectTo(started);
  await started.instance.perform("drain", "step-1", started.clock.now() + 5_000);
  await started.clock.advance(3_000);

  await expect.poll(() => log).toEqual(["closed 1012"]);
});

/** Status and `relevo-not-taken` of an upgrade that is refused. */
function refusalOf(base: string): Promise<unknown> {
  const ws = new WebSocket(base.replace("http", "ws"));
  return new Promise((resolve) => {
    ws.on("error", () => undefined);
    ws.on("unexpected-response", (_request, response) => {
      resolve([response.statusCode, response.headers["relevo-not-taken"]]);
      response.destroy();
    });
  });
}

test("after close, and when the deadline is near, an upgrade is refused as not taken", async () => {
  const closed = await startLive();
  await closed.instance.perform("close", "step-1", null);
  const leaving = await startLive();
  await leaving.instance.perform("drain", "step-1", leaving.clock.now() + 2_000);

  expect([await refusalOf(closed.base), await refusalOf(leaving.base)]).toEqual([
    [503, "1"],
    [503, "1"],
  ]);
});

test("an upgrade that the application has not finished when the sessions are closed is refused as not taken", async () => {
  const started = await start({ onUpgrade: () => undefined });
  const refusal = refusalOf(started.base);
  await expect.poll(() => started.instance.obligations().upgraded).toBe(1);
  await started.instance.perform("drain", "step-1", started.clock.now() + 2_000);
  await started.clock.advance(0);

  expect(await refusal).toEqual([503, "1"]);
});
