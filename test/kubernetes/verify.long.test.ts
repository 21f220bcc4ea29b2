/** `relevo verify disruption --replace` on a control plane that we did not write. Level: real API server with simulated nodes. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Site, startSite } from "../../src/cli/demo/kubernetes/site.ts";
import { systemClock, systemIds } from "../../src/kernel/system.ts";
import { verifyOrders } from "../end-to-end/verify-orders.ts";

const WITHIN = { timeout: 60_000, interval: 250 };

let site: Site;
beforeAll(async () => {
  site = await startSite({
    clock: systemClock,
    ids: systemIds,
    signal: new AbortController().signal,
    logLevel: "info",
    nodePools: ["fleet"],
    tell: () => undefined,
  });
  await site.addPool({ name: "orders", mode: "Act", nodePool: "fleet", desired: 2 });
});
afterAll(() => site?.stop());

test("each pod is protected by its owners' UIDs, and a node's instance is replaced while no request fails", async () => {
  const { controllerUrl, gatewayUrl } = site.addresses;
  await expect.poll(async () => (await verifyOrders(controllerUrl)).report.verdict, WITHIN).toBe("held");

  const [first] = (await site.world.instances("default/orders")).filter(({ phase }) => phase === "serving");
  const { code, report } = await verifyOrders(
    controllerUrl,
    ...["--replace", first?.node ?? "", "--gateway", `${gatewayUrl}/export?id=verify&seconds=1`, "--rate", "20", "--within", "4m"],
  );

  expect(report.claims.filter(({ held }) => !held)).toEqual([]);
  expect([code, report.verdict, report.level, report.nothingShown]).toEqual([0, "held", "real API server with simulated nodes", []]);
  expect(report.pods.map(({ owners }) => owners.map((owner) => owner.split(" ")[0]))).toEqual(Array(2).fill(["ReplicaSet", "Deployment"]));
  expect([report.replaced?.client.failed, report.replaced?.replacements.length]).toEqual([0, 1]);
});
