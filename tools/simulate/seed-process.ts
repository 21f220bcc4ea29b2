/** A child of `simulate.ts`: gets seeds, one message each, and answers each with what came of it, in the order in which they came. */
import { summarise } from "./seed-summary.ts";

let last = Promise.resolve();
process.on("message", ({ seed, log }: { readonly seed: number; readonly log: boolean }) => {
  last = last.then(async () => void process.send?.(await summarise(seed, log)));
});
// Its parent ended: nobody wants to know any more.
process.on("disconnect", () => process.exit());
