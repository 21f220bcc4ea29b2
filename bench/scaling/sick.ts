/** What no number of instances helps against: jobs that hang, and something that all share. */
import { seededRandom } from "../../src/sim/seeded.ts";
import { hpa } from "./hpa.ts";
import { policyOf, relevo } from "./policy.ts";
import { type Figures, type Load, loadOf, MAX, run, TARGET } from "./workers.ts";

const MINUTE = 60;
/** Of the jobs that arrive in these minutes every twentieth hangs. */
const HANGS = { from: 20 * MINUTE, to: 50 * MINUTE, share: 0.05 };
const REAPED_AFTER_S = 150;
/** More than an instance has slots: some work may wait. */
const BACKLOG_TARGET = 8;

interface Fate {
  readonly mostInstances: number;
  readonly risesWhileStuck: number;
  /** Waiting and taken in the end. */
  readonly left: number;
  readonly ended: number;
  readonly instanceHours: number;
}

export interface Sick {
  /** Every twentieth job hangs and nobody ends it. */
  readonly hanging: { readonly relevo: Fate; readonly hpa: Fate };
  /** The same, and what hangs is reaped. */
  readonly reaped: { readonly relevo: Fate; readonly hpa: Fate };
  /** All wait for one thing, which serves six sevenths of what arrives for 40 minutes. */
  readonly shared: { readonly relevo: Fate; readonly hpa: Fate };
  readonly problems: readonly string[];
}

export function sick(seed: number): Sick {
  const random = seededRandom(seed, "sick");
  const plain = loadOf({ name: "sick", rate: (s) => (s < 90 * MINUTE ? 4 : 1) }, random);
  const arrivals = plain.arrivals.map((jobs, second) =>
    second < HANGS.from || second >= HANGS.to ? jobs : jobs.map((job) => (random.next() < HANGS.share ? Number.POSITIVE_INFINITY : job)),
  );
  const crowd = loadOf({ name: "shared", rate: (s) => (s < 20 * MINUTE || s > 60 * MINUTE ? 2 : 3.5) }, random);
  const hanging = both({ ...plain, arrivals });
  const reaped = both({ ...plain, arrivals, reapedAfterS: REAPED_AFTER_S });
  const shared = both({ ...crowd, atOnce: 18 }, BACKLOG_TARGET);
  const problems = [
    ...(hanging.relevo.risesWhileStuck + reaped.relevo.risesWhileStuck > 0 ? ["it grew while slots were stuck"] : []),
    ...(hanging.relevo.mostInstances >= hanging.hpa.mostInstances ? ["with what hangs it grew as far as the reference"] : []),
    ...(reaped.relevo.left > MAX ? [`with what hangs reaped it did not drain: ${reaped.relevo.left} are left`] : []),
    ...(shared.relevo.mostInstances >= shared.hpa.mostInstances ? ["with what is shared it grew as far as the reference"] : []),
    ...(shared.relevo.ended < 0.98 * shared.hpa.ended ? ["with what is shared it finished less than the reference"] : []),
  ];
  return { hanging, reaped, shared, problems };
}

function both(load: Load, target = TARGET): { readonly relevo: Fate; readonly hpa: Fate } {
  return { relevo: fateOf(run(load, relevo(policyOf({ target })).scaler)), hpa: fateOf(run(load, hpa(target))) };
}

function fateOf({ mostInstances, risesWhileStuck, left, ended, instanceHours }: Figures): Fate {
  return { mostInstances, risesWhileStuck, left, ended, instanceHours: Math.round(instanceHours * 10) / 10 };
}
