/** Small real servers and builders for the gateway's tests. */
import {
  createServer,
  type IncomingMessage,
  request as httpRequest,
  type RequestListener,
  type Server,
  type ServerResponse,
} from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { onTestFinished } from "vitest";
import type { Clock } from "../../kernel/clock.ts";
import { type Epoch, epoch } from "../../kernel/epoch.ts";
import { systemClock, systemIds, systemRandom } from "../../kernel/system.ts";
import type { ControllerLine, Member, RoutePolicy } from "../../model/membership.ts";
import type { GatewayLog } from "../core.ts";
import { type Gateway, type GatewayOptions, startGateway } from "../server.ts";

export const KEYS = [{ id: "k1", secret: "0123456789abcdef0123456789abcdef" }];

export const silentLog: GatewayLog = { debug() {}, info() {}, warn() {}, error() {} };

export function policyOf(given: Partial<RoutePolicy> = {}): RoutePolicy {
  return {
    hosts: [],
    retry: "idempotent",
    tries: 3,
    perTryTimeoutMs: 1_000,
    queueLimit: 100,
    queueWaitMs: 1_000,
    priority: "standard",
    slowStartMs: 0,
    concurrency: 100,
    healthPath: "/healthz",
    healthEveryMs: 200,
    trino: null,
    ...given,
  };
}

export function memberOf(instance: string, given: Partial<Member> = {}): Member {
  return { instance, incarnation: 1, bootId: null, host: "127.0.0.1", port: 1, state: "serving", deadline: null, writer: null, ...given };
}

export interface RouteGiven {
  readonly route?: string;
  readonly pool?: string;
  readonly generation?: Epoch;
  readonly policy?: Partial<RoutePolicy>;
  readonly members: readonly Member[];
}

export function membershipLine(routes: readonly RouteGiven[], given: { complete?: boolean; ttlMs?: number } = {}): ControllerLine {
  return {
    type: "membership",
    complete: given.complete ?? false,
    ttlMs: given.ttlMs ?? 60_000,
    routes: routes.map(({ route = "orders", pool, generation = epoch(1, 1), policy = {}, members }) => ({
      route,
      ...(pool === undefined ? {} : { pool }),
      generation,
      policy: policyOf(policy),
      members: [...members],
    })),
  };
}

export interface TestInstance {
  readonly name: string;
  readonly port: number;
  readonly server: Server;
  /** Bodies and heads of what it was asked, health checks left out. */
  readonly seen: { readonly method: string; readonly url: string; readonly headers: IncomingMessage["headers"]; readonly body: string }[];
  readonly sockets: Set<Socket>;
  /** As a member of the route. */
  member(given?: Partial<Member>): Member;
  /** Health from now on. */
  healthy: boolean;
  /** Health checks get no answer of their own from now on; each is handed to the test. */
  holdHealth(held: (answer: () => void) => void): void;
  /** Ends it as SIGKILL would: all connections reset, the port refused. */
  kill(): Promise<void>;
}

export type Answer = (request: IncomingMessage, response: ServerResponse, body: string) => void;

export async function startInstance(
  name: string,
  answer: Answer,
  options: { raw?: RequestListener; port?: number } = {},
): Promise<TestInstance> {
  const sockets = new Set<Socket>();
  const seen: TestInstance["seen"] = [];
  let held: ((answer: () => void) => void) | null = null;
  const server = createServer((request, response) => {
    if (request.url === "/healthz" && held !== null) return held(() => void response.end());
    if (request.url === "/healthz") {
      response.writeHead(instance.healthy ? 200 : 503).end();
      return;
    }
    if (options.raw !== undefined) return options.raw(request, response);
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("error", () => undefined);
    request.on("end", () => {
      const body = Buffer.concat(chunks).toString();
      seen.push({ method: request.method ?? "", url: request.url ?? "", headers: request.headers, body });
      answer(request, response, body);
    });
  });
  server.on("connection", (socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    socket.on("error", () => undefined);
  });
  await new Promise<void>((resolve) => server.listen(options.port ?? 0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const kill = async () => {
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    for (const socket of sockets) socket.resetAndDestroy();
    await closed;
  };
  const instance: TestInstance = {
    name,
    port,
    server,
    seen,
    sockets,
    member: (given = {}) => memberOf(name, { port, ...given }),
    healthy: true,
    holdHealth: (given) => {
      held = given;
    },
    kill,
  };
  onTestFinished(() => (server.listening ? kill() : undefined));
  return instance;
}

/** A gateway that is told its membership by the test. */
export async function startTestGateway(given: Partial<GatewayOptions> = {}): Promise<Gateway> {
  const gateway = await startGateway({
    host: "127.0.0.1",
    port: 0,
    controllerUrl: null,
    tokenKeys: KEYS,
    clock: systemClock,
    ids: systemIds,
    random: systemRandom,
    log: silentLog,
    ...given,
  });
  onTestFinished(() => gateway.close());
  return gateway;
}

/** Until every serving member of every route passed its check. */
export async function untilReady(gateway: Gateway): Promise<void> {
  await until("all members pass", () =>
    [...gateway.core.membership.routes.values()].every((route) =>
      route.members.every((member) => member.state !== "serving" || member.health === "passing"),
    ),
  );
}

/** Polls until the condition holds; fails with its name after `limitMs`. */
export async function until(what: string, holds: () => boolean | Promise<boolean>, limitMs = 5_000): Promise<void> {
  const end = systemClock.monotonic() + limitMs;
  while (!(await holds())) {
    if (systemClock.monotonic() > end) throw new Error(`not within ${limitMs} ms: ${what}`);
    await systemClock.sleep(5);
  }
}

export interface ClientAnswer {
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

/** One request on a connection of its own. */
export function send(
  gateway: Gateway,
  given: { method?: string; path?: string; headers?: Record<string, string>; body?: string | Buffer } = {},
): Promise<ClientAnswer> {
  return new Promise((resolve, reject) => {
    const outgoing = httpRequest(`${gateway.url}${given.path ?? "/"}`, {
      method: given.method ?? "GET",
      headers: { host: "orders", ...given.headers },
      agent: false,
    });
    outgoing.on("error", reject);
    outgoing.on("response", (incoming) => {
      const chunks: Buffer[] = [];
      incoming.on("data", (chunk: Buffer) => chunks.push(chunk));
      incoming.on("error", reject);
      incoming.on("end", () =>
        resolve({ status: incoming.statusCode ?? 0, headers: incoming.headers, body: Buffer.concat(chunks).toString() }),
      );
    });
    outgoing.end(given.body);
  });
}

/** Throws unless accepted = completed + inFlight + queued + rejected + cut for every route (I14). */
export function checkCounts(gateway: Gateway): void {
  for (const { route, counts } of gateway.core.ledger.routes()) {
    const { accepted, completed, inFlight, queued, rejected, cut } = counts;
    if (accepted !== completed + inFlight + queued + rejected + cut)
      throw new Error(`counts of ${route} do not add up: ${JSON.stringify(counts)}`);
  }
}

export interface VirtualClock extends Clock {
  /** Fires what falls due on the way, in order. */
  advance(ms: number): void;
  /** How many timers are set. */
  readonly timers: number;
}

export function virtualClock(): VirtualClock {
  let now = 0;
  const pending = new Set<{ readonly at: number; readonly fire: () => void }>();
  return {
    now: () => now,
    monotonic: () => now,
    after(delayMs, fire) {
      const entry = { at: now + delayMs, fire };
      pending.add(entry);
      return { cancel: () => void pending.delete(entry) };
    },
    sleep: () => Promise.reject(new Error("nothing sleeps here")),
    advance(ms) {
      const until = now + ms;
      for (;;) {
        const due = [...pending].filter((entry) => entry.at <= until).toSorted((a, b) => a.at - b.at)[0];
        if (due === undefined) break;
        pending.delete(due);
        now = due.at;
        due.fire();
      }
      now = until;
    },
    get timers() {
      return pending.size;
    },
  };
}
