/** One proxy in a process of its own: `relevo PORT BACKEND_PORT` or `http-proxy-3 PORT BACKEND_PORT`. Says `up` when it serves. */
import { createServer, Agent, get } from "node:http";
import { createProxyServer } from "http-proxy-3";
import { startGateway } from "../../src/gateway/server.ts";
import { epoch } from "../../src/kernel/epoch.ts";
import { systemClock, systemIds, systemRandom } from "../../src/kernel/system.ts";

const [kind, portText, backendText] = process.argv.slice(2);
const port = Number(portText);
const backend = Number(backendText);
process.once("SIGTERM", () => process.exit(0));

if (kind === "relevo") await serveRelevo();
else serveHttpProxy();

async function serveRelevo(): Promise<void> {
  const gateway = await startGateway({
    host: "127.0.0.1",
    port,
    controllerUrl: null,
    tokenKeys: [{ id: "bench", secret: "a secret for the bench only, of good length" }],
    clock: systemClock,
    ids: systemIds,
    random: systemRandom,
    log: { debug() {}, info() {}, warn: console.error, error: console.error },
  });
  gateway.apply({
    type: "membership",
    complete: true,
    ttlMs: 3_600_000,
    routes: [
      {
        route: "bench",
        generation: epoch(1, 1),
        policy: {
          hosts: [],
          retry: "idempotent",
          tries: 3,
          perTryTimeoutMs: 1_000,
          queueLimit: 500,
          queueWaitMs: 2_000,
          priority: "standard",
          slowStartMs: 0,
          concurrency: 512,
          healthPath: "/",
          healthEveryMs: 1_000,
          trino: null,
        },
        members: [
          {
            instance: "backend",
            incarnation: 1,
            bootId: null,
            host: "127.0.0.1",
            port: backend,
            state: "serving",
            deadline: null,
            writer: null,
          },
        ],
      },
    ],
  });
  // Its first request waits until the backend's check passed.
  get(`http://127.0.0.1:${port}/`, (answer) => {
    answer.resume();
    console.log("up");
  });
}

function serveHttpProxy(): void {
  const proxy = createProxyServer({
    target: `http://127.0.0.1:${backend}`,
    agent: new Agent({ keepAlive: true, maxSockets: 512, maxFreeSockets: 512 }),
    xfwd: true,
  });
  proxy.on("error", (error) => console.error(error.message));
  createServer((request, response) => proxy.web(request, response)).listen(port, "127.0.0.1", () => console.log("up"));
}
