/** What an update makes of an object: identity stays, a subresource changes only its part, generation counts changes of the rest. Pure. */
import type { KubeObject } from "../../kube/api.ts";
import type { KindSpec } from "../kinds.ts";
import { applyDefaults } from "./admission.ts";
import { equalJson, isJsonObject, type JsonObject } from "./json.ts";

/** Which part of an object a write is for; absent is the object itself. */
export type UpdatedPart = "status" | "finalize" | "binding" | undefined;

/** The state after the update, still with the old resourceVersion; `before` itself when nothing changes. */
export function nextState(
  kind: KindSpec,
  before: KubeObject,
  candidate: JsonObject,
  part: UpdatedPart,
  managedFields?: readonly unknown[],
): KubeObject {
  const after =
    part === undefined || part === "binding"
      ? wholeUpdate(kind, before, candidate, part, managedFields)
      : partUpdate(kind, before, candidate, part);
  if (equalJson(before, after)) return before;
  if (part !== undefined || !kind.hasGeneration || kind.generationStays || specEqual(before, after)) return after;
  return { ...after, metadata: { ...after.metadata, generation: (before.metadata.generation ?? 0) + 1 } };
}

/** A binding changes spec and status at once. */
function wholeUpdate(
  kind: KindSpec,
  before: KubeObject,
  candidate: JsonObject,
  part: "binding" | undefined,
  managedFields: readonly unknown[] | undefined,
): KubeObject {
  const given = isJsonObject(candidate["metadata"]) ? candidate["metadata"] : {};
  const after: Record<string, unknown> = {
    ...candidate,
    apiVersion: before.apiVersion,
    kind: before.kind,
    metadata: keepIdentity(before, given, managedFields),
  };
  if (part === undefined && kind.subresources.includes("status")) restore(after, "status", before["status"]);
  // What was stored has its defaults.
  if (!isContentShared(before, after)) applyDefaults(after, kind);
  if (kind.subresources.includes("finalize")) restore(after, "spec", before["spec"]);
  return after as unknown as KubeObject;
}

function isContentShared(before: KubeObject, after: JsonObject): boolean {
  for (const key in after) if (key !== "metadata" && key !== "status" && after[key] !== before[key]) return false;
  return true;
}

function partUpdate(kind: KindSpec, before: KubeObject, candidate: JsonObject, part: "status" | "finalize"): KubeObject {
  const after: Record<string, unknown> = { ...before };
  if (part === "finalize") restore(after, "spec", candidate["spec"]);
  else restore(after, "status", candidate["status"]);
  if (kind.statusTakesLabels && part === "status" && isJsonObject(candidate["metadata"])) {
    const metadata: Record<string, unknown> = { ...before.metadata };
    restore(metadata, "labels", candidate["metadata"]["labels"]);
    restore(metadata, "annotations", candidate["metadata"]["annotations"]);
    after["metadata"] = metadata;
  }
  return after as unknown as KubeObject;
}

function restore(object: Record<string, unknown>, key: string, value: unknown): void {
  if (value === undefined || value === null) delete object[key];
  else object[key] = value;
}

/** What only the server writes. */
const SERVER_FIELDS = [
  "name",
  "namespace",
  "generateName",
  "uid",
  "creationTimestamp",
  "resourceVersion",
  "generation",
  "deletionTimestamp",
  "deletionGracePeriodSeconds",
];

function keepIdentity(before: KubeObject, given: JsonObject, managedFields: readonly unknown[] | undefined): JsonObject {
  const old = before.metadata as unknown as JsonObject;
  if (given === old && managedFields === undefined) return old;
  const metadata: Record<string, unknown> = { ...given };
  for (const field of SERVER_FIELDS) restore(metadata, field, old[field]);
  restore(metadata, "managedFields", managedFields ?? old["managedFields"]);
  delete metadata["selfLink"];
  for (const field of ["labels", "annotations", "finalizers", "ownerReferences"]) if (isEmpty(metadata[field])) delete metadata[field];
  return metadata;
}

function isEmpty(value: unknown): boolean {
  return value === null || (Array.isArray(value) && value.length === 0) || (isJsonObject(value) && Object.keys(value).length === 0);
}

function specEqual(before: KubeObject, after: KubeObject): boolean {
  for (const key of new Set([...Object.keys(before), ...Object.keys(after)])) {
    if (key !== "metadata" && key !== "status" && !equalJson(before[key], after[key])) return false;
  }
  return true;
}
