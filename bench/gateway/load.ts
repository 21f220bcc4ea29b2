/**
 * A load client with an even pace: `PORT REQUESTS_PER_S SECONDS CONNECTIONS`. Each connection sends at its own times, spread evenly; the latency of a request
 * that had to wait for its connection counts from the time at which it was due. Prints `{ "sent", "p50Ms", "p99Ms", "late" }`; the first fifth is warm-up and not counted.
 */
import { connect, type Socket } from "node:net";

const [port = 0, rate = 0, seconds = 0, connections = 0] = process.argv.slice(2).map(Number);
const REQUEST = Buffer.from("GET /bench HTTP/1.1\r\nHost: bench\r\n\r\n");
const everyMs = (1000 * connections) / rate;
const latencies: number[] = [];
let late = 0;

const sockets = await Promise.all(Array.from({ length: connections }, () => open()));
const start = performance.now() + 50;
const countFrom = start + (seconds * 1000) / 5;
const end = start + seconds * 1000;
await Promise.all(sockets.map((socket, index) => pace(socket, start + (index * everyMs) / connections)));
for (const socket of sockets) socket.destroy();
latencies.sort((a, b) => a - b);
const at = (share: number) =>
  Math.round((latencies[Math.min(latencies.length - 1, Math.floor(latencies.length * share))] ?? 0) * 1000) / 1000;
console.log(JSON.stringify({ sent: latencies.length, p50Ms: at(0.5), p99Ms: at(0.99), late }));

function open(): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: "127.0.0.1", noDelay: true }, () => resolve(socket));
    socket.once("error", reject);
  });
}

function pace(socket: Socket, first: number): Promise<void> {
  return new Promise((resolve) => {
    let due = first;
    let text = "";
    let from = due;
    const next = () => {
      if (due >= end) return resolve();
      const delay = due - performance.now();
      // A connection that is still busy when its next request is due makes that one wait; a timer that fires late does not.
      from = due;
      if (delay <= 0) socket.write(REQUEST);
      else
        setTimeout(() => {
          from = performance.now();
          socket.write(REQUEST);
        }, delay);
    };
    socket.on("data", (chunk) => {
      text += chunk.toString("latin1");
      const head = text.indexOf("\r\n\r\n");
      if (head < 0) return;
      const length = Number(/content-length: (\d+)/i.exec(text)?.[1] ?? 0);
      if (text.length < head + 4 + length) return;
      if (!text.startsWith("HTTP/1.1 200")) throw new Error(text.slice(0, 200));
      text = "";
      const now = performance.now();
      if (due >= countFrom) latencies.push(now - from);
      due += everyMs;
      if (due < now) late += 1;
      next();
    });
    next();
  });
}
