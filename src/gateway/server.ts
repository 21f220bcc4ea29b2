/** Composes a gateway: the core, the fronts for its clients, the checks of its members, the line to the controller. */
import type { Registry } from "prom-client";
import type { Clock } from "../kernel/clock.ts";
import type { Ids } from "../kernel/ids.ts";
import type { Random } from "../kernel/random.ts";
import type { ControllerLine, GatewayReport } from "../model/membership.ts";
import { Fronts } from "./fronts.ts";
import { GatewayCore, type GatewayLog } from "./core.ts";
import { HealthChecks, httpHealthCheck } from "./health.ts";
import { ControllerLinks, type Resolve } from "./links.ts";
import { gatewayMetrics } from "./metrics.ts";
import { reportOf } from "./report.ts";
import { Tokens, type TokenKey } from "./tokens.ts";

export interface GatewayOptions {
  readonly host: string;
  /** 0 lets the system choose. */
  readonly port: number;
  /**
   * `http://host:port`, of each controller; a name with several addresses means one at each. Null for a gateway that is told its membership by `apply` only.
   */
  readonly controllerUrl: string | readonly string[] | null;
  /** All addresses of a name; of the system unless given. */
  readonly resolve?: Resolve | undefined;
  /** The replica in whose place this one was started, once that had ended: its parent knows. */
  readonly predecessor?: string | undefined;
  /** Bearer token for the controller; a function is asked at each call. */
  readonly token?: string | (() => string | undefined) | undefined;
  /** What its replica id begins with, where its token is bound to that: at most 50 characters. */
  readonly name?: string | undefined;
  /** Shared by all replicas; the first signs, all verify. */
  readonly tokenKeys: readonly TokenKey[];
  readonly clock: Clock;
  readonly ids: Ids;
  readonly random: Random;
  readonly log: GatewayLog;
}

export interface Gateway {
  readonly url: string;
  /** New at each start. */
  readonly replica: string;
  readonly metrics: Registry;
  readonly core: GatewayCore;
  /** Applies a line as if the controller had sent it. */
  apply(line: ControllerLine): void;
  report(): GatewayReport;
  /**
   * Stops accepting connections, tells the others to go (`Connection: close`, GOAWAY), waits for what is in flight at most `graceMs`, then ends
   * what is left.
   */
  close(options?: { readonly graceMs?: number }): Promise<void>;
}

export async function startGateway(options: GatewayOptions): Promise<Gateway> {
  const { clock, ids, random, log } = options;
  const replica = ids.next(options.name ?? "gateway");
  const core = new GatewayCore({ clock, ids, log, tokens: new Tokens(options.tokenKeys) });
  const checks = new HealthChecks(core, httpHealthCheck(clock));
  let sequence = 0;
  let isLeaving = false;
  const report = (): GatewayReport => reportOf(replica, ++sequence, core.membership, core.ledger, isLeaving);
  const links =
    options.controllerUrl === null
      ? null
      : new ControllerLinks({
          controllerUrls: [options.controllerUrl].flat(),
          resolve: options.resolve,
          token: options.token,
          replica,
          predecessor: options.predecessor,
          clock,
          random,
          log,
          line: (line, source) => core.applyLine(line, source),
          closed: (source) => core.step({ type: "closed", source }),
          report,
        });
  core.listen({
    memberAdded: (member) => checks.add(member),
    memberGone: (member) => checks.remove(member),
    checkNow: (member) => checks.now(member),
    reportSoon: () => links?.reportSoon(),
  });

  const fronts = new Fronts(core);
  const address = await fronts.listen(options.host, options.port);
  core.start();
  links?.start();
  log.info({ replica, url: address }, "the gateway is up");

  return {
    url: address,
    replica,
    metrics: gatewayMetrics(core),
    core,
    apply: (line) => core.applyLine(line),
    report,
    async close({ graceMs = 0 } = {}) {
      core.stopping = true;
      await fronts.close(graceMs);
      isLeaving = true;
      await links?.sendReport();
      links?.stop();
      checks.stop();
      core.stop();
    },
  };
}
