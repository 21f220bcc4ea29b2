/** When a request is tried again, and when it is not: one table. */
import { createServer, type Server, type Socket } from "node:net";
import type { AddressInfo } from "node:net";
import { describe, expect, onTestFinished, test } from "vitest";
import type { RoutePolicy } from "../model/membership.ts";
import { checkCounts, memberOf, membershipLine, send, startInstance, startTestGateway, untilReady } from "./testing/gateway.ts";

type Fault =
  /** The port is closed. */
  | "refuses"
  /** 503 with `relevo-not-taken`. */
  | "not taken"
  /** 503 of its own. */
  | "answers 503"
  /** Reads the request and resets the connection. */
  | "resets"
  /** Reads the request and never answers: a stopped process. */
  | "is silent"
  /** No HTTP. */
  | "babbles";

interface Case {
  readonly fault: Fault;
  readonly method: string;
  readonly key?: true;
  /** Bytes of the body; more than 64 KiB is not held. */
  readonly body?: number;
  readonly retry?: RoutePolicy["retry"];
  readonly status: number;
  readonly rejected?: string;
  readonly retried: boolean;
}

const CASES: readonly Case[] = [
  { fault: "refuses", method: "GET", status: 200, retried: true },
  { fault: "refuses", method: "POST", body: 10, status: 200, retried: true },
  { fault: "refuses", method: "POST", body: 200_000, status: 200, retried: true },
  { fault: "refuses", method: "POST", body: 10, retry: "not-taken", status: 200, retried: true },
  { fault: "not taken", method: "GET", status: 200, retried: true },
  { fault: "not taken", method: "POST", body: 10, status: 200, retried: true },
  { fault: "not taken", method: "POST", body: 200_000, status: 503, rejected: "not_taken", retried: false },
  { fault: "answers 503", method: "GET", status: 503, retried: false },
  { fault: "answers 503", method: "POST", body: 10, status: 503, retried: false },
  { fault: "resets", method: "GET", status: 200, retried: true },
  { fault: "resets", method: "PUT", body: 10, status: 200, retried: true },
  { fault: "resets", method: "DELETE", status: 200, retried: true },
  { fault: "resets", method: "POST", body: 10, status: 502, rejected: "answer_lost", retried: false },
  { fault: "resets", method: "POST", key: true, body: 10, status: 200, retried: true },
  { fault: "resets", method: "POST", key: true, body: 200_000, status: 502, rejected: "answer_lost", retried: false },
  { fault: "resets", method: "GET", retry: "not-taken", status: 502, rejected: "answer_lost", retried: false },
  { fault: "is silent", method: "GET", status: 200, retried: true },
  { fault: "is silent", method: "POST", key: true, body: 10, status: 200, retried: true },
  { fault: "babbles", method: "GET", status: 200, retried: true },
  { fault: "babbles", method: "POST", body: 10, status: 502, rejected: "bad_answer", retried: false },
];

describe("a member that", () => {
  test.each(CASES)("$fault, asked $method with key $key and $body bytes (retry $retry): $status $rejected", async (given) => {
    const bad = await startFaulty(given.fault);
    const good = await startInstance("good", (_, response, body) => response.end(`good ${body.length}`));
    const gateway = await startTestGateway();
    const policy = { retry: given.retry ?? "idempotent", perTryTimeoutMs: 100, healthEveryMs: 60_000 } as const;
    gateway.apply(membershipLine([{ policy, members: [good.member(), memberOf("bad", { port: bad.port })] }]));
    await untilReady(gateway);
    bad.break();

    const answer = await send(gateway, {
      method: given.method,
      ...(given.key === true ? { headers: { "idempotency-key": "k" } } : {}),
      ...(given.body === undefined ? {} : { body: "x".repeat(given.body) }),
    });

    expect({
      status: answer.status,
      rejected: answer.headers["relevo-rejected"],
      retried: answer.headers["relevo-retried"] !== undefined,
    }).toEqual({
      status: given.status,
      rejected: given.rejected,
      retried: given.retried,
    });
    if (given.status === 200) expect(answer.body).toBe(`good ${given.body ?? 0}`);
    checkCounts(gateway);
    expect(gateway.core.ledger.of("orders").counts).toMatchObject({ accepted: 1, inFlight: 0, queued: 0, retried: given.retried ? 1 : 0 });
    expect(gateway.report().routes[0]?.members.every((member) => member.requests === 0)).toBe(true);
  });
});

test("a member that went silent gets nothing new at once, and serves again when its check passes", async () => {
  const bad = await startFaulty("is silent");
  const good = await startInstance("good", (_, response) => response.end("good"));
  const gateway = await startTestGateway();
  const policy = { perTryTimeoutMs: 150, healthEveryMs: 60_000 };
  gateway.apply(membershipLine([{ policy, members: [good.member(), memberOf("bad", { port: bad.port })] }]));
  await untilReady(gateway);
  bad.break();

  await send(gateway);
  const member = gateway.core.membership.find("orders", "bad", 1);
  expect(member).toMatchObject({ health: "failing", healthReason: "timeout" });
  const after = await Promise.all(Array.from({ length: 10 }, () => send(gateway)));
  expect(after.every((answer) => answer.headers["relevo-retried"] === undefined)).toBe(true);
});

test("the last try of a repeatable request is not cut short by the per-try limit", async () => {
  const slow = await startInstance("slow", (_, response) => void setTimeout(() => response.end("late"), 250));
  const gateway = await startTestGateway();
  gateway.apply(membershipLine([{ policy: { perTryTimeoutMs: 80, tries: 2 }, members: [slow.member()] }]));
  await untilReady(gateway);

  expect(await send(gateway)).toMatchObject({ status: 200, body: "late", headers: { "relevo-retried": "1" } });
});

/** Answers health checks until it is broken. */
async function startFaulty(fault: Fault): Promise<{ readonly port: number; break(): void }> {
  let broken = false;
  const sockets = new Set<Socket>();
  const server: Server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined);
    socket.on("close", () => sockets.delete(socket));
    let text = "";
    socket.on("data", (chunk) => {
      text += chunk.toString("latin1");
      if (!text.includes("\r\n\r\n") || !socket.writable) return;
      if (!broken) socket.end("HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
      else if (fault === "resets") socket.resetAndDestroy();
      else if (fault === "babbles") socket.end("hello?\r\n\r\n");
      else if (fault === "not taken")
        socket.end("HTTP/1.1 503 No\r\nrelevo-not-taken: 1\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
      else if (fault === "answers 503") socket.end("HTTP/1.1 503 No\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const close = () => {
    if (server.listening) server.close();
    for (const socket of sockets) socket.resetAndDestroy();
  };
  onTestFinished(close);
  return {
    port: (server.address() as AddressInfo).port,
    break() {
      broken = true;
      if (fault === "refuses") close();
    },
  };
}
