/**
 * Clients of the statement protocol: `statements PORT SECONDS CONNECTIONS` runs small statements one after the other on each connection and prints
 * `{ "requests", "statements", "seconds", "failed", "p50Ms", "p99Ms" }`; `big PORT MB TIMES` fetches results of so many MB, and prints `{ "mb", "seconds", "failed" }`.
 */
import { connect, type Socket } from "node:net";

const [kind = "", ...numbers] = process.argv.slice(2);
const [port = 0, amount = 0, count = 0] = numbers.map(Number);
const HEADERS = `Host: 127.0.0.1:${port}\r\nX-Trino-User: bench\r\nX-Trino-Source: bench\r\nAccept: application/json\r\n`;
/** Answers longer than this are only counted: of them the first part is looked at. */
const LOOKED_AT = 2_048;

interface Answer {
  readonly status: number;
  readonly start: string;
  readonly bytes: number;
}

class Connection {
  readonly #socket: Socket;
  #taken: ((answer: Answer) => void) | null = null;
  #text = "";
  #left = -1;
  #bytes = 0;
  #status = 0;
  #chunkedEnd = "";

  constructor(socket: Socket) {
    this.#socket = socket;
    socket.on("data", (chunk: Buffer) => this.#take(chunk));
    socket.on("close", () => this.#taken?.({ status: 0, start: "", bytes: 0 }));
  }

  static open(): Promise<Connection> {
    return new Promise((resolve, reject) => {
      const socket = connect({ port, host: "127.0.0.1", noDelay: true }, () => resolve(new Connection(socket)));
      socket.on("error", reject);
    });
  }

  ask(method: string, path: string, body = ""): Promise<Answer> {
    this.#text = "";
    this.#left = -1;
    this.#bytes = 0;
    this.#chunkedEnd = "";
    return new Promise((resolve) => {
      this.#taken = resolve;
      this.#socket.write(`${method} ${path} HTTP/1.1\r\n${HEADERS}${body === "" ? "" : `Content-Length: ${body.length}\r\n`}\r\n${body}`);
    });
  }

  close(): void {
    this.#taken = null;
    this.#socket.destroy();
  }

  #take(chunk: Buffer): void {
    let data = chunk;
    if (this.#left === -1) {
      this.#text += data.toString("latin1");
      const head = this.#text.indexOf("\r\n\r\n");
      if (head < 0) return;
      const length = /\r\ncontent-length: *(\d+)/i.exec(this.#text.slice(0, head))?.[1];
      this.#status = Number(this.#text.slice(9, 12));
      this.#left = length === undefined ? Number.POSITIVE_INFINITY : Number(length);
      data = Buffer.from(this.#text.slice(head + 4), "latin1");
      this.#text = "";
    }
    this.#left -= data.length;
    this.#bytes += data.length;
    if (this.#text.length < LOOKED_AT) this.#text += data.toString("latin1", 0, LOOKED_AT);
    // Of a chunked answer the end is its last chunk.
    if (this.#left === Number.POSITIVE_INFINITY)
      this.#chunkedEnd = `${this.#chunkedEnd}${data.toString("latin1", Math.max(0, data.length - 8))}`.slice(-8);
    if (this.#left <= 0 || this.#chunkedEnd.endsWith("\r\n0\r\n\r\n")) this.#end();
  }

  #end(): void {
    const taken = this.#taken;
    this.#taken = null;
    taken?.({ status: this.#status, start: this.#text, bytes: this.#bytes });
  }
}

function nextOf({ start }: Answer): string | undefined {
  return /"nextUri":"http:\/\/[^/"]*([^"]*)"/.exec(start)?.[1];
}

if (kind === "statements") await statements(amount, count);
else await bigResults(amount, count);

async function statements(seconds: number, connections: number): Promise<void> {
  const latencies: number[] = [];
  let done = 0;
  let failed = 0;
  const began = performance.now();
  const until = began + seconds * 1_000;
  await Promise.all(
    Array.from({ length: connections }, async () => {
      const connection = await Connection.open();
      const ask = async (method: string, path: string, body?: string) => {
        const from = performance.now();
        const answer = await connection.ask(method, path, body);
        latencies.push(performance.now() - from);
        if (answer.status !== 200) failed += 1;
        return answer;
      };
      while (performance.now() < until) {
        let next = nextOf(await ask("POST", "/v1/statement", "SELECT 1"));
        while (next !== undefined) next = nextOf(await ask("GET", next));
        done += 1;
      }
      connection.close();
    }),
  );
  const took = (performance.now() - began) / 1_000;
  latencies.sort((a, b) => a - b);
  const at = (share: number) => Math.round((latencies[Math.floor(latencies.length * share)] ?? 0) * 100) / 100;
  console.log(JSON.stringify({ requests: latencies.length, statements: done, seconds: took, failed, p50Ms: at(0.5), p99Ms: at(0.99) }));
}

async function bigResults(mb: number, times: number): Promise<void> {
  let bytes = 0;
  let failed = 0;
  const began = performance.now();
  const connection = await Connection.open();
  for (let turn = 0; turn < times; turn++) {
    let answer = await connection.ask("POST", "/v1/statement", `big ${mb}`);
    const before = bytes;
    for (let next = nextOf(answer); next !== undefined; next = nextOf(answer)) {
      answer = await connection.ask("GET", next);
      bytes += answer.bytes;
    }
    if (answer.status !== 200 || bytes - before < mb * 1_000_000) failed += 1;
  }
  connection.close();
  console.log(JSON.stringify({ mb: bytes / 1024 / 1024, seconds: (performance.now() - began) / 1_000, failed }));
}
