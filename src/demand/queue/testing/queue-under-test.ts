/** A queue in this process on a port of its own, with a file that a test may open again. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock, systemIds } from "../../../kernel/system.ts";
import { QueueClient } from "../../../sdk/queue-client.ts";
import { type QueueServer, type QueueServerOptions, startQueueServer } from "../server.ts";

export const TOKEN = "a-token-of-the-tests";

export class QueueUnderTest {
  readonly folder = mkdtempSync(join(tmpdir(), "relevo-queue-"));
  readonly store = join(this.folder, "queue.db");
  readonly tokenFile = join(this.folder, "tokens");
  /** What it told as an error. */
  readonly errors: string[] = [];
  #server: QueueServer | undefined;

  constructor() {
    writeFileSync(this.tokenFile, `# who may call\n${TOKEN}\n`);
  }

  async start(options: Partial<QueueServerOptions> = {}): Promise<this> {
    const error = (_fields: object, message: string): void => void this.errors.push(message);
    const log = { info: () => undefined, warn: () => undefined, error };
    this.#server = await startQueueServer({
      host: "127.0.0.1",
      port: 0,
      store: this.store,
      tokenFile: this.tokenFile,
      clock: systemClock,
      ids: systemIds,
      log,
      ...options,
    });
    return this;
  }

  get url(): string {
    if (this.#server === undefined) throw new Error("it is not started");
    return this.#server.url;
  }

  client(token = TOKEN): QueueClient {
    return new QueueClient({ url: this.url, token });
  }

  async stop(): Promise<void> {
    await this.#server?.close();
    this.#server = undefined;
  }

  async remove(): Promise<void> {
    await this.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }
}
