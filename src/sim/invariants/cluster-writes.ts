import type { KubeObject } from "../../kube/api.ts";
import { ANNOTATIONS, LABELS, PROTECTION_MARKS } from "../../model/marks.ts";
import { BLUEPRINT_KINDS } from "../../model/pool.ts";
import { isCandidate } from "../../model/phase.ts";
import type { SimEvent } from "../events.ts";
import type { Checker, Context } from "./checker.ts";

type ApiWrite = Extract<SimEvent, { type: "api_write" }>;

/** A pod that has no place any more for this long must have been seen by whoever says that the inventory is complete. */
const SEEN_AFTER_MS = 3_000;

/** Watches: API writes to nodes, and the rows that prove what they are for. */
export function cordonIsProven(): Checker {
  const evidence = new Map<string, string | null>();
  const unplacedSince = new Map<string, number>();
  /** As the rows last said: one that was never admitted may still wait for its first place. */
  const admitted = new Set<string>();
  return {
    id: "I6",
    rule: "a cordon implies complete inventory, no error, matching UID and resourceVersion",
    watches: ["rows_read", "committed", "api_write"],
    on(event, context) {
      const { violate } = context;
      if (event.type === "rows_read") {
        for (const { id, nodeUid } of event.rows.evidence) evidence.set(id, nodeUid);
        for (const { id, admittedGeneration } of event.rows.instances)
          if (admittedGeneration === null) admitted.delete(id);
          else admitted.add(id);
        watchUnplaced(context, admitted, unplacedSince);
      }
      if (event.type === "committed") {
        for (const change of event.changes) {
          if (change.kind !== "record_step" || !change.step.kind.startsWith("cordon_node/")) continue;
          watchUnplaced(context, admitted, unplacedSince);
          // A pool's inventory is that of its own instances.
          for (const [what, since] of unplacedSince)
            if (context.mirror.get(what)?.pool === event.authority.pool && context.truth.now() - since >= SEEN_AFTER_MS)
              violate(`${change.step.id} is decided while ${what} has no place`);
        }
      }
      if (event.type !== "api_write" || !isCordon(event)) return;
      const { before, after } = event;
      const meta = metadataOf(event.body);
      if (meta.uid === undefined || meta.uid !== before?.metadata.uid) violate(`node ${event.ref.name} is cordoned without its UID`);
      if (meta.resourceVersion === undefined || meta.resourceVersion !== before?.metadata.resourceVersion)
        violate(`node ${event.ref.name} is cordoned without its resourceVersion`);
      const why = after?.metadata.annotations?.[ANNOTATIONS.cordonedFor];
      if (why === undefined || evidence.get(why) !== after?.metadata.uid)
        violate(`node ${event.ref.name} is cordoned without evidence for it: ${why}`);
    },
  };
}

function watchUnplaced({ mirror, truth }: Context, admitted: ReadonlySet<string>, since: Map<string, number>): void {
  const placed = new Map<string, boolean>();
  for (const pod of truth.pods()) {
    const instance = pod.metadata.labels?.[LABELS.instance];
    if (instance !== undefined) placed.set(instance, (placed.get(instance) ?? true) && nodeNameOf(pod) !== undefined);
  }
  for (const { id, phase } of mirror.staying()) {
    const isFresh = phase === "pending" || phase === "creating" || (phase === "preparing" && !admitted.has(id));
    if (!isFresh && isCandidate(phase) && placed.get(id) !== true) since.set(id, since.get(id) ?? truth.now());
    else since.delete(id);
  }
  for (const id of since.keys()) if (!mirror.staying().some((instance) => instance.id === id)) since.delete(id);
}

/** Watches: API writes to nodes that somebody else cordoned. */
export function foreignCordonsStay(): Checker {
  return {
    id: "I7",
    rule: "foreign cordons are not modified",
    watches: ["api_write"],
    on(event, { violate }) {
      if (event.type !== "api_write" || event.ref.type.plural !== "nodes" || event.before === undefined) return;
      if (!isUnschedulable(event.before) || event.before.metadata.annotations?.[ANNOTATIONS.cordonedBy] !== undefined) return;
      if (event.after?.metadata.resourceVersion !== event.before.metadata.resourceVersion)
        violate(`node ${event.ref.name}, cordoned by somebody else, is changed: ${JSON.stringify(event.body)}`);
    },
  };
}

/** A delete that is under way when an old backup is restored still arrives. */
const UNDER_WAY_MS = 1_000;

/** Watches: every API write. */
export function onlyOwnObjectsAreTouched(): Checker {
  /** Marks that an operator wants off. */
  const uncordons = new Set<string>();
  /** What a recovered store does not know. */
  const strangers = new Set<string>();
  /** Whatever a restored store knows of it. */
  const retiring = new Set<string>();
  let rewoundAt = Number.NEGATIVE_INFINITY;
  return {
    id: "I8",
    rule: "no node is deleted, no foreign object touched, every delete carries a UID",
    watches: ["committed", "api_write", "store_rewound"],
    on(event, { mirror, truth, violate }) {
      if (event.type === "store_rewound") rewoundAt = truth.now();
      if (event.type === "committed") {
        for (const change of event.changes) {
          if (change.kind === "move_instance" && change.to === "retiring") retiring.add(change.instance);
          if (change.kind !== "record_step") continue;
          const { kind, payload } = change.step;
          if (kind.startsWith("uncordon_node/")) uncordons.add((payload as { readonly cordonedBy: string }).cordonedBy);
          if (kind.startsWith("delete_stranger/")) strangers.add((payload as { readonly instance: string }).instance);
        }
      }
      if (event.type !== "api_write" || isUncordon(event, uncordons)) return;
      const isUnderWay = (id: string): boolean => retiring.has(id) && truth.now() - rewoundAt < UNDER_WAY_MS;
      const problem = problemOf(event, (id) => (strangers.has(id) || isUnderWay(id) ? "retiring" : mirror.get(id)?.phase));
      if (problem !== undefined) violate(`${event.method} ${event.ref.type.plural}/${event.ref.name}: ${problem}`);
    },
  };
}

function problemOf(event: ApiWrite, phaseOf: (instance: string) => string | undefined): string | undefined {
  const { method, ref, before, after } = event;
  const { kind } = ref.type;
  // A replica's own Lease, or one that a dead replica left; which is whose the election's own tests say.
  if (kind === "Lease" && ref.name.startsWith("relevo-controller-")) return undefined;
  const isBlueprint = (BLUEPRINT_KINDS as readonly string[]).includes(kind);
  if (method === "evict") return "nothing is ever evicted";
  if (method === "delete") {
    const uid = (event.body as { readonly preconditions?: { readonly uid?: string } } | undefined)?.preconditions?.uid;
    if (!isBlueprint) return "only objects of a blueprint are deleted";
    if (uid === undefined) return "a delete without a UID";
    if (before?.metadata.annotations?.[ANNOTATIONS.step] === undefined) return "it was not made by a step";
    const phase = phaseOf(before.metadata.labels?.[LABELS.instance] ?? "");
    return phase === "retiring" ? undefined : `its instance is ${phase}`;
  }
  if (method === "create") {
    if (kind === "Event") return undefined;
    return isBlueprint && after?.metadata.labels?.[LABELS.instance] !== undefined ? undefined : "no object of a blueprint";
  }
  if (kind === "Pool") return undefined;
  if (kind === "Node") return isCordon(event) ? undefined : "a node is only ever cordoned";
  if (kind !== "Pod" || method !== "patch") return "not a thing that is patched";
  return onlyMarksChanged(before, after) ? undefined : "more than its marks is changed";
}

function onlyMarksChanged(before: KubeObject | undefined, after: KubeObject | undefined): boolean {
  const allowed = new Set([ANNOTATIONS.protectedBy, ...Object.keys(PROTECTION_MARKS)] as string[]);
  const rest = (object: KubeObject | undefined): string => {
    const { annotations = {}, resourceVersion: _, ...metadata } = (object?.metadata ?? {}) as KubeObject["metadata"];
    const kept = Object.entries(annotations).filter(([name]) => !allowed.has(name));
    return JSON.stringify({ ...object, metadata: { ...metadata, annotations: kept.toSorted() } });
  };
  return rest(before) === rest(after);
}

function isCordon({ method, ref, before, after }: ApiWrite): boolean {
  return (
    method === "patch" &&
    ref.type.plural === "nodes" &&
    before !== undefined &&
    after !== undefined &&
    !isUnschedulable(before) &&
    isUnschedulable(after)
  );
}

/** By an operator's command, under UID and resourceVersion, and exactly the cordon that was meant (D4). */
function isUncordon({ method, ref, body, before, after }: ApiWrite, meant: ReadonlySet<string>): boolean {
  const { uid, resourceVersion } = metadataOf(body);
  return (
    method === "patch" &&
    ref.type.plural === "nodes" &&
    meant.has(before?.metadata.annotations?.[ANNOTATIONS.cordonedBy] ?? "") &&
    after?.metadata.annotations?.[ANNOTATIONS.cordonedBy] === undefined &&
    uid === before?.metadata.uid &&
    resourceVersion === before?.metadata.resourceVersion
  );
}

function isUnschedulable(node: KubeObject): boolean {
  return (node["spec"] as { readonly unschedulable?: boolean } | undefined)?.unschedulable === true;
}

function nodeNameOf(pod: KubeObject): string | undefined {
  return (pod["spec"] as { readonly nodeName?: string } | undefined)?.nodeName;
}

function metadataOf(body: unknown): { readonly uid?: string; readonly resourceVersion?: string } {
  return (body as { readonly metadata?: { readonly uid?: string; readonly resourceVersion?: string } } | undefined)?.metadata ?? {};
}
