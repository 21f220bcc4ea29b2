/** `relevo gateway`: the data plane. It never opens the store; it holds a stream to each controller. */
import { createServer as createHttpServer } from "node:http";
import { type Gateway, startGateway } from "../../gateway/server.ts";
import type { TokenKey } from "../../gateway/tokens.ts";
import { systemClock, systemIds, systemRandom } from "../../kernel/system.ts";
import { createLogger } from "../../server/log.ts";
import { tellReady, untilAskedToEnd } from "./child.ts";

export interface GatewayProcessOptions {
  /** Of each controller; a name with several addresses means one at each. */
  readonly controllerUrls: readonly string[];
  readonly host: string;
  /** 0 lets the system choose. */
  readonly port: number;
  /** Of `/metrics`, `/healthz` and `/readyz`, which show nothing secret and take nothing. */
  readonly adminHost: string;
  /** 0 lets the system choose. */
  readonly adminPort: number;
  /** The replica that ran in this place before and has ended. */
  readonly predecessor?: string | undefined;
  readonly token?: string | undefined;
  readonly tokenKeys: readonly TokenKey[];
  /** How long requests in flight may go on after the process was asked to end. */
  readonly graceMs: number;
  readonly logLevel: string;
}

/** Runs until it is asked to end. */
export async function runGateway(options: GatewayProcessOptions): Promise<void> {
  const asked = untilAskedToEnd();
  const log = createLogger({ level: options.logLevel, name: "gateway", clock: systemClock });
  const gateway = await startGateway({
    host: options.host,
    port: options.port,
    controllerUrl: options.controllerUrls,
    predecessor: options.predecessor,
    token: options.token,
    tokenKeys: options.tokenKeys,
    clock: systemClock,
    ids: systemIds,
    random: systemRandom,
    log,
  });
  const admin = createHttpServer((request, response) => {
    if (request.url === "/healthz") return void response.writeHead(200).end("ok\n");
    if (request.url === "/readyz") {
      const trouble = notReady(gateway);
      return void response.writeHead(trouble === undefined ? 200 : 503).end(`${trouble ?? "ready"}\n`);
    }
    if (request.url !== "/metrics") return void response.writeHead(404).end();
    gateway.metrics.metrics().then(
      (text) => response.writeHead(200, { "content-type": gateway.metrics.contentType }).end(text),
      (error: unknown) => {
        log.error({ err: error }, "the metrics cannot be collected");
        response.writeHead(500).end();
      },
    );
  });
  const adminPort = await new Promise<number>((resolve, reject) => {
    admin.once("error", reject);
    admin.listen(options.adminPort, options.adminHost, () => {
      const address = admin.address();
      resolve(typeof address === "object" && address !== null ? address.port : options.adminPort);
    });
  });
  tellReady({ gateway: gateway.url, replica: gateway.replica, metrics: `http://127.0.0.1:${adminPort}/metrics` });

  await asked;
  await gateway.close({ graceMs: options.graceMs });
  admin.close();
}

/** A gateway that is cut off is ready all the same: it serves on with what it knows. */
function notReady({ core }: Gateway): string | undefined {
  if (core.stopping) return "it ends";
  return core.membership.isInformed ? undefined : "no controller has said yet who may get traffic";
}
