/** The gateway replicas. */
import { bad, type Finding, ok } from "../../model/finding.ts";
import { type GatewayView, gatewayView } from "../../server/views.ts";
import type { ControllerClient } from "../client.ts";

export async function checkGateways(client: ControllerClient): Promise<readonly Finding[]> {
  const gateways = await client.list("/v1/gateways", gatewayView);
  if (gateways.length === 0)
    return [bad("gateways", "refused", "no replica is registered: nothing can be admitted", "start npx relevo gateway --controller URL")];
  return gateways.map(findingOfGateway);
}

function findingOfGateway({ replica, silent, connected, routes }: GatewayView): Finding {
  const check = `gateway ${replica}`;
  if (silent)
    return bad(
      check,
      "warning",
      "is silent for longer than its TTL",
      "restart it, or leave it: seals no longer wait for it, and are assumed",
    );
  if (!connected)
    return bad(check, "warning", "is cut off and serves what it knew last", "see its log: seals wait for it until its TTL ends");
  const behind = routes.filter(({ applied, current }) => applied !== current);
  if (behind.length === 0) return ok(check, "is connected and current");
  return bad(
    check,
    "warning",
    `has not yet applied ${behind.map(({ route, applied, current }) => `${current} of ${route} (it has ${applied})`).join(", ")}`,
    "look again: this lasts a second at most while all is well",
  );
}
