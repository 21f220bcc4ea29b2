/**
 * A thousand pools of workers over all kinds of signals under one controller: see `scaling/pools.ts` for what is modelled. In real time, so that it needs a machine
 * that does nothing else. Prints one JSON document; fails when a target is missed.
 */
import { measurePools } from "./scaling/pools.ts";

const figures = await measurePools();
process.stdout.write(`${JSON.stringify({ bench: "scaling-pools", ...figures })}\n`);
process.exit(figures.holds ? 0 : 1);
