/** The sites of the fleet and the places that they have, as they really are. */
import type { Clock, Instant } from "../../kernel/clock.ts";
import { AbsorptionBucket } from "../../plan/evacuation/bucket.ts";
import { roomFor } from "../../plan/evacuation/book.ts";
import type { Supply } from "../../plan/evacuation/types.ts";
import type { Fleet, FleetClass, FleetSite, FleetSupply } from "./fleet.ts";
import { SharedWork } from "./shared-work.ts";

export class Site {
  readonly spec: FleetSite;
  readonly bucket: AbsorptionBucket;
  /** The way in, bytes a second. */
  readonly ingress: SharedWork;
  /** What comes to serve at a time: admissions a second. */
  readonly landing: SharedWork;

  readonly #clock: Clock;
  #admitting = 0;

  constructor(spec: FleetSite, clock: Clock) {
    this.#clock = clock;
    this.spec = spec;
    this.bucket = new AbsorptionBucket({ site: spec.name, ...spec.configured }, clock.now());
    this.ingress = new SharedWork(clock, spec.bandwidth);
    this.landing = new SharedWork(clock, spec.lands.perSecond, spec.lands.thrash);
  }

  /** One more has begun to be admitted here, or one less. */
  admitting(by: 1 | -1): void {
    this.#admitting += by;
    this.bucket.underWay(this.#clock.now(), this.#admitting);
  }

  /** One warms up here. However quick it is, none takes less of the site than what it lands one of. */
  land(warmUpMs: number, done: () => void): void {
    const workMs = Math.max(warmUpMs, 1_000 / this.spec.lands.perSecond);
    this.landing.add(workMs, 1_000 / workMs, done);
  }

  /** How much slower everything there is than when it is well. */
  get slowness(): number {
    return Math.max(1, this.landing.load);
  }
}

/** Places of one kind at one spot. */
export class Place {
  readonly id: string;
  readonly site: Site;
  readonly spec: FleetSupply;
  readonly of: FleetClass | null;
  /** Given, and not begun to be used. */
  reserved = 0;
  /** Used, or spoilt. */
  taken = 0;

  constructor(spec: FleetSupply, site: Site, of: FleetClass | null) {
    this.id = [spec.site, spec.zone, spec.type, ...(of === null ? [] : [of.name])].join("/");
    this.site = site;
    this.spec = spec;
    this.of = of;
  }

  get free(): number {
    return this.spec.count - this.reserved - this.taken;
  }
}

export interface Sites {
  readonly byName: ReadonlyMap<string, Site>;
  readonly places: readonly Place[];
}

export function buildSites(fleet: Fleet, clock: Clock): Sites {
  const byName = new Map(fleet.sites.map((spec) => [spec.name, new Site(spec, clock)]));
  const classes = new Map(fleet.classes.map((each) => [each.name, each]));
  const places = fleet.supplies.flatMap((spec) => {
    const site = byName.get(spec.site);
    return site === undefined ? [] : [new Place(spec, site, classes.get(spec.class ?? "") ?? null)];
  });
  return { byName, places };
}

/** What Relevo sees of a place. `boots`: the slowest boot of all classes, because it is not known yet who comes. */
export function supplyOf(place: Place, now: Instant, boots: number, heat: number): Supply {
  const { id, spec, site, of, free } = place;
  return {
    id,
    site: spec.site,
    provider: site.spec.provider,
    zone: spec.zone,
    instanceType: spec.type,
    kind: spec.kind,
    pool: of?.name ?? null,
    latencyMs: site.spec.latency,
    free,
    readyInMs: spec.kind === "standby" ? 0 : spec.nodeStart[1] + boots,
    heat,
    passing: spec.checkFails < 1,
    preemptible: of === null ? null : roomFor(of.priority, free, boots),
    absorption: site.bucket.view(now),
  };
}
