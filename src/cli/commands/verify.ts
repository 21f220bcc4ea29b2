/**
 * `relevo verify disruption POOL [--replace NODE]`: whether a disruption would be, and with `--replace` is, without loss; by what is seen on the user's own
 * cluster. Exit code 1 when a claim does not hold, 3 when nothing could have failed.
 */
import { formatInstant } from "../../kernel/clock.ts";
import { parseDuration } from "../../kernel/units.ts";
import { nodeView, type ProtectionView, protectionView } from "../../server/views.ts";
import { connect, poolKeyOf } from "../client.ts";
import type { CliContext, GlobalOptions } from "../context.ts";
import { EXIT, type ExitCode, UsageError } from "../exit.ts";
import { renderDocument } from "../output.ts";
import { type Claim, levelOf, nothingShown, protectionClaims, replacementClaims } from "../verify/report.ts";
import { replaceNode } from "../verify/replace.ts";

export interface VerifyOptions extends GlobalOptions {
  readonly replace?: string;
  readonly gateway?: string;
  readonly rate: string;
  readonly within: string;
}

const RATE_MAX = 1_000;
const WITHIN_MAX_MS = 6 * 3_600_000;

export async function verifyDisruption(context: CliContext, name: string, options: VerifyOptions): Promise<ExitCode> {
  const load = options.replace === undefined ? undefined : loadOf(options);
  const client = connect(context, options);
  const pool = poolKeyOf(name, options.namespace);
  const pods = await client.list(`/v1/pools/${pool}/protection`, protectionView);
  const level = levelOf(await client.list("/v1/nodes", nodeView));
  const protection = protectionClaims(pods);
  const replaced =
    load && options.replace !== undefined ? await replaceNode(context, client, { pool, node: options.replace, ...load }) : null;
  const claims = replaced === null ? protection : [...protection, ...replacementClaims(replaced)];
  const nothing = [...(pods.length === 0 ? ["no pod of the pool is live"] : []), ...(replaced === null ? [] : nothingShown(replaced))];
  const verdict = nothing.length > 0 ? "nothing shown" : claims.every(({ held }) => held) ? "held" : "not held";
  const report = { pool, at: formatInstant(context.clock.now()), level, verdict, nothingShown: nothing, claims, pods, replaced };
  context.out(renderDocument(report, options.output) ?? textOf(report));
  if (nothing.length > 0) return EXIT.refused;
  return verdict === "held" ? EXIT.done : EXIT.failed;
}

function loadOf({ gateway, rate, within }: VerifyOptions): { readonly url: string; readonly perSecond: number; readonly withinMs: number } {
  if (gateway === undefined || !/^https?:$/.test(URL.parse(gateway)?.protocol ?? ""))
    throw new UsageError("gateway_invalid", "--replace needs --gateway: where the requests are sent.", {
      found: gateway ?? "none",
      allowed: "the gateway's address with a path that answers a plain GET, such as http://127.0.0.1:8080/",
    });
  const perSecond = Number(rate);
  if (!(perSecond >= 1 && perSecond <= RATE_MAX))
    throw new UsageError("rate_invalid", "--rate is not valid.", { found: rate, allowed: `1 to ${RATE_MAX} requests a second` });
  const withinMs = parseDuration(within);
  if (withinMs === undefined || withinMs === 0 || withinMs > WITHIN_MAX_MS)
    throw new UsageError("duration_invalid", "--within is not valid.", { found: within, allowed: "a duration such as 10m, at most 6h" });
  return { url: gateway, perSecond, withinMs };
}

function textOf({
  pool,
  level,
  verdict,
  nothingShown: nothing,
  claims,
  pods,
}: {
  readonly pool: string;
  readonly level: string;
  readonly verdict: string;
  readonly nothingShown: readonly string[];
  readonly claims: readonly Claim[];
  readonly pods: readonly ProtectionView[];
}): string {
  return [
    `pool ${pool}; level: ${level}`,
    ...pods.map(
      ({ pod, owners, node, provisioner }) =>
        `  ${pod}: ${owners.join(" → ") || "no owner"}; on ${node ?? "no node"} (${provisioner ?? "no known owner"})`,
    ),
    ...claims.map(({ claim, held, found }) => `${held ? "holds " : "FAILS "} ${claim}: ${found}`),
    ...nothing.map((why) => `shows nothing: ${why}`),
    `verdict: ${verdict}`,
    "",
  ].join("\n");
}
