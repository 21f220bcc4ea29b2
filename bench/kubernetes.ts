/**
 * Relevo on a real API server: notices at once under the client's rate limit, a large inventory, and what one replacement costs the API. Prints one JSON document.
 * Targets: 50 notices: all evidence and cordons, p99 ≤ 2 s; 300: all within 20 s; 10,000 nodes and 50,000 pods: RSS ≤ 1 GiB, steady CPU ≤ 10 % of a core at 100
 * changes/s, a pass ≤ 200 ms p99, start ≤ 60 s; at most one inventory in a pass.
 *
 * The control plane is a real one with kwok's nodes; each instance speaks the protocol through the stand-in. What the controller costs is read from its own process. The
 * large inventory lies in the embedded API, in a process of its own. All of it shares this machine.
 */
import { systemClock } from "../src/kernel/system.ts";
import { loadAverage } from "./fleet/machine.ts";
import { measureLarge } from "./kubernetes/large.ts";
import { measureNotices } from "./kubernetes/notices.ts";
import { measureReplacement } from "./kubernetes/replacement.ts";

const TARGET = {
  notices50: { of: 50, p99S: 2 },
  notices300: { of: 300, allWithinS: 20 },
  large: { rssMiB: 1024, cpuShare: 0.1, passP99Ms: 200, startS: 60 },
  inventoriesPerPassMax: 1,
};

const wanted = process.argv.slice(2);
const isWanted = (part: string) => wanted.length === 0 || wanted.includes(part);
const startedAt = systemClock.monotonic();
const replacement = isWanted("replacement") ? await measureReplacement() : undefined;
const real = isWanted("notices") ? await measureNotices() : undefined;
const large = isWanted("large") ? await measureLarge({ nodes: 10_000, pods: 50_000 }) : undefined;
const result = {
  bench: "kubernetes",
  level: "real API server with simulated nodes; `large` over the embedded API",
  ...real,
  ...(large === undefined ? {} : { large }),
  ...(replacement === undefined ? {} : { replacement }),
  target: TARGET,
  loadAverage: loadAverage(),
  seconds: Math.round((systemClock.monotonic() - startedAt) / 1_000),
};
process.stdout.write(`${JSON.stringify(result)}\n`);
const isWhole = real === undefined || (real.notices50.cordons === 50 && real.notices50.evidence === 50);
if (!isWhole || (replacement !== undefined && replacement.inventoriesPerPassMax > 1)) process.exitCode = 1;
