/** The stand-in as a process of its own: `stand-in-main KUBECONFIG LEDGER_URL START_MS`. It writes one line, and ends with its parent. */
import { systemClock, systemIds, systemRandom } from "../../../kernel/system.ts";
import { loadKubeApi } from "../../../kube/config.ts";
import { type StandInRoutes, startStandIn } from "./stand-in.ts";

const [kubeconfig = "", ledgerUrl = "", startMs = "0"] = process.argv.slice(2);
const example = new URL("../../../../examples/orders/routes.mjs", import.meta.url);
const { createRoutes } = (await import(example.href)) as { readonly createRoutes: (ledgerUrl: string) => StandInRoutes };

const standIn = await startStandIn({
  api: await loadKubeApi({ kubeconfig }),
  port: 0,
  routes: () => createRoutes(ledgerUrl),
  startMs: Number(startMs),
  clock: systemClock,
  random: systemRandom,
  ids: systemIds,
});
process.stdout.write(`${JSON.stringify({ port: standIn.port })}\n`);
process.stdin.resume();
process.stdin.once("end", () => process.exit(0)); // nobody is there any more
