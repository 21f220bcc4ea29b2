/**
 * Server-side apply, in a simple form: who applied which fields is kept in `metadata.managedFields` as on a real server, but only appliers own fields
 * (a plain PUT or PATCH takes no ownership). Pure.
 */
import type { KubeObject, StatusCause } from "../../kube/api.ts";
import { applyConflict } from "./api-errors.ts";
import { equalJson, isJsonObject, type JsonObject } from "./json.ts";
import { mergeKeyOf, strategicMerge } from "./strategic-merge.ts";

export interface Applied {
  readonly object: JsonObject;
  readonly managedFields: readonly ManagedFields[];
}

export interface ManagedFields {
  readonly manager: string;
  readonly operation: "Apply";
  readonly apiVersion: string;
  readonly time: string;
  readonly fieldsType: "FieldsV1";
  readonly fieldsV1: FieldSet;
}

/** `{"f:spec": {"f:replicas": {}}}`; items of a list of named things are `k:{"name":"main"}`. */
export interface FieldSet {
  readonly [key: string]: FieldSet;
}

export interface ApplyRequest {
  readonly manager: string;
  readonly force: boolean;
  readonly at: string;
  /** Lists of custom resources are replaced whole. */
  readonly custom: boolean;
}

const LEAF: FieldSet = {};
/** Part of the object's address, never owned. */
const ADDRESS = ["apiVersion", "kind"];
const ADDRESS_METADATA = ["name", "namespace", "uid", "resourceVersion", "creationTimestamp", "managedFields"];

/** Throws 409 with a cause per field that another manager applied with another value, unless `force`. */
export function applyObject(live: KubeObject | undefined, config: JsonObject, request: ApplyRequest): Applied {
  const kind = request.custom ? "" : String(config["kind"]);
  const mine = fieldsOf(withoutAddress(config), kind, request.custom);
  const entries = live ? managedFieldsOf(live) : [];
  const others = entries.filter((entry) => entry.manager !== request.manager);
  const conflicts = live ? others.flatMap((entry) => conflictsWith(entry, mine, live, config)) : [];
  if (conflicts.length > 0 && !request.force) throw applyConflict(conflicts);
  const own = entries.find((entry) => entry.manager === request.manager);
  const othersLeft = request.force ? others.map((entry) => ({ ...entry, fieldsV1: subtract(entry.fieldsV1, mine) })) : others;
  const dropped = othersLeft.reduce((rest, entry) => subtract(rest, entry.fieldsV1), subtract(own?.fieldsV1 ?? LEAF, mine));
  const kept = live ? removeFields(live, dropped) : {};
  const merged = request.custom ? replaceLists(kept, config) : strategicMerge(kept, config, kind, "apply");
  const entry: ManagedFields = {
    manager: request.manager,
    operation: "Apply",
    apiVersion: String(config["apiVersion"]),
    time: own && equalJson(own.fieldsV1, mine) ? own.time : request.at,
    fieldsType: "FieldsV1",
    fieldsV1: mine,
  };
  return { object: merged as JsonObject, managedFields: [...othersLeft.filter((other) => Object.keys(other.fieldsV1).length > 0), entry] };
}

function managedFieldsOf(object: KubeObject): readonly ManagedFields[] {
  const entries = (object.metadata as unknown as JsonObject)["managedFields"];
  return Array.isArray(entries) ? (entries as readonly ManagedFields[]) : [];
}

function withoutAddress(config: JsonObject): JsonObject {
  const rest: Record<string, unknown> = { ...config };
  for (const key of ADDRESS) delete rest[key];
  if (isJsonObject(rest["metadata"])) {
    const metadata: Record<string, unknown> = { ...rest["metadata"] };
    for (const key of ADDRESS_METADATA) delete metadata[key];
    if (Object.keys(metadata).length === 0) delete rest["metadata"];
    else rest["metadata"] = metadata;
  }
  return rest;
}

function fieldsOf(value: unknown, kind: string, custom: boolean): FieldSet {
  if (!isJsonObject(value)) return LEAF;
  const fields: Record<string, FieldSet> = {};
  for (const [key, member] of Object.entries(value)) {
    const mergeKey = Array.isArray(member) && !custom ? mergeKeyOf(key, kind) : undefined;
    fields[`f:${key}`] =
      Array.isArray(member) && mergeKey !== undefined ? itemFields(member, mergeKey, kind, custom) : fieldsOf(member, kind, custom);
  }
  return fields;
}

function itemFields(items: readonly unknown[], mergeKey: string, kind: string, custom: boolean): FieldSet {
  return Object.fromEntries(
    items
      .filter(isJsonObject)
      .map((item) => [`k:${JSON.stringify({ [mergeKey]: item[mergeKey] })}`, { ".": LEAF, ...fieldsOf(item, kind, custom) }]),
  );
}

function subtract(from: FieldSet, taken: FieldSet): FieldSet {
  const rest: Record<string, FieldSet> = {};
  for (const [key, children] of Object.entries(from)) {
    const other = taken[key];
    if (other === undefined) rest[key] = children;
    else if (Object.keys(children).length > 0) {
      const left = subtract(children, other);
      if (Object.keys(left).length > 0) rest[key] = left;
    }
  }
  return rest;
}

/** The member or list item that a key of a field set stands for. */
function member(value: unknown, key: string): unknown {
  if (key.startsWith("f:")) return isJsonObject(value) ? value[key.slice(2)] : undefined;
  if (!key.startsWith("k:") || !Array.isArray(value)) return undefined;
  const identity = Object.entries(JSON.parse(key.slice(2)) as JsonObject);
  return value.find((item) => isJsonObject(item) && identity.every(([name, wanted]) => item[name] === wanted));
}

function conflictsWith(entry: ManagedFields, mine: FieldSet, live: unknown, config: unknown): readonly StatusCause[] {
  const walk = (theirs: FieldSet, ours: FieldSet, liveValue: unknown, ourValue: unknown, at: string): readonly StatusCause[] =>
    Object.keys(ours).flatMap((key) => {
      const children = theirs[key];
      if (children === undefined || key === ".") return [];
      const here = key.startsWith("f:") ? `${at}.${key.slice(2)}` : `${at}[${key.slice(2).replaceAll(/[{}]/g, "").replace(":", "=")}]`;
      const [liveMember, ourMember] = [member(liveValue, key), member(ourValue, key)];
      // An empty map claims the map and nothing in it.
      if (isJsonObject(ourMember) && Object.keys(ourMember).length === 0) return [];
      const isLeaf = Object.keys(ours[key] ?? LEAF).length === 0;
      if (!isLeaf) return walk(children, ours[key] ?? LEAF, liveMember, ourMember, here);
      if (equalJson(liveMember, ourMember)) return [];
      return [{ reason: "FieldManagerConflict", message: `conflict with "${entry.manager}": ${here}`, field: here }];
    });
  return walk(entry.fieldsV1, mine, live, config, "");
}

/** The object without the fields of the set; a list item whose key is in it with all fields goes whole. */
function removeFields(value: unknown, fields: FieldSet): JsonObject {
  const result: Record<string, unknown> = isJsonObject(value) ? { ...value } : {};
  for (const [key, children] of Object.entries(fields)) {
    const name = key.slice(2);
    const current = result[name];
    if (!key.startsWith("f:") || current === undefined) continue;
    if (Object.keys(children).length === 0) delete result[name];
    else if (Array.isArray(current)) result[name] = removeItems(current, children);
    else result[name] = removeFields(current, children);
  }
  return result;
}

function removeItems(items: readonly unknown[], fields: FieldSet): readonly unknown[] {
  return items.flatMap((item) => {
    const key = Object.keys(fields).find((each) => member([item], each) !== undefined);
    if (key === undefined) return [item];
    const children = fields[key] ?? LEAF;
    return "." in children ? [] : [removeFields(item, children)];
  });
}

function replaceLists(target: unknown, patch: JsonObject): JsonObject {
  const result: Record<string, unknown> = isJsonObject(target) ? { ...target } : {};
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete result[key];
    else result[key] = isJsonObject(value) ? replaceLists(result[key], value) : value;
  }
  return result;
}
