/** What one replacement asks of the API server, by the server's own record: Karpenter drifts the node of a pool of one. */
import { inventoriesPerPassMax, type RequestCount, requestCounts } from "../../src/cli/demo/kubernetes/audit.ts";
import { startSite } from "../../src/cli/demo/kubernetes/site.ts";
import { systemClock, systemIds } from "../../src/kernel/system.ts";
import { say } from "../fleet/machine.ts";

const POOL = "default/orders";
const WITHIN_MS = 180_000;

export interface ReplacementCost {
  readonly requests: number;
  readonly byKind: readonly RequestCount[];
  readonly inventoriesPerPassMax: number;
}

export async function measureReplacement(): Promise<ReplacementCost> {
  const site = await startSite({
    clock: systemClock,
    ids: systemIds,
    signal: new AbortController().signal,
    logLevel: "warn",
    nodePools: ["fleet"],
    tell: (sentence) => say("kubernetes", sentence),
  });
  try {
    await site.addPool({ name: "orders", mode: "Act", nodePool: "fleet", desired: 1 });
    await systemClock.sleep(5_000);
    const from = systemClock.now();
    const [instance] = await site.world.instances(POOL);
    const labels = { "demo/revision": "two" };
    await site.kubectl(
      "patch",
      "nodepool",
      "fleet",
      "--type=merge",
      "-p",
      JSON.stringify({ spec: { template: { metadata: { labels } } } }),
    );
    await site.world.until("the replacement", WITHIN_MS, async () => {
      const all = await site.world.instances(POOL);
      return all.some(({ id, phase }) => id === instance?.id && phase === "deleted") && (await site.world.serving(POOL)) === 1;
    });
    await systemClock.sleep(2_000); // status and Events of the last transition
    const window = [from, systemClock.now()] as const;
    const entries = site.audit();
    const byKind = requestCounts(entries, window);
    return {
      requests: byKind.reduce((sum, { count }) => sum + count, 0),
      byKind,
      inventoriesPerPassMax: inventoriesPerPassMax(entries, window),
    };
  } finally {
    await site.stop();
  }
}
