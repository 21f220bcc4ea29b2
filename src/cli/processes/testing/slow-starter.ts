/** A child that is still starting when its parent goes, and would not end by itself. */
import { createServer } from "node:net";
import { untilAskedToEnd } from "../child.ts";

const server = createServer().listen(0, "127.0.0.1");
process.send?.("starting");
// Only a parent that went makes `connected` false; nobody listens for it yet, as in a start that waits for others.
while (process.connected) await new Promise((resolve) => setImmediate(resolve));
await untilAskedToEnd();
server.close();
