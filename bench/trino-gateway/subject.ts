/** Our gateway before one Trino cluster, in a process of its own: `PORT COORDINATOR_PORT COORDINATOR_ID`. Says `up` when it serves. */
import { startGateway } from "../../src/gateway/server.ts";
import { epoch } from "../../src/kernel/epoch.ts";
import { systemClock, systemIds, systemRandom } from "../../src/kernel/system.ts";
import { bootIdOf, COORDINATOR_PATH } from "../../src/model/trino.ts";

const [port = "", coordinator = "", coordinatorId = ""] = process.argv.slice(2);
process.once("SIGTERM", () => process.exit(0));

const gateway = await startGateway({
  host: "127.0.0.1",
  port: Number(port),
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
      route: "trino",
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
        healthPath: COORDINATOR_PATH,
        healthEveryMs: 1_000,
        trino: { routing: {}, clientTimeoutMs: 300_000, transactionTimeoutMs: 300_000 },
      },
      members: [
        {
          instance: "trino-1",
          incarnation: 1,
          bootId: bootIdOf("c", coordinatorId),
          host: "127.0.0.1",
          port: Number(coordinator),
          state: "serving",
          deadline: null,
          writer: null,
        },
      ],
    },
  ],
});
const member = gateway.core.membership.find("trino", "trino-1", 1);
while (member?.health !== "passing") await systemClock.sleep(20);
console.log("up");
