/** `relevo gateway`: the data plane. It never opens the store; it holds a stream to each controller. */
import { createServer as createHttpServer } from "node:http";
import { startGateway } from "../../gateway/server.ts";
import type { TokenKey } from "../../gateway/tokens.ts";
import { systemClock, systemIds, systemRandom } from "../../kernel/system.ts";
import { createLogger } from "../../server/log.ts";
import { tellReady, untilAskedToEnd } from "./child.ts";
import { gatewayAdmin } from "./gateway-admin.ts";

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
  readonly token: () => string | undefined;
  /** What its replica id begins with: to that its token may be bound. */
  readonly name?: string | undefined;
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
    name: options.name,
    tokenKeys: options.tokenKeys,
    clock: systemClock,
    ids: systemIds,
    random: systemRandom,
    log,
  });
  const admin = createHttpServer(gatewayAdmin(gateway, (err) => log.error({ err }, "the metrics cannot be collected")));
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
