/** Says what a SIGHUP comes to. */
import { onHangup } from "../hangup.ts";

const limit = setTimeout(() => process.exit(9), 20_000);
onHangup(process.env, () => {
  process.send?.("asked to end");
});
process.on("message", () => {
  process.send?.("goes on");
  clearTimeout(limit);
  process.disconnect?.();
  process.exit(0);
});
process.send?.("ready");
