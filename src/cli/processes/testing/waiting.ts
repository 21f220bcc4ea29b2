/** A child that is up and waits to be asked to end; it answers every message with whether it was. */
import { untilAskedToEnd } from "../child.ts";

const asked = untilAskedToEnd();
let isAsked = false;
process.on("SIGINT", () => process.send?.("SIGINT came"));
process.on("message", () => process.send?.(isAsked ? "asked" : "not asked"));
process.send?.("up");
await asked;
isAsked = true;
