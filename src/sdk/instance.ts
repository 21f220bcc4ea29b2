/**
 * A workload's side of the instance protocol, around its own request handler.
 *
 *   starting → ready (prepare) → admitted (admit) → draining (drain) → closed (close)
 *
 * 1. Work is taken from the admission on until `close`. Before and after, a request is answered 503 with `relevo-not-taken: 1`, which lets the gateway send
 *    it elsewhere: a container that was restarted keeps its address, and nobody has looked at the new process yet. What is in flight goes on.
 * 2. A call names the boot id that it means; another process never obeys it. The same `Idempotency-Key` gets the first answer again.
 * 3. A drain without a deadline never closes anything. With one, upgraded connections that outlive it are closed with 1012 shortly before; a later
 *    drain can bring the deadline forward and never moves it back.
 * 4. A drain that is only a hint (its key begins with `hint-`) can be taken back by `resume`, until another drain came.
 * 5. With a writer lease (lease.ts): until the lease is held for the first time requests are taken and nothing can be written; once it lapsed they are
 *    refused as in 1; when it is lost the instance closes. An answer whose lease lapsed meanwhile is withheld.
 */
import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { hostname } from "node:os";
import type { Duplex } from "node:stream";
import type { Clock, Instant, Timer } from "../kernel/clock.ts";
import { RelevoError } from "../kernel/errors.ts";
import type { Ids } from "../kernel/ids.ts";
import { systemClock, systemIds } from "../kernel/system.ts";
import type { Health, Identity, Obligations } from "../model/protocol.ts";
import type { Slots } from "../model/slots.ts";
import { type HealthCheck, HealthChecks } from "./health.ts";
import { DEFAULT_LEASE_GRACE_MS, type NewLease, WriterLease } from "./lease.ts";
import { httpLeaseCall, type LeaseAccess, type LeaseCall } from "./lease-call.ts";
import { ProtocolEndpoint } from "./protocol-endpoint.ts";
import type { SlotTable } from "./slots.ts";
import { Transactions } from "./transactions.ts";
import { type ClosableSocket, type CloseOptions, UPGRADE_NOT_TAKEN, UpgradedConnections } from "./upgraded.ts";
import { type CallName, HINT_PREFIX, NOT_TAKEN_HEADER, PREFIX, ProtocolRefusal, WRITER_EPOCH_HEADER } from "./wire.ts";

export const DEFAULT_PORT = 8080;
export const DEFAULT_CLOSE_MARGIN_MS = 2_000;
/** Longer than a proxy keeps an idle connection: the proxy, not the instance, ends it, so no request meets a closing socket. */
const KEEP_ALIVE_MS = 75_000;
/** The longest delay that a timer of Node takes. */
const MAX_DELAY_MS = 2 ** 31 - 1;

export type UpgradeListener = (request: IncomingMessage, socket: Duplex, head: Buffer) => void;
/** Awaited before the call is answered; keep it well under the caller's time-out of 10 s. */
export type Hook = (call: { readonly step: string; readonly deadline: Instant | null }) => Promise<void> | void;

export interface InstanceOptions {
  /** The application. */
  readonly handler: RequestListener;
  /** The application's side of upgrades; without it a request that offers one is served as an ordinary request. */
  readonly onUpgrade?: UpgradeListener;
  /** An own server to serve on; one is made otherwise. */
  readonly server?: Server;
  /** Else `HOST`, `POD_IP`, all addresses. */
  readonly host?: string;
  /** Else `PORT`, 8080. */
  readonly port?: number;
  /** Else `RELEVO_INSTANCE`, `POD_NAME`, the host's name. */
  readonly name?: string;
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly health?: Readonly<Record<string, HealthCheck>>;
  /** What it works on at once when it takes jobs by itself (worker.ts): each busy one is an obligation. */
  readonly slots?: SlotTable;
  readonly onPrepare?: Hook;
  readonly onAdmit?: Hook;
  readonly onDrain?: Hook;
  /** A drain that was only a hint was taken back: the instance goes on as before. */
  readonly onResume?: Hook;
  readonly onClose?: Hook;
  /** Takes work before it is admitted; by default only where nobody admits it (no `RELEVO_INSTANCE`). */
  readonly servesUnadmitted?: boolean;
  /** How long before a drain's deadline the upgraded connections are closed. */
  readonly closeMarginMs?: number;
  /** A writer lease was acquired; awaited before anything can be written under it: the place to tell the landing of results about the new epoch. */
  readonly onLease?: (lease: NewLease) => Promise<void> | void;
  /** How long after it lapsed a lease may be renewed again before the instance closes. */
  readonly leaseGraceMs?: number;
  /** How a lease is renewed; over HTTP by default. */
  readonly leaseCall?: LeaseCall;
  /** Where things that nobody waits for are said; a process warning otherwise. */
  readonly report?: (sentence: string) => void;
  readonly clock?: Clock;
  readonly ids?: Ids;
}

/** Makes an instance; it serves once `listen` is called. */
export function createInstance(options: InstanceOptions): RelevoInstance {
  return new RelevoInstance(options);
}

export class RelevoInstance {
  readonly name: string;
  /** New with every process. */
  readonly bootId: string;
  readonly server: Server;
  readonly transactions: Transactions;
  /** The writer lease, if the pool has one: `writer.epoch()` at each write (docs/fencing.md). */
  readonly writer: WriterLease;

  readonly #options: InstanceOptions;
  readonly #clock: Clock;
  readonly #host: string;
  readonly #port: number;
  readonly #report: (sentence: string) => void;
  readonly #health: HealthChecks;
  readonly #upgraded: UpgradedConnections;
  readonly #endpoint: ProtocolEndpoint;
  #state: Identity["state"] = "starting";
  readonly #servesUnadmitted: boolean;
  #admittedBy: string | null = null;
  /** It drains, and only because of a hint. */
  #isHinted = false;
  #requests = 0;
  #deadline: Instant | null = null;
  #closeTimer: Timer | null = null;
  #idleWaiters: (() => void)[] = [];

  constructor(options: InstanceOptions) {
    const env = options.env ?? process.env;
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.name = options.name ?? env["RELEVO_INSTANCE"] ?? env["POD_NAME"] ?? hostname();
    this.#servesUnadmitted = options.servesUnadmitted ?? env["RELEVO_INSTANCE"] === undefined;
    this.bootId = (options.ids ?? systemIds).next("boot");
    this.#host = options.host ?? env["HOST"] ?? env["POD_IP"] ?? "0.0.0.0";
    this.#port = options.port ?? parsePort(env["PORT"]);
    this.#report = options.report ?? ((sentence) => process.emitWarning(sentence, "RelevoInstance"));
    this.#health = new HealthChecks(options.health ?? {}, this.#clock);
    this.transactions = new Transactions(this.#clock, () => this.#noteChange());
    this.#upgraded = new UpgradedConnections(this.#clock, () => this.#noteChange(), this.#report);
    this.#endpoint = new ProtocolEndpoint(this);
    options.slots?.onChange(() => this.#noteChange());
    this.writer = new WriterLease({
      bootId: this.bootId,
      clock: this.#clock,
      call: options.leaseCall ?? httpLeaseCall(this.#clock),
      graceMs: options.leaseGraceMs ?? DEFAULT_LEASE_GRACE_MS,
      onLease: options.onLease,
      onLost: () => void this.#closeItself(),
      report: this.#report,
    });
    this.server = options.server ?? createServer({ keepAliveTimeout: KEEP_ALIVE_MS, noDelay: true });
    this.server.on("request", (request, response) => this.#route(request, response));
    // Without a listener Node serves a request that merely offers an upgrade as an ordinary one, as it should be.
    const { onUpgrade } = options;
    if (onUpgrade !== undefined) this.server.on("upgrade", (request, socket, head) => this.#upgrade(onUpgrade, request, socket, head));
  }

  get state(): Identity["state"] {
    return this.#state;
  }

  /** When the drain must be over, in ms since the epoch; null when there is no drain or no end to it. */
  get deadline(): Instant | null {
    return this.#deadline;
  }

  /** Serves; resolves with the address once connections are taken. */
  listen(): Promise<{ readonly host: string; readonly port: number }> {
    return new Promise((resolve, reject) => {
      this.server.once("error", reject);
      this.server.listen(this.#port, this.#host, () => {
        this.server.off("error", reject);
        const address = this.server.address() as AddressInfo;
        resolve({ host: address.address, port: address.port });
      });
    });
  }

  identity(): Identity {
    return { protocol: "relevo/v1", instance: this.name, bootId: this.bootId, state: this.#state, admittedBy: this.#admittedBy };
  }

  obligations(): Obligations {
    const requests = this.#requests + this.#jobs();
    return { bootId: this.bootId, requests, upgraded: this.#upgraded.size, transactions: this.transactions.size };
  }

  /** Null: it has none. */
  slots(): Slots | null {
    const { slots } = this.#options;
    return slots === undefined ? null : { bootId: this.bootId, ...slots.view() };
  }

  /** May new work be begun at this moment? What drains finishes what it has. */
  get takesNewWork(): boolean {
    return this.#state !== "draining" && this.#takesWork();
  }

  /** A draining instance is still healthy: it must finish what it has. */
  async health(): Promise<Health> {
    const reason = this.writer.reason ?? (this.#state === "closed" ? "closed" : await this.#health.findReason());
    return { ok: reason === null, bootId: this.bootId, reason };
  }

  /** Says how an upgraded connection is closed when a deadline comes before its end. */
  registerWebSocket(connection: Duplex, socket: ClosableSocket, options: CloseOptions = {}): void {
    this.#upgraded.register(connection, socket, options);
  }

  /** Resolves when no request, upgraded connection or transaction is left. */
  whenIdle(): Promise<void> {
    if (this.#isIdle()) return Promise.resolve();
    return new Promise((resolve) => this.#idleWaiters.push(resolve));
  }

  /** Performs a call of the protocol; throws a ProtocolRefusal when the state does not allow it. Also for tests and for a workload's own signals. */
  async perform(call: CallName, step: string, deadline: Instant | null, lease?: LeaseAccess): Promise<Identity["state"]> {
    switch (call) {
      case "prepare":
        this.#refuseIn("prepare", ["draining", "closed"]);
        await this.#options.onPrepare?.({ step, deadline });
        if (this.#state === "starting") this.#state = "ready";
        return this.#state;
      case "admit":
        this.#refuseIn("admit", ["draining", "closed"]);
        this.#state = "admitted";
        this.#admittedBy = step;
        if (lease !== undefined) this.writer.take(lease);
        await this.#options.onAdmit?.({ step, deadline });
        return this.#state;
      case "drain":
        return this.#drain(step, deadline);
      case "resume":
        return this.#resume(step);
      case "close":
        return this.#close(step, deadline);
      default:
        return call satisfies never;
    }
  }

  /** Stops listening and drops what is open: the end of the process, or of a test. */
  async stop(): Promise<void> {
    this.#closeTimer?.cancel();
    this.writer.stop();
    await new Promise<void>((resolve) => {
      this.server.close(() => resolve());
      this.server.closeAllConnections();
      this.#upgraded.destroyAll();
    });
  }

  async #drain(step: string, deadline: Instant | null): Promise<Identity["state"]> {
    if (this.#state === "closed") return this.#state;
    const isHint = step.startsWith(HINT_PREFIX) && deadline === null;
    if (!isHint) this.#isHinted = false;
    else if (this.#state === "admitted") this.#isHinted = true;
    this.#state = "draining";
    if (deadline !== null && (this.#deadline === null || deadline < this.#deadline)) {
      this.#deadline = deadline;
      this.#planClose();
    }
    await this.#options.onDrain?.({ step, deadline: this.#deadline });
    return this.#state;
  }

  /** Of a drain that anybody else asked for nothing is taken back. */
  async #resume(step: string): Promise<Identity["state"]> {
    if (this.#state !== "draining" || !this.#isHinted) return this.#state;
    this.#isHinted = false;
    this.#state = "admitted";
    await this.#options.onResume?.({ step, deadline: null });
    return this.#state;
  }

  async #close(step: string, deadline: Instant | null): Promise<Identity["state"]> {
    const before = this.#state;
    this.#state = "closed";
    this.server.closeIdleConnections();
    // Whatever is still upgraded ends with the process: better told than cut.
    this.#closeUpgraded();
    if (before !== "closed") await this.#options.onClose?.({ step, deadline });
    return this.#state;
  }

  /** Nobody may be there to be told of a hook that failed. */
  async #closeItself(): Promise<void> {
    try {
      await this.perform("close", "lease-lost", null);
    } catch (error) {
      this.#report(`onClose failed: ${error instanceof Error ? error.message : String(error)}`);
    }
  }

  #planClose(): void {
    this.#closeTimer?.cancel();
    if (this.#deadline === null) return;
    const delayMs = this.#deadline - this.#closeMarginMs - this.#clock.now();
    if (delayMs > MAX_DELAY_MS) this.#closeTimer = this.#clock.after(MAX_DELAY_MS, () => this.#planClose());
    else this.#closeTimer = this.#clock.after(Math.max(0, delayMs), () => this.#closeUpgraded());
  }

  #closeUpgraded(): void {
    void this.#upgraded.closeAll(this.#closeMarginMs / 2);
  }

  get #closeMarginMs(): number {
    return this.#options.closeMarginMs ?? DEFAULT_CLOSE_MARGIN_MS;
  }

  #refuseIn(call: CallName, states: readonly Identity["state"][]): void {
    if (states.includes(this.#state))
      throw new ProtocolRefusal(409, "wrong_state", `The instance is ${this.#state}: ${call} is not possible any more.`);
  }

  #route(request: IncomingMessage, response: ServerResponse): void {
    const url = request.url ?? "/";
    if (url.startsWith(`${PREFIX}/`)) return void this.#endpoint.answer(request, response);
    if (!this.#takesWork()) return refuseRequest(request, response, this.writer.refuses ? "lease_lost" : this.#state);
    const epoch = this.writer.epoch();
    if (epoch !== null) this.#stamp(response, epoch);
    this.#requests++;
    response.once("close", () => {
      this.#requests--;
      this.#noteChange();
    });
    this.#options.handler(request, response);
  }

  /** What began under an epoch is answered under it, or not at all. */
  #stamp(response: ServerResponse, epoch: string): void {
    response.setHeader(WRITER_EPOCH_HEADER, epoch);
    const writeHead = response.writeHead.bind(response) as (status: number, ...more: unknown[]) => ServerResponse;
    // Also what sets no head itself comes through here. An error tells nothing that could be stale.
    response.writeHead = (status: number, ...more: unknown[]) => {
      if (status < 500 && this.writer.epoch() === null) response.destroy();
      return writeHead(status, ...more);
    };
  }

  #upgrade(onUpgrade: UpgradeListener, request: IncomingMessage, socket: Duplex, head: Buffer): void {
    socket.on("error", () => socket.destroy()); // a peer that vanishes during the upgrade must not end the process
    if (!this.#takesWork() || this.#isClosingUpgraded()) return void socket.end(UPGRADE_NOT_TAKEN);
    this.#upgraded.add(socket);
    onUpgrade(request, socket, head);
  }

  #takesWork(): boolean {
    if (this.writer.refuses) return false;
    return this.#state === "admitted" || this.#state === "draining" || (this.#servesUnadmitted && this.#state !== "closed");
  }

  /** From the margin before the deadline on, a new session would be closed as soon as it is open. */
  #isClosingUpgraded(): boolean {
    return this.#deadline !== null && this.#clock.now() >= this.#deadline - this.#closeMarginMs;
  }

  #isIdle(): boolean {
    return this.#requests === 0 && this.#jobs() === 0 && this.#upgraded.size === 0 && this.transactions.size === 0;
  }

  #jobs(): number {
    const { slots } = this.#options;
    return slots === undefined ? 0 : slots.busy + (this.#state === "draining" && slots.isTaking ? 1 : 0);
  }

  #noteChange(): void {
    if (this.#idleWaiters.length === 0 || !this.#isIdle()) return;
    const waiters = this.#idleWaiters;
    this.#idleWaiters = [];
    for (const resolve of waiters) resolve();
  }
}

function refuseRequest(request: IncomingMessage, response: ServerResponse, state: string): void {
  const code = state === "closed" || state === "lease_lost" ? state : "not_admitted";
  const what = state === "lease_lost" ? "has lost its writer lease" : `is ${state}`;
  const body = JSON.stringify({ error: { code, message: `The instance ${what}: it did not take the request.` } });
  request.resume();
  response.writeHead(503, {
    [NOT_TAKEN_HEADER]: "1",
    connection: "close",
    "content-type": "application/json",
    "content-length": Buffer.byteLength(body),
  });
  response.end(body);
}

function parsePort(text: string | undefined): number {
  if (text === undefined || text === "") return DEFAULT_PORT;
  const port = Number(text);
  if (Number.isInteger(port) && port >= 0 && port <= 65_535) return port;
  throw new RelevoError("port_invalid", "PORT is no port.", { found: text, allowed: "a whole number from 0 to 65535" });
}
