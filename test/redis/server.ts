/** A Redis of its own for a test: Debian's server on a free port of loopback, with nothing on disk. It ends with the test's process. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { createClient } from "@redis/client";
import { freePort } from "../ports.ts";

const START_MS = 20_000;

export class RedisServer {
  readonly port: number;
  readonly #settings: readonly string[];
  #server: ChildProcess | undefined;
  readonly #endsWithUs = (): void => void this.#server?.kill("SIGKILL");

  private constructor(port: number, settings: readonly string[], portSetting: readonly string[]) {
    this.port = port;
    this.#settings = [...portSetting, ...settings];
    process.once("exit", this.#endsWithUs);
  }

  /** `settings` as on the command line: `["--requirepass", "x"]`. */
  static async start(settings: readonly string[] = [], how: "plain" | "tls" = "plain"): Promise<RedisServer> {
    const port = await freePort();
    const server = new RedisServer(
      port,
      settings,
      how === "plain" ? ["--port", String(port)] : ["--port", "0", "--tls-port", String(port)],
    );
    await server.launch();
    return server;
  }

  url(user = ""): string {
    return `redis://${user === "" ? "" : `${user}@`}127.0.0.1:${this.port}`;
  }

  /** Also again after it was killed, with nothing in it. */
  async launch(): Promise<void> {
    const own = ["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", tmpdir()];
    // The kernel ends it when this process dies, however it dies.
    const server = spawn("/usr/bin/setpriv", ["--pdeathsig", "KILL", "redis-server", ...own, ...this.#settings], {
      stdio: ["ignore", "pipe", "ignore"],
    });
    this.#server = server;
    let log = "";
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    server.stdout.setEncoding("utf8").on("data", (text: string) => {
      log = (log + text).slice(-20_000);
      if (log.includes("Ready to accept connections")) resolve();
    });
    server.once("error", reject);
    server.once("exit", (code) => reject(new Error(`redis-server ended with ${code}: ${log}`)));
    AbortSignal.timeout(START_MS).addEventListener("abort", () => reject(new Error(`redis-server was not ready: ${log}`)));
    await promise;
  }

  /** One client, one command. */
  async command(...command: string[]): Promise<unknown> {
    return this.commandAs("", ...command);
  }

  async commandAs(user: string, ...command: string[]): Promise<unknown> {
    const client = createClient({ url: this.url(user), socket: { reconnectStrategy: false } });
    client.on("error", () => undefined);
    await client.connect();
    try {
      return await client.sendCommand(command);
    } finally {
      client.destroy();
    }
  }

  signal(name: NodeJS.Signals): void {
    this.#server?.kill(name);
  }

  async kill(): Promise<void> {
    const server = this.#server;
    if (server === undefined || server.exitCode !== null || server.signalCode !== null) return;
    const gone = once(server, "exit");
    server.kill("SIGKILL");
    await gone;
  }

  async stop(): Promise<void> {
    await this.kill();
    process.removeListener("exit", this.#endsWithUs);
  }
}
