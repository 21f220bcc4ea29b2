import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, expect, test } from "vitest";
import { type WebSocket, WebSocketServer } from "ws";
import { systemClock } from "../../../kernel/system.ts";
import { VirtualClock } from "../../../kernel/virtual-clock.ts";
import type { Clock } from "../../../kernel/clock.ts";
import type { Ending } from "./outcome.ts";
import { runSession } from "./session.ts";

let server: Server;
afterEach(() => {
  server.close();
  server.closeAllConnections();
});

async function listen(made: Server): Promise<string> {
  server = made;
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `ws://127.0.0.1:${(server.address() as AddressInfo).port}/live`;
}

/** `answer` is called with each message. */
async function serve(answer: (ws: WebSocket, id: string, nth: number) => void): Promise<string> {
  const wss = new WebSocketServer({ noServer: true });
  const made = createServer();
  made.on("upgrade", (request, socket, head) =>
    wss.handleUpgrade(request, socket, head, (ws) => {
      let nth = 0;
      ws.on("message", (data) => answer(ws, (JSON.parse(String(data)) as { id: string }).id, nth++));
    }),
  );
  return listen(made);
}

interface Run {
  readonly ending: Promise<Ending>;
  readonly acknowledged: string[];
}

function run(url: string, lastsMs: number, clock: Clock = systemClock): Run {
  const acknowledged: string[] = [];
  const ending = runSession({
    url,
    id: "s",
    lastsMs,
    stepMs: 10,
    clock,
    seen: () => undefined,
    acknowledged: (id) => acknowledged.push(id),
  });
  return { ending, acknowledged };
}

function acknowledge(ws: WebSocket, id: string): void {
  ws.send(JSON.stringify({ type: "ack", id }));
}

test("a session sends one message after the other until its time is over, then closes and completes", async () => {
  const clock = new VirtualClock();
  const { ending, acknowledged } = run(await serve(acknowledge), 20, clock);

  for (const count of [1, 2]) {
    await expect.poll(() => acknowledged.length, { timeout: 10_000, interval: 5 }).toBe(count);
    await clock.advance(10);
  }

  expect(await ending).toEqual({ outcome: "completed", detail: null });
  expect(acknowledged).toEqual(["s.m0", "s.m1", "s.m2"]);
});

test("closed with 1012 after everything was acknowledged it completes", async () => {
  const url = await serve((ws, id, nth) => {
    acknowledge(ws, id);
    if (nth === 2) ws.close(1012);
  });
  const { ending, acknowledged } = run(url, 60_000);

  expect(await ending).toEqual({ outcome: "completed", detail: null });
  expect(acknowledged).toEqual(["s.m0", "s.m1", "s.m2"]);
});

test("an announced close is answered only after the last acknowledgement, and nothing is sent any more", async () => {
  const log: string[] = [];
  const url = await serve((ws, id, nth) => {
    log.push(id ?? "bye");
    if (nth === 0) {
      ws.send(JSON.stringify({ type: "closing" }));
      return acknowledge(ws, id);
    }
    ws.close(1012);
  });
  const { ending } = run(url, 60_000);

  expect(await ending).toEqual({ outcome: "completed", detail: null });
  expect(log).toEqual(["s.m0", "bye"]);
});

const cuts: [string, (ws: WebSocket) => void, string][] = [
  ["closed with 1012 over a message that was not acknowledged", (ws) => ws.close(1012), "closed_1012 with a message unacknowledged"],
  ["closed with 1011", (ws) => ws.close(1011), "closed_1011 with a message unacknowledged"],
  ["reset", (ws) => ws.terminate(), "closed_1006 with a message unacknowledged"],
  ["sent what it cannot read", (ws) => ws.send("?"), "unreadable_message"],
];
test.each(cuts)("a session that is %s is cut", async (_what, end, detail) => {
  const { ending } = run(await serve((ws) => end(ws)), 60_000);

  expect(await ending).toEqual({ outcome: "cut", detail });
});

test("a refused upgrade is rejected with the gateway's code", async () => {
  const made = createServer((_request, response) => response.writeHead(503, { "relevo-rejected": "queue_full" }).end());
  const { ending } = run(await listen(made), 60_000);

  expect(await ending).toEqual({ outcome: "rejected", detail: "503 queue_full" });
});

test("where nothing listens the session is lost", async () => {
  const url = await listen(createServer());
  await new Promise((resolve) => server.close(resolve));
  const { ending } = run(url, 60_000);

  expect(await ending).toEqual({ outcome: "lost", detail: "open_ECONNREFUSED" });
});

test("a message that is never acknowledged ends the session as lost, at its limit", async () => {
  const arrived = Promise.withResolvers<void>();
  const clock = new VirtualClock();
  const { ending } = run(await serve(() => arrived.resolve()), 60_000, clock);
  await arrived.promise;
  await clock.advance(10_000);

  expect(await ending).toEqual({ outcome: "lost", detail: "acknowledgement_timeout" });
});
