/** What must hold in every storm, looked at where it can break. A violation fails the run. */
import type { Instant } from "../../kernel/clock.ts";
import { compareEpochs, type Epoch } from "../../kernel/epoch.ts";
import { PRIORITIES } from "../../model/membership.ts";
import type { Evacuee, EvacuationInput, Grant, Supply } from "../../plan/evacuation/types.ts";
import { takenFromThoseExpected } from "../held-back.ts";
import type { Place } from "./sites.ts";
import type { Traffic } from "./traffic.ts";

export interface StormViolation {
  readonly id: string;
  readonly atMs: number;
  readonly sentence: string;
}

/** More say nothing new. */
const MAX_VIOLATIONS = 20;
/** Of two that would serve within the same second the schedule may take either. */
const SAME_TIME_MS = 1_000;
/** From here on a spot is taken only when nothing cooler is left. */
const HOT = 0.5;
/** For so long after one of a class was noticed the others are expected to follow. */
const EXPECTED_MS = 120_000;

export class StormChecks {
  readonly violations: StormViolation[] = [];
  readonly #clock: { monotonic(): number };
  readonly #writers = new Map<string, { epoch: Epoch; by: string }>();
  readonly #tokens = new Map<string, { readonly tokens: number; readonly at: Instant }>();

  /** By class: when one of it was last noticed. */
  readonly #noticedAt = new Map<string, Instant>();

  constructor(clock: { monotonic(): number }) {
    this.#clock = clock;
  }

  /** I1, I2: a result of a workload was accepted. */
  accepted(workload: string, epoch: Epoch, by: string, minAccepted: Epoch): void {
    const last = this.#writers.get(workload);
    if (compareEpochs(epoch, minAccepted) < 0)
      this.#violate("I2", `${workload}: a result of ${epoch} lands below the tombstone ${minAccepted}`);
    if (last !== undefined && compareEpochs(epoch, last.epoch) < 0)
      this.#violate("I2", `${workload}: a result of ${epoch} lands after one of ${last.epoch}`);
    if (last?.epoch === epoch && last.by !== by) this.#violate("I1", `${workload}: ${last.by} and ${by} both write under ${epoch}`);
    if (last === undefined || compareEpochs(epoch, last.epoch) >= 0) this.#writers.set(workload, { epoch, by });
  }

  /** I11 */
  traffic(workload: string, passedCheckAt: Instant | null): void {
    if (passedCheckAt === null) this.#violate("I11", `${workload}: requests go to a place that never passed its check`);
  }

  /** I12: the tokens of a site by the checker's own count; called at every look, so that a rate that is learned anew is followed. */
  looked({ site, perSecond, burst }: Supply["absorption"], now: Instant): void {
    const { tokens, at } = this.#tokens.get(site) ?? { tokens: burst, at: now };
    this.#tokens.set(site, { tokens: Math.min(burst, tokens + ((now - at) / 1_000) * perSecond), at: now });
  }

  /** I12: a start at a site. */
  started(absorption: Supply["absorption"], now: Instant): void {
    this.looked(absorption, now);
    const { site } = absorption;
    const tokens = (this.#tokens.get(site)?.tokens ?? 0) - 1;
    this.#tokens.set(site, { tokens, at: now });
    // Between two looks the rate may have risen: by less than one token.
    if (tokens < -1) this.#violate("I12", `${site}: ${(-tokens).toFixed(2)} more starts than the bucket holds`);
  }

  /** I12: places. */
  places(places: readonly Place[]): void {
    for (const { id, free } of places) if (free < 0) this.#violate("I12", `${id}: ${-free} more places are given than there are`);
  }

  /** I13: one of the class has to go. */
  noticed(of: string, now: Instant): void {
    this.#noticedAt.set(of, now);
  }

  /** I13: who is expected to follow is told to the schedule. `atHome`: how many of each class were not noticed yet. */
  expected(input: EvacuationInput, atHome: ReadonlyMap<string, number>): void {
    for (const [of, at] of this.#noticedAt) {
      const count = atHome.get(of) ?? 0;
      const told = input.exposed?.find(({ pool }) => pool === of)?.count ?? 0;
      if (input.now < at + EXPECTED_MS && told !== count) this.#violate("I13", `${count} of ${of} may follow, and ${told} are expected`);
    }
  }

  /** I13: of one plan. */
  plan(input: EvacuationInput, grants: readonly Grant[]): void {
    const goes = grants.filter((grant): grant is Extract<Grant, { kind: "go" }> => grant.kind === "go");
    const taken = takenFromThoseExpected(input, goes);
    if (taken !== undefined) this.#violate("I13", taken);
    const evacuees = new Map(input.evacuees.map((each) => [each.id, each]));
    const supplies = new Map(input.supplies.map((each) => [each.id, each]));
    const waiting = grants.filter((grant) => grant.kind === "wait");
    const unplaced = new Map<string, Evacuee>();
    for (const grant of grants) {
      const each = grant.kind === "unsavable" && grant.late === null ? evacuees.get(grant.evacuee) : undefined;
      if (each !== undefined) unplaced.set(each.pool, each);
    }
    for (const grant of grants) {
      const lower = evacuees.get(grant.evacuee);
      const placement = grant.kind === "unsavable" && grant.reservedUntil !== null ? grant.late : grant.kind === "go" ? grant : null;
      const at = placement === null ? undefined : supplies.get(placement.supply);
      if (lower === undefined || at === undefined || rankOf(lower) === 0) continue;
      for (const higher of unplaced.values())
        if (rankOf(higher) < rankOf(lower) && (couldServe(at, higher) || couldPreempt(at, higher)))
          this.#violate("I13", `${lower.id} (${lower.priority}) goes to ${at.id} while ${higher.id} (${higher.priority}) has no place`);
      for (const other of waiting) {
        const higher = evacuees.get(other.evacuee);
        const planned = supplies.get(other.supply);
        if (higher === undefined || planned === undefined || rankOf(higher) >= rankOf(lower)) continue;
        if (!couldServe(at, higher) || isWorse(at, planned, higher)) continue;
        const here = input.now + at.readyInMs + higher.stateMoveMs + higher.warmUpMs;
        if (here + SAME_TIME_MS < other.servingAt)
          this.#violate("I13", `${lower.id} (${lower.priority}) goes to ${at.id} while ${higher.id} (${higher.priority}) waits`);
      }
    }
  }

  /** I14 */
  counts({ counts }: Traffic, waiting: number): void {
    const { accepted, completed, queued, rejected, cut } = counts;
    if (accepted !== completed + queued + rejected + cut || queued !== waiting)
      this.#violate("I14", `${JSON.stringify(counts)}, ${waiting} wait`);
  }

  #violate(id: string, sentence: string): void {
    if (this.violations.length < MAX_VIOLATIONS) this.violations.push({ id, atMs: Math.round(this.#clock.monotonic()), sentence });
  }
}

function rankOf({ priority }: Evacuee): number {
  return PRIORITIES.indexOf(priority);
}

function couldServe({ pool, passing }: Supply, evacuee: Evacuee): boolean {
  return passing && (pool === null || pool === evacuee.pool);
}

/** Every place of it may be taken by a higher class. */
function couldPreempt({ passing, free, preemptible }: Supply, evacuee: Evacuee): boolean {
  return passing && preemptible !== null && preemptible.count >= free && PRIORITIES.indexOf(preemptible.priority) > rankOf(evacuee);
}

/** Farther than the limit, or hot, where what was planned is not. */
function isWorse(at: Supply, planned: Supply, { latencyLimitMs }: Evacuee): boolean {
  const tier = (supply: Supply): number => (supply.latencyMs > latencyLimitMs ? 2 : 0) + (supply.heat >= HOT ? 1 : 0);
  return tier(at) > tier(planned);
}
