/** Writes ids to the ledger; resolves when they are on its disk. */
import { randomUUID } from "node:crypto";
import { Agent, request } from "node:http";

const LIMIT_MS = 5_000;
const agent = new Agent({ keepAlive: true, maxSockets: 64 });

export class LedgerClient {
  #url;

  constructor(url) {
    this.#url = new URL(url);
  }

  /** `once`: a second execution with the same id is a fault that the ledger counts. */
  async append(id, kind, { once = false } = {}) {
    await this.#post("/append", JSON.stringify({ id, kind, once, execution: randomUUID() }));
  }

  #post(path, body) {
    return new Promise((resolve, reject) => {
      const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(body) };
      const sent = request(new URL(path, this.#url), { method: "POST", agent, headers, timeout: LIMIT_MS }, (response) => {
        response.resume();
        response.on("error", reject);
        response.on("end", () =>
          response.statusCode === 200 ? resolve() : reject(new Error(`the ledger answered ${response.statusCode}`)),
        );
      });
      sent.on("timeout", () => sent.destroy(new Error(`the ledger did not answer within ${LIMIT_MS} ms`)));
      sent.on("error", reject);
      sent.end(body);
    });
  }
}
