/**
 * A fleet as a scenario file describes it: where instances run, what could take them, what they are, and how they are noticed. Durations and sizes are text
 * in the file; inside, times are ms and sizes bytes.
 */
import { z } from "zod";
import { parseDuration, parseQuantity } from "../../kernel/units.ts";
import { PRIORITIES } from "../../model/membership.ts";

const DURATION = /^(\d+(?:\.\d+)?(?:ms|s|m|h|d))+$/;
const DURATION_FORM = "a duration such as 90s, 2m or 250ms";
const BYTES_FORM = "a size such as 50Gi or 800M";
const NAME_FORM = "lower-case letters, digits, dots and dashes, at most 63 characters";
const QUANTITY = /^\d+(?:\.\d+)?(k|M|G|T|Ki|Mi|Gi|Ti)?$/;

/** Text such as `90s`, milliseconds in code. */
export const duration = z
  .string({ error: DURATION_FORM })
  .regex(DURATION, DURATION_FORM)
  .transform((text) => parseDuration(text) ?? 0);

/** Of bytes, or of bytes a second. */
const bytes = z
  .string({ error: BYTES_FORM })
  .regex(QUANTITY, BYTES_FORM)
  .transform((text) => parseQuantity(text) ?? 0);

const name = z.string({ error: NAME_FORM }).regex(/^[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?$/, NAME_FORM);
const share = z.number().min(0).max(1);
/** Without any no time would go by, and with nothing to move on nothing ever arrives. */
const positive = { error: "must be greater than 0" };
const someTime = duration.refine((ms) => ms > 0, positive);
const someBytes = bytes.refine((count) => count > 0, positive);
const durationRange = z
  .tuple([duration, duration])
  .refine(([least, most]) => least <= most, { error: "the first must not be longer than the second" });

const siteSchema = z.strictObject({
  name,
  provider: name,
  /** Round trip from where the clients are. */
  latency: duration,
  /** How long before the loss the provider of this site tells it. */
  noticeLead: duration.prefault("120s"),
  /** Into the site, shared by all state that moves there. */
  bandwidth: someBytes,
  /** What the site really lands: the truth, which nobody is told. `thrash`: how much is lost to more at once; 0 shares evenly. */
  lands: z.strictObject({ perSecond: z.number().min(0.01).max(10_000), thrash: z.number().min(0).max(10).default(0.5) }),
  /** What Relevo is told of it, and learns away from. */
  configured: z.strictObject({ perSecond: z.number().min(0.01).max(10_000), burst: z.number().min(1).max(10_000) }),
});

const supplySchema = z.strictObject({
  site: name,
  zone: name,
  type: name,
  kind: z.enum(["standby", "on_demand"]),
  /** Whose standby it is. */
  class: name.optional(),
  count: z.int().min(0).max(100_000),
  /** Of a node of this spot; only on demand. */
  nodeStart: durationRange.prefault(["15s", "30s"]),
  /** Of launches that fail for want of capacity. */
  launchFails: share.default(0),
  /** Of checks that fail whatever else: standby that lies. */
  checkFails: share.default(0),
});

const classSchema = z.strictObject({
  name,
  priority: z.enum(PRIORITIES),
  count: z.int().min(1).max(50_000),
  runsOn: z.strictObject({ site: name, zones: z.array(name).min(1).max(20), type: name }),
  latencyLimit: duration.prefault("100ms"),
  state: z.strictObject({
    size: bytes,
    /** New state per second, which a checkpoint has not seen yet. */
    changes: bytes,
    checkpointEvery: duration.prefault("30s"),
    /** Of one instance. */
    bandwidth: someBytes,
  }),
  /** From the start of a process on a node that is there, its image pulled, to one that can take state. */
  boot: duration,
  /** From its state to a passed check. */
  warmUp: duration,
  requests: z.strictObject({
    perSecond: z.number().min(0).max(100_000),
    /** Mean time that one is in flight. */
    inFlight: duration,
    /** Of requests whose acknowledgement is a promise to keep something. */
    writes: share.default(0.3),
    idempotent: share.default(0.6),
    queue: z.strictObject({ limit: z.int().min(0).max(100_000).default(500), wait: duration.prefault("2s") }).prefault({}),
    slowStart: duration.prefault("1s"),
    concurrency: z.int().min(1).max(100_000).default(256),
  }),
});

const noticesSchema = z.strictObject({
  /** When capacity is taken back: each wave takes its share of the fleet, zone by zone; the shares are normalised. */
  waves: z
    .array(z.strictObject({ at: duration, over: duration, share: z.number().min(0), zones: z.array(name).optional() }))
    .min(1)
    .max(50),
  /** Of the notices; what is not noticed twice comes once. */
  duplicates: z.strictObject({ share, copies: z.int().min(1).max(1_000), within: duration }).optional(),
  /** Of the notices: they arrive this much after the decision of the cloud, whose deadline stands. */
  late: z.strictObject({ share, by: duration }).optional(),
  /** Of the machines: taken without a notice that arrives. */
  lost: share.default(0),
  /** Of the machines: cut off at their deadline, but alive and writing for so long. */
  lingering: z.strictObject({ share, for: duration }).optional(),
});

export const fleetSchema = z
  .strictObject({
    sites: z.array(siteSchema).min(1).max(100),
    supplies: z.array(supplySchema).max(2_000),
    classes: z.array(classSchema).min(1).max(100),
    notices: noticesSchema,
    /** Over all routes of all replicas of the gateway. */
    gatewayQueue: z.int().min(0).max(10_000_000).default(10_000),
    /** How long after a change the schedule is made anew: what changes meanwhile is taken together. */
    planEvery: duration.prefault("250ms"),
    /** From the first notice: requests are counted so long, whatever the policy. */
    measureFor: someTime.prefault("6m"),
    baselines: z
      .strictObject({
        /** Of a volume, and back from it. */
        snapshot: duration.prefault("3m"),
        snapshotEvery: duration.prefault("10m"),
        /** Of a class, by its PodDisruptionBudget. */
        maxUnavailable: share.default(0.1),
        evictionRetry: someTime.prefault("5s"),
      })
      .prefault({}),
  })
  .superRefine((fleet, context) => {
    const sites = new Set(fleet.sites.map((site) => site.name));
    const classes = new Set(fleet.classes.map((each) => each.name));
    const refuse = (path: (string | number)[], message: string, input: unknown): void =>
      context.addIssue({ code: "custom", path, message, input });
    for (const [list, what] of [
      [fleet.sites, "sites"],
      [fleet.classes, "classes"],
    ] as const) {
      const seen = new Set<string>();
      for (const [index, each] of list.entries()) {
        if (seen.has(each.name)) refuse([what, index, "name"], "is that of another one", each.name);
        seen.add(each.name);
      }
    }
    const spots = new Set<string>();
    for (const [index, { site, zone, type, kind, class: of }] of fleet.supplies.entries()) {
      const spot = [site, zone, type, kind, of].join("/");
      if (spots.has(spot)) refuse(["supplies", index], "is of the same kind at the same spot as another one: say both as one", spot);
      spots.add(spot);
    }
    const oneOf = (names: ReadonlySet<string>): string => `is none of ${[...names].join(", ")}`;
    for (const [index, { site, kind, class: of }] of fleet.supplies.entries()) {
      if (!sites.has(site)) refuse(["supplies", index, "site"], oneOf(sites), site);
      if (of !== undefined && !classes.has(of)) refuse(["supplies", index, "class"], oneOf(classes), of);
      if (kind === "standby" && of === undefined) refuse(["supplies", index, "class"], "is missing: standby is of one class", undefined);
      if (kind === "on_demand" && of !== undefined) refuse(["supplies", index, "class"], "is of standby only", of);
    }
    for (const [index, { runsOn }] of fleet.classes.entries())
      if (!sites.has(runsOn.site)) refuse(["classes", index, "runsOn", "site"], oneOf(sites), runsOn.site);
    const total = fleet.notices.waves.reduce((sum, wave) => sum + wave.share, 0);
    if (total <= 0) refuse(["notices", "waves"], "take nothing: every share is 0", total);
  });

export type Fleet = z.output<typeof fleetSchema>;
export type FleetClass = Fleet["classes"][number];
export type FleetSite = Fleet["sites"][number];
export type FleetSupply = Fleet["supplies"][number];
