/** A child that is up and waits to be asked to end; it answers every message with whether it was. */
import { createServer } from "node:net";
import { untilAskedToEnd } from "../child.ts";

// What keeps a real one alive: the line to its parent does not.
const server = createServer().listen(0, "127.0.0.1");
const asked = untilAskedToEnd();
let isAsked = false;
process.on("SIGINT", () => process.send?.("SIGINT came"));
process.on("message", () => process.send?.(isAsked ? "asked" : "not asked"));
process.send?.("up");
await asked;
isAsked = true;
server.close();
