/**
 * A scenario as a file describes it, in one of two forms: `pools:` runs pools on the whole production code under a virtual clock, `fleet:` runs a storm over a
 * modelled fleet. Documented in docs/scenarios.md.
 */
import { z } from "zod";
import { rfc1123Label } from "../model/names.ts";
import { parseDuration } from "../kernel/units.ts";
import type { KubeObjectDraft } from "../kube/api.ts";
import { PRIORITIES } from "../model/membership.ts";
import { DISRUPTION_MODES, poolSchema } from "../model/pool.ts";
import { formatPath, nearest, type Problem, problemsOf } from "../model/problems.ts";
import { drawFault, type Fault, FAULT_KINDS, type FaultKind, type PlannedFault } from "./faults.ts";
import { poolDocument, type Scenario, scenarioPool } from "./scenario.ts";
import { seededRandom } from "./seeded.ts";
import { duration, type Fleet, fleetSchema } from "./storm/fleet.ts";

const faultKind = z.enum(FAULT_KINDS as readonly [FaultKind, ...FaultKind[]]);
const label = rfc1123Label;

const poolList = z.array(z.looseObject({})).min(1).max(50);

export const scenarioFileSchema = z
  .strictObject({
    name: label.default("scenario"),
    about: z.string().max(10_000).optional(),
    /** Pool documents, or what `relevo get pools -o yaml` prints of them. */
    pools: poolList.optional(),
    /** The same under the name that `relevo get pools -o yaml` gives it, so that what it prints is a scenario as it is. */
    items: poolList.optional(),
    /** Instead of what the pools say themselves. */
    mode: z.enum(DISRUPTION_MODES).optional(),
    nodes: z
      .strictObject({
        count: z.int().min(1).max(500).default(6),
        zones: z.array(label).min(1).max(20).prefault(["zone-a", "zone-b"]),
        /** From a machine's request to its node. */
        start: duration.prefault("2s"),
      })
      .optional(),
    gateways: z.int().min(1).max(5).optional(),
    instances: z.strictObject({ boot: z.tuple([duration, duration]) }).optional(),
    /** How long a spot warning leads. */
    spotLead: duration.optional(),
    /** How long faults come. */
    runFor: duration.optional(),
    /** How long after the last one all must be as it should be. */
    convergeWithin: duration.optional(),
    /** Drawn from the seed: of these kinds, or of all. */
    faults: z.strictObject({ kinds: z.array(faultKind).min(1).optional() }).optional(),
    /** Exactly these; what one leaves open is drawn from the seed. */
    timeline: z
      .array(z.looseObject({ at: duration, kind: faultKind }))
      .max(1_000)
      .optional(),
    fleet: fleetSchema.optional(),
  })
  .superRefine((file, context) => {
    const forms = (["pools", "items", "fleet"] as const).filter((form) => file[form] !== undefined);
    if (forms.length !== 1)
      context.addIssue({ code: "custom", path: [], message: "holds either pools or a fleet", input: forms.join(", ") || "neither" });
    if (file.faults !== undefined && file.timeline !== undefined)
      context.addIssue({ code: "custom", path: ["timeline"], message: "faults are drawn, or told by a timeline, not both", input: "both" });
    if (file.fleet === undefined) return;
    for (const key of ["mode", "nodes", "gateways", "instances", "spotLead", "runFor", "convergeWithin", "faults", "timeline"] as const)
      if (file[key] !== undefined)
        context.addIssue({ code: "custom", path: [key], message: "belongs to pools, not to a fleet", input: key });
  });

export type ScenarioFile =
  | { readonly form: "fleet"; readonly name: string; readonly fleet: Fleet }
  | {
      readonly form: "pools";
      readonly name: string;
      readonly scenario: Scenario;
      readonly runForMs: number;
      readonly convergeWithinMs: number;
      /** Undefined: all kinds. */
      readonly kinds: readonly FaultKind[] | undefined;
      /** Undefined: drawn. */
      readonly timeline: ((seed: number) => readonly PlannedFault[]) | undefined;
      /** What had to be assumed, in sentences. */
      readonly assumed: readonly string[];
    };

export type ParsedScenario = { readonly scenario: ScenarioFile } | { readonly problems: readonly Problem[] };

const DEFAULTS = { runForMs: 60_000, convergeWithinMs: 15 * 60_000, spotLeadMs: 120_000, bootMs: [500, 5_000], gateways: 2 } as const;

export function parseScenario(raw: unknown): ParsedScenario {
  const parsed = scenarioFileSchema.safeParse(raw);
  if (!parsed.success) return { problems: problemsOf(scenarioFileSchema, parsed.error, raw) };
  const file = parsed.data;
  if (file.fleet !== undefined) return { scenario: { form: "fleet", name: file.name, fleet: file.fleet } };
  const problems: Problem[] = [];
  const printedOnes: string[] = [];
  const list = file.pools === undefined ? "items" : "pools";
  const documents = (file[list] ?? []).flatMap((pool, index) => {
    const document = documentOf(pool, [list, index], problems, printedOnes);
    return document === undefined ? [] : [withMode(modelled(document), file.mode)];
  });
  const seen = new Set<string>();
  const pools =
    problems.length > 0
      ? []
      : documents.map((document) => ({ ...scenarioPool(document), mode: poolSchema.parse(document).spec.disruption.mode }));
  for (const [index, { key }] of pools.entries()) {
    if (seen.has(key)) problems.push(problem([list, index], "is the same pool as one before", key, undefined));
    seen.add(key);
  }
  const faults = (file.timeline ?? []).map((entry, index) => overridesOf(entry, ["timeline", index], problems));
  if (problems.length > 0) return { problems };
  const { nodes } = file;
  const scenario: Scenario = {
    nodes: nodes?.count ?? 6,
    zones: nodes?.zones ?? ["zone-a", "zone-b"],
    nodeStartMs: nodes?.start ?? 2_000,
    gateways: file.gateways ?? DEFAULTS.gateways,
    bootMs: file.instances?.boot ?? DEFAULTS.bootMs,
    leadMs: file.spotLead ?? DEFAULTS.spotLeadMs,
    pools,
  };
  return {
    scenario: {
      form: "pools",
      name: file.name,
      scenario,
      runForMs: file.runFor ?? DEFAULTS.runForMs,
      convergeWithinMs: file.convergeWithin ?? DEFAULTS.convergeWithinMs,
      kinds: file.faults?.kinds,
      timeline: file.timeline === undefined ? undefined : (seed) => faults.map((make, index) => make(seed, index)),
      assumed:
        printedOnes.length === 0
          ? []
          : [
              `what is printed of a pool has neither blueprint nor limits (${printedOnes.join(", ")}): one modelled process on a node is taken, surge 1, draining 2, no lease`,
            ],
    },
  };
}

// ---- pools

/** The part of what `relevo get pools` prints that says what the pool is. */
const printedPool = z.looseObject({
  namespace: z.string().default("default"),
  name: z.string(),
  mode: z.enum(DISRUPTION_MODES),
  desired: z.int().min(0),
  floor: z.int().min(0),
  max: z.int().min(0),
  priority: z.enum(PRIORITIES).optional(),
  standby: z.looseObject({ wanted: z.int().min(0) }).optional(),
  route: z.string().optional(),
  provisioners: z.array(z.string()).optional(),
});

function documentOf(
  pool: object,
  path: readonly (string | number)[],
  problems: Problem[],
  printedOnes: string[],
): KubeObjectDraft | undefined {
  if ("pool" in pool && !("spec" in pool)) {
    const printed = printedPool.safeParse(pool);
    if (!printed.success) {
      problems.push(...problemsOf(printedPool, printed.error, pool).map((each) => under(path, each)));
      return undefined;
    }
    printedOnes.push(`${printed.data.namespace}/${printed.data.name}`);
    return checked(fromPrinted(printed.data), path, problems);
  }
  return checked(pool, path, problems);
}

function checked(pool: object, path: readonly (string | number)[], problems: Problem[]): KubeObjectDraft | undefined {
  const parsed = poolSchema.safeParse(pool);
  if (parsed.success) return pool as KubeObjectDraft;
  problems.push(...problemsOf(poolSchema, parsed.error, pool).map((each) => under(path, each)));
  return undefined;
}

function fromPrinted(printed: z.output<typeof printedPool>): KubeObjectDraft {
  const { name, namespace, mode, desired, floor, max, priority, standby, route, provisioners } = printed;
  const made = poolDocument({
    name,
    desired,
    surge: 1,
    draining: 2,
    startsOff: mode !== "Act",
    priority: priority ?? "standard",
    standby: standby?.wanted ?? 0,
  });
  const spec = made["spec"] as { readonly traffic: object; readonly disruption: object };
  return {
    ...made,
    metadata: { name, namespace },
    spec: {
      ...spec,
      size: { desired, floor, max },
      traffic: { ...spec.traffic, route: route ?? name },
      disruption: { ...spec.disruption, mode, ...(provisioners === undefined ? {} : { provisioners }) },
    },
  };
}

/** Images are not run, and what they would need does not matter: each container is one modelled process. */
function modelled(document: KubeObjectDraft): KubeObjectDraft {
  const spec = document["spec"] as { readonly blueprint: { readonly objects: readonly Template[] } };
  const objects = spec.blueprint.objects.map((object) => {
    const pod = object.spec?.template?.spec;
    if (pod?.containers === undefined) return object;
    const { volumes: _v, initContainers: _i, serviceAccountName: _s, ...rest } = pod;
    const containers = pod.containers.map(({ env: _e, envFrom: _f, volumeMounts: _m, args: _a, ...container }) => ({
      ...container,
      command: ["run"],
    }));
    return { ...object, spec: { ...object.spec, template: { ...object.spec?.template, spec: { ...rest, containers } } } };
  });
  return { ...document, spec: { ...spec, blueprint: { ...spec.blueprint, objects } } };
}

interface Template {
  readonly spec?: {
    readonly template?: {
      readonly spec?: {
        readonly containers?: readonly { readonly [field: string]: unknown }[];
        readonly volumes?: unknown;
        readonly initContainers?: unknown;
        readonly serviceAccountName?: unknown;
      };
    };
  };
}

function withMode(document: KubeObjectDraft, mode: string | undefined): KubeObjectDraft {
  if (mode === undefined) return document;
  const spec = document["spec"] as { readonly disruption?: object };
  return { ...document, spec: { ...spec, disruption: { ...spec.disruption, mode } } };
}

// ---- the timeline

type MakeFault = (seed: number, index: number) => PlannedFault;

/** A fault of its kind has the parameters that the standard mix draws; each may be given. Times end in `Ms` there and may be written as durations. */
function overridesOf(
  entry: { readonly at: number; readonly kind: FaultKind; readonly [name: string]: unknown },
  path: readonly (string | number)[],
  problems: Problem[],
): MakeFault {
  const { at, kind, ...given } = entry;
  const pattern = drawFault(seededRandom(0, "pattern"), kind) as unknown as Readonly<Record<string, unknown>>;
  const names = Object.keys(pattern).filter((name) => name !== "kind");
  const values: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(given)) {
    if (!names.includes(name)) {
      const near = nearest(name, names);
      problems.push({
        ...problem([...path, name], "is no field", name, names.length === 0 ? `none: ${kind} has no parameters` : names.join(", ")),
        todo: near === undefined ? `remove ${name}` : `did you mean ${near}?`,
        atKey: true,
      });
      continue;
    }
    const parsed = valueOf(name, value, pattern[name]);
    if (parsed === undefined) problems.push(problem([...path, name], "is not valid", value, allowedFor(name, pattern[name])));
    else values[name] = parsed;
  }
  return (seed, index) => ({
    atMs: at,
    fault: { ...drawFault(seededRandom(seed, `timeline ${index}`), kind), ...values } as Fault,
  });
}

function valueOf(name: string, value: unknown, pattern: unknown): unknown {
  if (name.endsWith("Ms")) {
    if (value === null) return null;
    const ms = typeof value === "string" ? parseDuration(value) : value;
    return typeof ms === "number" && Number.isFinite(ms) ? ms : undefined;
  }
  if (Array.isArray(pattern)) return Array.isArray(value) ? value : undefined;
  if (typeof value !== typeof pattern) return undefined;
  if (typeof value === "number" && (name === "pick" || name === "share")) return value >= 0 && value <= 1 ? value : undefined;
  return value;
}

function allowedFor(name: string, pattern: unknown): string {
  if (name.endsWith("Ms")) return "a duration such as 10s";
  if (name === "pick" || name === "share") return "a number from 0 to 1";
  return Array.isArray(pattern) ? "a list" : `a ${typeof pattern}, such as ${JSON.stringify(pattern)}`;
}

// ---- problems

function problem(path: readonly (string | number)[], what: string, found: unknown, allowed: string | undefined): Problem {
  const field = formatPath(path);
  return { path, field, sentence: `${field} ${what}`, found, allowed, todo: undefined, atKey: false };
}

function under(path: readonly (string | number)[], each: Problem): Problem {
  const field = formatPath([...path, ...each.path]);
  return { ...each, path: [...path, ...each.path], field, sentence: each.sentence.replace(each.field, field) };
}
