/** One port for all protocols: what a connection speaks is told by its first bytes. */
import { createServer, type Server, type Socket } from "node:net";
import type { GatewayCore } from "./core.ts";
import { LIMITS } from "./limits.ts";
import { H1Front } from "./relay-h1.ts";
import { H2Front } from "./relay-h2.ts";

/** How every HTTP/2 connection begins, as far as no HTTP/1.1 request does. */
const PREFACE = Buffer.from("PRI * HTTP/2.0");

export class Fronts {
  readonly #core: GatewayCore;
  readonly #h1: H1Front;
  readonly #h2: H2Front;
  readonly #server: Server;
  /** Connections that have not said anything yet. */
  readonly #silent = new Set<Socket>();
  #closed = false;

  constructor(core: GatewayCore) {
    this.#core = core;
    this.#h1 = new H1Front(core);
    this.#h2 = new H2Front(core);
    this.#server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => this.#accept(socket));
    this.#server.maxConnections = LIMITS.clientConnections;
  }

  /** Resolves to the URL; rejects when the port cannot be bound. */
  async listen(host: string, port: number): Promise<string> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once("error", reject);
      this.#server.listen(port, host, () => {
        this.#server.off("error", reject);
        resolve();
      });
    });
    this.#sweep();
    const address = this.#server.address();
    const actual = typeof address === "object" && address !== null ? address.port : port;
    return `http://${host.includes(":") ? `[${host}]` : host}:${actual}`;
  }

  #accept(socket: Socket): void {
    socket.on("error", () => undefined); // `close` follows and ends what the connection carried
    this.#silent.add(socket);
    const limit = this.#core.clock.after(LIMITS.firstByteMs, () => socket.destroy());
    let seen: Buffer = Buffer.alloc(0);
    const settle = () => {
      limit.cancel();
      this.#silent.delete(socket);
      socket.off("data", look);
      socket.off("end", leave);
      socket.off("close", settle);
    };
    const leave = () => socket.destroy();
    const look = (chunk: Buffer) => {
      seen = seen.length === 0 ? chunk : Buffer.concat([seen, chunk]);
      const known = Math.min(seen.length, PREFACE.length);
      const mayBeH2 = seen.compare(PREFACE, 0, known, 0, known) === 0;
      if (mayBeH2 && known < PREFACE.length) return;
      settle();
      socket.pause();
      socket.unshift(seen);
      if (mayBeH2) this.#h2.accept(socket);
      else this.#h1.accept(socket);
      // A socket that is resumed before its new owner's listeners settled would lose what was put back.
      process.nextTick(() => socket.resume());
    };
    socket.on("data", look);
    socket.on("end", leave);
    socket.on("close", settle);
  }

  #sweep(): void {
    this.#core.clock.after(LIMITS.requestHeadSweepMs, () => {
      if (this.#closed) return;
      this.#h1.sweep(LIMITS.clientIdleMs);
      this.#sweep();
    });
  }

  /** Takes no new connections, lets the others end for at most `graceMs`, then ends them. */
  async close(graceMs: number): Promise<void> {
    const { clock } = this.#core;
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    const until = clock.monotonic() + graceMs;
    for (const socket of this.#silent) socket.destroy();
    this.#h2.goAway();
    await this.#waitForAll(until - Math.min(LIMITS.upgradedCloseMs, graceMs / 2));
    this.#h1.closeUpgraded();
    await this.#waitForAll(until);
    this.#core.endAll();
    await this.#waitForAll(clock.monotonic() + LIMITS.stoppingSweepMs);
    this.#closed = true;
    this.#h1.destroyAll();
    this.#h2.destroyAll();
    await closed;
  }

  async #waitForAll(until: number): Promise<void> {
    const { clock } = this.#core;
    while (this.#h1.connections + this.#h2.connections > 0 && clock.monotonic() < until) {
      this.#h1.sweep(LIMITS.stoppingIdleMs);
      await clock.sleep(Math.min(LIMITS.stoppingSweepMs, Math.max(1, until - clock.monotonic())));
    }
  }
}
