/** What `relevo get` can show: where it comes from and which columns it has. */
import type { z } from "zod";
import { RelevoError } from "../kernel/errors.ts";
import { nearest } from "../model/problems.ts";
import {
  type ControllerView,
  controllerView,
  cordonView,
  type EvidenceView,
  evidenceView,
  gatewayView,
  instanceView,
  type JournalView,
  journalView,
  nodeView,
  noticeView,
  senderView,
  poolView,
  type PoolView,
  stepView,
  workloadView,
} from "../server/views.ts";
import { type ExceptionView, exceptionView, type ScaleChangeView, scaleChangeView, type ScaleView } from "../server/scale-views.ts";
import { ageOf, type Column, dash, distanceOf } from "./output.ts";

export interface Kind<T> {
  readonly plural: string;
  readonly names: readonly string[];
  readonly path: string;
  readonly schema: z.ZodType<T>;
  /** Whether `?pool=` narrows it. */
  readonly ofPool: boolean;
  readonly nameOf: (item: T) => string;
  readonly columns: readonly Column<T>[];
  /** What is not shown without `--all`. */
  readonly isPast?: (item: T) => boolean;
}

const defineKind = <T>(kind: Kind<T>): Kind<unknown> => kind as unknown as Kind<unknown>;

const POOLS = defineKind<PoolView>({
  plural: "pools",
  names: ["pool", "pools"],
  path: "/v1/pools",
  schema: poolView,
  ofPool: false,
  nameOf: ({ pool }) => pool,
  columns: [
    { head: "POOL", cell: ({ pool }) => pool },
    { head: "MODE", cell: ({ mode, freeze }) => (freeze ? `${mode} (frozen)` : mode) },
    { head: "DESIRED", cell: ({ desired }) => String(desired) },
    { head: "SERVING", cell: ({ serving }) => String(serving) },
    { head: "STANDBY", cell: ({ standby: { wanted, ready } }) => (wanted === 0 && ready === 0 ? "-" : `${ready}/${wanted}`) },
    {
      head: "COMING",
      cell: ({ phases, standby }) =>
        String(sum(phases, ["pending", "creating", "preparing", "validating", "standby", "admitted"]) - standby.ready),
    },
    { head: "LEAVING", cell: ({ phases }) => String(sum(phases, ["draining", "sealed", "retiring", "retired", "failed"])) },
    { head: "HELD", cell: ({ heldSteps }) => String(heldSteps) },
    { head: "WHY", cell: ({ reasons }) => dash(reasons.find(({ subject }) => subject === "")?.code ?? reasons[0]?.code) },
    { head: "FLOOR", wide: true, cell: ({ floor }) => String(floor) },
    { head: "MAX", wide: true, cell: ({ max }) => String(max) },
    { head: "PROVEN", wide: true, cell: ({ scale }) => (scale === undefined ? "-" : provenText(scale)) },
    { head: "ROUTE", wide: true, cell: ({ route }) => route },
    { head: "GENERATION", wide: true, cell: ({ generation }) => generation },
    { head: "EPOCH", wide: true, cell: ({ authorityEpoch }) => authorityEpoch },
    { head: "OWNER", wide: true, cell: ({ owner }) => dash(owner) },
    { head: "LOST", wide: true, cell: ({ losses }) => losses.map(({ loss, obligations }) => `${loss} ${obligations}`).join(", ") || "-" },
  ],
});

/** What a load test has shown, beside what is only configured (K7). */
function provenText({ proven, proof }: ScaleView): string {
  if (proven === null) return "nothing";
  if (proof === "within_proven") return String(proven.instances);
  return `${proven.instances} (${proof === "above_proven" ? "it is above" : "of another configuration"})`;
}

function sum(phases: PoolView["phases"], wanted: readonly (keyof PoolView["phases"])[]): number {
  return wanted.reduce((total, phase) => total + (phases[phase] ?? 0), 0);
}

const INSTANCES = defineKind({
  plural: "instances",
  names: ["instance", "instances"],
  path: "/v1/instances",
  schema: instanceView,
  ofPool: true,
  nameOf: ({ id }) => id,
  isPast: ({ phase }) => phase === "deleted",
  columns: [
    { head: "INSTANCE", cell: ({ id }) => id },
    { head: "POOL", cell: ({ pool }) => pool },
    { head: "PHASE", cell: ({ phase, drain }) => (phase === "draining" && drain ? `draining (${drain.loss})` : phase) },
    { head: "SINCE", cell: ({ phaseSince }, now) => ageOf(phaseSince, now) },
    { head: "HEALTH", cell: ({ health, trust }) => (trust === "ok" ? health : `${health}, ${trust}`) },
    { head: "NODE", cell: ({ node }) => dash(node) },
    { head: "WORK", cell: ({ requests, sessions }) => (requests === null ? "-" : `${requests} + ${sessions ?? 0}`) },
    { head: "REPLACES", cell: ({ replaces }) => dash(replaces) },
    { head: "PURPOSE", wide: true, cell: ({ purpose }) => purpose },
    { head: "ADDRESS", wide: true, cell: ({ address }) => dash(address) },
    { head: "POD", wide: true, cell: ({ pod }) => dash(pod) },
    { head: "INCARNATION", wide: true, cell: ({ incarnation }) => String(incarnation) },
    { head: "DEADLINE", wide: true, cell: ({ drain }, now) => distanceOf(drain?.deadline ?? null, now) },
    { head: "SEAL", wide: true, cell: ({ seal }) => dash(seal) },
    { head: "FAILURE", wide: true, cell: ({ failure }) => dash(failure) },
    { head: "AGE", wide: true, cell: ({ createdAt }, now) => ageOf(createdAt, now) },
  ],
});

const EVIDENCE = defineKind<EvidenceView>({
  plural: "evidence",
  names: ["evidence"],
  path: "/v1/evidence",
  schema: evidenceView,
  ofPool: true,
  nameOf: ({ id }) => id,
  columns: [
    { head: "SEEN", cell: ({ firstSeen }, now) => ageOf(firstSeen, now) },
    { head: "INSTANCE", cell: ({ instance }) => instance },
    { head: "LOSS", cell: ({ loss }) => loss },
    { head: "REASON", cell: ({ reason }) => reason },
    { head: "NODE", cell: ({ node }) => dash(node?.name) },
    { head: "NODECLAIM", cell: ({ nodeClaim }) => dash(nodeClaim?.name) },
    { head: "DEADLINE", cell: ({ deadline }, now) => distanceOf(deadline, now) },
    { head: "ID", wide: true, cell: ({ id }) => id },
    { head: "NOTICE", wide: true, cell: ({ notice }) => dash(notice) },
    { head: "WITNESSES", wide: true, cell: ({ witnesses }) => dash([...new Set(witnesses.map(({ source }) => source))].join(", ")) },
    { head: "EPOCH", wide: true, cell: ({ authorityEpoch }) => authorityEpoch },
  ],
});

const STEPS = defineKind({
  plural: "steps",
  names: ["step", "steps"],
  path: "/v1/steps",
  schema: stepView,
  ofPool: true,
  nameOf: ({ id }) => id,
  columns: [
    { head: "BEGAN", cell: ({ recordedAt }, now) => ageOf(recordedAt, now) },
    { head: "KIND", cell: ({ kind }) => kind },
    { head: "INSTANCE", cell: ({ instance }) => dash(instance) },
    { head: "STATE", cell: ({ state }) => state },
    { head: "OUTCOME", cell: ({ outcome }) => dash(outcome) },
    { head: "RETRIES", cell: ({ attempts }) => String(attempts) },
    { head: "WHY", cell: ({ reason }) => reason.code },
    { head: "ID", wide: true, cell: ({ id }) => id },
    { head: "EPOCH", wide: true, cell: ({ authorityEpoch }) => authorityEpoch },
  ],
});

const WORKLOADS = defineKind({
  plural: "workloads",
  names: ["workload", "workloads"],
  path: "/v1/workloads",
  schema: workloadView,
  ofPool: true,
  nameOf: ({ pool, ordinal }) => `${pool}#${ordinal}`,
  columns: [
    { head: "WORKLOAD", cell: ({ pool, ordinal }) => `${pool}#${ordinal}` },
    { head: "HOLDER", cell: ({ holder }) => dash(holder) },
    { head: "LEASE", cell: ({ lease }) => lease },
    { head: "EPOCH", cell: ({ writerEpoch }) => writerEpoch },
    { head: "ACCEPTED FROM", cell: ({ minAccepted }) => minAccepted },
    { head: "INCARNATION", wide: true, cell: ({ incarnation }) => (incarnation === null ? "-" : String(incarnation)) },
    { head: "RENEWALS", wide: true, cell: ({ renewals }) => String(renewals) },
  ],
});

const SCALE = defineKind<ScaleChangeView>({
  plural: "scale",
  names: ["scale", "scales"],
  path: "/v1/scale",
  schema: scaleChangeView,
  ofPool: true,
  nameOf: ({ pool, at }) => `${pool} ${at}`,
  columns: [
    { head: "AT", cell: ({ at }, now) => ageOf(at, now) },
    { head: "POOL", cell: ({ pool }) => pool },
    { head: "FROM", cell: ({ from }) => String(from) },
    { head: "TO", cell: ({ to }) => String(to) },
    { head: "WHY", cell: ({ message }) => message },
    { head: "REASON", wide: true, cell: ({ reason }) => reason },
  ],
});

const EXCEPTIONS = defineKind<ExceptionView>({
  plural: "exceptions",
  names: ["exception", "exceptions"],
  path: "/v1/exceptions",
  schema: exceptionView,
  ofPool: true,
  nameOf: ({ id }) => id,
  isPast: ({ open }) => !open,
  columns: [
    { head: "EXCEPTION", cell: ({ id }) => id },
    { head: "POOL", cell: ({ pool }) => pool },
    { head: "SINCE", cell: ({ at }, now) => ageOf(at, now) },
    { head: "PROMOTED", cell: ({ what }) => what },
    { head: "BEFORE", cell: ({ gate }) => gate },
    {
      head: "STILL TO DO",
      cell: ({ followUps }) =>
        dash(followUps.flatMap(({ what, doneAt }, index) => (doneAt === null ? [`${index}: ${what}`] : [])).join("; ")),
    },
    { head: "WHY", wide: true, cell: ({ why }) => why },
    { head: "BY", wide: true, cell: ({ by }) => by },
  ],
});

const EVENTS = defineKind<JournalView>({
  plural: "events",
  names: ["event", "events"],
  path: "/v1/events",
  schema: journalView,
  ofPool: true,
  nameOf: ({ at, kind, subject, code }) => `${at} ${kind} ${subject} ${code}`,
  columns: [
    { head: "AT", cell: ({ at }, now) => ageOf(at, now) },
    { head: "KIND", cell: ({ kind }) => kind },
    { head: "POOL", cell: ({ pool }) => dash(pool) },
    { head: "SUBJECT", cell: ({ subject }) => dash(subject === "" ? null : subject) },
    { head: "WHAT", cell: ({ code, from }) => (from === null ? code : `${from} → ${code}`) },
    { head: "WHY", cell: ({ reason }) => dash(reason?.code) },
    { head: "SENTENCE", wide: true, cell: ({ reason }) => dash(reason?.sentence) },
  ],
});

const NOTICES = defineKind({
  plural: "notices",
  names: ["notice", "notices"],
  path: "/v1/notices",
  schema: noticeView,
  ofPool: false,
  nameOf: ({ id }) => id,
  columns: [
    { head: "RECEIVED", cell: ({ receivedAt }, now) => ageOf(receivedAt, now) },
    { head: "SOURCE", cell: ({ source }) => source },
    { head: "REASON", cell: ({ reason }) => dash(reason) },
    { head: "OUTCOME", cell: ({ outcome }) => outcome },
    { head: "MACHINES", cell: ({ machines }) => dash(machines.join(", ")) },
    { head: "DEADLINE", cell: ({ deadline }, now) => distanceOf(deadline, now) },
    { head: "ID", wide: true, cell: ({ id }) => id },
  ],
});

const SOURCES = defineKind({
  plural: "sources",
  names: ["source", "sources"],
  path: "/v1/sources",
  schema: senderView,
  ofPool: false,
  nameOf: ({ source, from }) => `${source} ${from}`,
  columns: [
    { head: "SOURCE", cell: ({ source }) => source },
    { head: "FROM", cell: ({ from }) => from },
    { head: "STATE", cell: ({ state }) => state },
    { head: "HEARD", cell: ({ lastHeardAt }, now) => (lastHeardAt === null ? "-" : ageOf(lastHeardAt, now)) },
    { head: "TROUBLE", cell: ({ trouble }) => dash(trouble) },
  ],
});

const CORDONS = defineKind({
  plural: "cordons",
  names: ["cordon", "cordons"],
  path: "/v1/cordons",
  schema: cordonView,
  ofPool: false,
  nameOf: ({ node }) => node,
  columns: [
    { head: "NODE", cell: ({ node }) => node },
    { head: "EVIDENCE", cell: ({ evidence }) => dash(evidence) },
    { head: "STEP", cell: ({ step }) => step },
    { head: "UID", wide: true, cell: ({ nodeUid }) => nodeUid },
  ],
});

const NODES = defineKind({
  plural: "nodes",
  names: ["node", "nodes"],
  path: "/v1/nodes",
  schema: nodeView,
  ofPool: false,
  nameOf: ({ name }) => name,
  columns: [
    { head: "NODE", cell: ({ name }) => name },
    { head: "ZONE", cell: ({ zone }) => dash(zone) },
    { head: "STATE", cell: ({ ready, deleting }) => (deleting ? "deleting" : ready ? "ready" : "not ready") },
    { head: "CORDON", cell: ({ unschedulable, cordonedByUs }) => (cordonedByUs ? "relevo" : unschedulable ? "foreign" : "-") },
    { head: "OWNER", cell: ({ owner }) => (owner === null ? "none" : owner.provisioner) },
    { head: "FINDINGS", cell: ({ findings }) => dash(findings.map(({ reason }) => reason).join(", ")) },
    { head: "INSTANCES", cell: ({ instances }) => dash(instances.join(", ")) },
    { head: "MACHINE", wide: true, cell: ({ machine }) => dash(machine) },
    { head: "UID", wide: true, cell: ({ uid }) => uid },
  ],
});

const CONTROLLERS = defineKind<ControllerView>({
  plural: "controllers",
  names: ["controller", "controllers"],
  path: "/v1/controllers",
  schema: controllerView,
  ofPool: false,
  nameOf: ({ controller }) => controller,
  columns: [
    { head: "CONTROLLER", cell: ({ controller }) => controller },
    { head: "STATE", cell: ({ live, here }) => (live ? (here ? "answers" : "lives") : "gone") },
    { head: "POOLS", cell: ({ pools }) => String(pools.length) },
    { head: "API", cell: ({ api }) => dash(api) },
    { head: "OF", wide: true, cell: ({ pools }) => dash(pools.join(", ")) },
  ],
});

const GATEWAYS = defineKind({
  plural: "gateways",
  names: ["gateway", "gateways"],
  path: "/v1/gateways",
  schema: gatewayView,
  ofPool: false,
  nameOf: ({ replica }) => replica,
  columns: [
    { head: "REPLICA", cell: ({ replica }) => replica },
    { head: "STATE", cell: ({ connected, silent }) => (silent ? "silent" : connected ? "connected" : "cut off") },
    { head: "REPORTED", cell: ({ lastReportAt }, now) => distanceOf(lastReportAt, now) },
    {
      head: "APPLIED",
      cell: ({ routes }) =>
        dash(routes.map(({ route, applied, current }) => `${route} ${applied}${applied === current ? "" : ` of ${current}`}`).join(", ")),
    },
    { head: "ACCEPTED", cell: ({ routes }) => String(routes.reduce((total, { counts }) => total + counts.accepted, 0)) },
    { head: "REJECTED", cell: ({ routes }) => String(routes.reduce((total, { counts }) => total + counts.rejected, 0)) },
    { head: "CUT", cell: ({ routes }) => String(routes.reduce((total, { counts }) => total + counts.cut, 0)) },
  ],
});

export const KINDS: readonly Kind<unknown>[] = [
  POOLS,
  INSTANCES,
  EVIDENCE,
  WORKLOADS,
  STEPS,
  SCALE,
  EXCEPTIONS,
  EVENTS,
  NOTICES,
  SOURCES,
  CORDONS,
  NODES,
  GATEWAYS,
  CONTROLLERS,
];

/** Throws `kind_unknown`. */
export function kindOf(name: string): Kind<unknown> {
  const found = KINDS.find(({ names }) => names.includes(name.toLowerCase()));
  if (found) return found;
  // Capacity is one thing with several tables.
  const plurals = [...KINDS.map(({ plural }) => plural), "capacity"];
  const near = nearest(name, plurals);
  throw new RelevoError("kind_unknown", `There is nothing called ${name}.`, {
    found: name,
    allowed: plurals.join(", "),
    ...(near === undefined ? {} : { todo: `did you mean ${near}?` }),
  });
}
