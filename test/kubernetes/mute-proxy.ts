/** A TCP proxy whose connections can fall silent: they stay open and carry nothing any more, as behind a firewall that forgot them. */
import { connect, createServer, type Server, type Socket } from "node:net";
import type { AddressInfo } from "node:net";

export class MuteProxy {
  readonly #server: Server;
  readonly #pairs = new Set<readonly [Socket, Socket]>();

  private constructor(server: Server) {
    this.#server = server;
  }

  static async before(target: string): Promise<MuteProxy> {
    const { hostname, port } = new URL(target);
    const server = createServer((client) => {
      const upstream = connect(Number(port), hostname);
      const pair = [client, upstream] as const;
      proxy.#pairs.add(pair);
      client.pipe(upstream).pipe(client);
      for (const socket of pair) {
        socket.on("error", () => socket.destroy());
        socket.on("close", () => {
          proxy.#pairs.delete(pair);
          for (const each of pair) each.destroy();
        });
      }
    });
    const proxy = new MuteProxy(server);
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return proxy;
  }

  get url(): string {
    return `https://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** All that are open now; new ones work. Returns how many. */
  mute(): number {
    for (const [client, upstream] of this.#pairs) {
      client.unpipe(upstream).resume();
      upstream.unpipe(client).resume();
    }
    return this.#pairs.size;
  }

  async close(): Promise<void> {
    for (const pair of this.#pairs) for (const socket of pair) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
