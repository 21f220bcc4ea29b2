/** Says what a SIGHUP comes to. */
import { systemClock } from "../../kernel/system.ts";
import { onHangup } from "../hangup.ts";

const limit = systemClock.after(20_000, () => process.exit(9));
onHangup(process.env, () => {
  process.send?.("asked to end");
});
process.on("message", () => {
  process.send?.("goes on");
  limit.cancel();
  process.disconnect?.();
  process.exit(0);
});
process.send?.("ready");
