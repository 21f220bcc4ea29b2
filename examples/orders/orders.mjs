/**
 * Orders: a service that keeps no state of its own. Whatever it acknowledges it has first written to the ledger (`LEDGER_URL`), so that a client can
 * check afterwards that nothing acknowledged is missing. What is hard to move is all here: short requests, streams, WebSockets, transactions of several
 * requests on one instance.
 *
 * Plain JavaScript with the compile cache on, because a replacement starts while clients wait: this is the fastest start that Node has.
 */
import { existsSync } from "node:fs";
import { enableCompileCache, flushCompileCache } from "node:module";

enableCompileCache();
// A workload of your own imports "relevo/sdk"; in a clone, which is not built, the sources are taken.
const sources = new URL("../../src/sdk/index.ts", import.meta.url);
const [{ createInstance }, { createRoutes }] = await Promise.all([
  import(existsSync(sources) ? sources.href : "relevo/sdk"),
  import("./routes.mjs"),
]);

const ledgerUrl = process.env.LEDGER_URL;
if (!ledgerUrl) console.error("LEDGER_URL is not set: what orders acknowledges is written down nowhere.");

const routes = createRoutes(ledgerUrl);
// The ledger is no part of its health: a fault that all instances share must not take them all out of traffic at once.
const instance = createInstance({ handler: routes.handle, onUpgrade: routes.upgrade });
routes.attach(instance);

// Kubernetes asks so before it kills: no new work from here on, and the process goes when what it has is done.
process.once("SIGTERM", async () => {
  await instance.perform("close", "sigterm", null);
  await instance.whenIdle();
  process.exit(0);
});

const { host, port } = await instance.listen();
console.log(JSON.stringify({ message: "orders serves", host, port, instance: instance.name, bootId: instance.bootId }));
await routes.warm();
flushCompileCache(); // what is killed writes no cache at its end, and the next one would start slowly again
