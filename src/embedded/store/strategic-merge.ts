/** Strategic merge patch: as a merge patch, but lists of named things are merged by their key. For built-in kinds only. */
import { badRequest } from "./api-errors.ts";
import { isJsonObject, type JsonObject } from "./json.ts";

/** By the name of the list, which is unambiguous among the kinds served but for `ports`. A list that is not named here is replaced whole. */
const MERGE_KEYS: Readonly<Record<string, string>> = {
  addresses: "type",
  conditions: "type",
  containers: "name",
  env: "name",
  ephemeralContainers: "name",
  hostAliases: "ip",
  imagePullSecrets: "name",
  initContainers: "name",
  ownerReferences: "uid",
  podIPs: "ip",
  resourceClaims: "name",
  secrets: "name",
  topologySpreadConstraints: "topologyKey",
  volumeDevices: "devicePath",
  volumeMounts: "mountPath",
  volumes: "name",
};

/** Lists of plain values that are merged as sets. */
const MERGED_SETS: readonly string[] = ["finalizers"];

/** The key of a list's items; `within` is the name of the field that holds the list's owner. */
export function mergeKeyOf(list: string, kind: string): string | undefined {
  if (list === "ports") return kind === "Service" ? "port" : kind === "EndpointSlice" ? undefined : "containerPort";
  return MERGE_KEYS[list];
}

const DELETE_FROM = "$deleteFromPrimitiveList/";
const ORDER = "$setElementOrder/";

/** Where in a merged list the new items stand: a patch puts them first, an applied configuration last. */
type Order = "patch" | "apply";

/** `kind` is the kind of the patched object. */
export function strategicMerge(target: unknown, patch: JsonObject, kind: string, order: Order = "patch"): unknown {
  if (patch["$patch"] === "replace") return withoutDirectives(patch);
  if (patch["$patch"] === "delete") return undefined;
  const result: Record<string, unknown> = isJsonObject(target) ? { ...target } : {};
  if (Array.isArray(patch["$retainKeys"]))
    for (const key of Object.keys(result)) if (!patch["$retainKeys"].includes(key)) delete result[key];
  for (const [key, value] of Object.entries(patch)) {
    if (key.startsWith("$")) continue;
    const next = mergeMember(result[key], value, key, kind, order);
    if (next === undefined || next === null) delete result[key];
    else result[key] = next;
  }
  for (const [key, value] of Object.entries(patch)) {
    if (key.startsWith(DELETE_FROM)) removeValues(result, key.slice(DELETE_FROM.length), value);
    else if (key.startsWith(ORDER)) reorder(result, key.slice(ORDER.length), value, kind);
  }
  return result;
}

function mergeMember(current: unknown, value: unknown, key: string, kind: string, order: Order): unknown {
  if (isJsonObject(value)) return strategicMerge(current, value, kind, order);
  if (!Array.isArray(value)) return value;
  const list: readonly unknown[] = Array.isArray(current) ? current : [];
  if (MERGED_SETS.includes(key)) return [...new Set([...list, ...value])];
  const mergeKey = mergeKeyOf(key, kind);
  return mergeKey === undefined ? value : mergeList(list, value, mergeKey, kind, order);
}

function mergeList(
  current: readonly unknown[],
  patch: readonly unknown[],
  mergeKey: string,
  kind: string,
  order: Order,
): readonly unknown[] {
  if (patch.some((item) => isJsonObject(item) && item["$patch"] === "replace"))
    return patch.filter((item) => !isJsonObject(item) || item["$patch"] !== "replace");
  const result = [...current];
  for (const item of patch) {
    if (!isJsonObject(item)) throw badRequest(`a strategic merge patch of a list of objects holds ${JSON.stringify(item)}`);
    const key = item[mergeKey];
    if (key === undefined) throw badRequest(`map: ${JSON.stringify(item)} does not contain declared merge key: ${mergeKey}`);
    const index = result.findIndex((each) => isJsonObject(each) && each[mergeKey] === key);
    if (item["$patch"] === "delete") {
      if (index >= 0) result.splice(index, 1);
    } else if (index >= 0) result[index] = strategicMerge(result[index], item, kind, order);
    else result.push(withoutDirectives(item));
  }
  if (order === "apply") return result;
  const keyOf = (item: unknown): unknown => (isJsonObject(item) ? item[mergeKey] : item);
  return inOrder(result, patch.map(keyOf), current.map(keyOf), keyOf);
}

/**
 * The order of a merged list: what the patch names comes in the patch's order, the rest in that of before; of one of each, the one that was first before
 * goes first, and what is new goes before what it meets.
 */
function inOrder(
  merged: readonly unknown[],
  patched: readonly unknown[],
  former: readonly unknown[],
  keyOf: (item: unknown) => unknown,
): readonly unknown[] {
  const named = merged
    .filter((item) => patched.includes(keyOf(item)))
    .toSorted((one, other) => patched.indexOf(keyOf(one)) - patched.indexOf(keyOf(other)));
  const rest = merged.filter((item) => !patched.includes(keyOf(item)));
  const result: unknown[] = [];
  while (named.length > 0 && rest.length > 0) {
    const [before, at] = [former.indexOf(keyOf(rest[0])), former.indexOf(keyOf(named[0]))];
    result.push(at >= 0 && before < at ? rest.shift() : named.shift());
  }
  return [...result, ...rest, ...named];
}

function withoutDirectives(object: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(object).flatMap(([key, value]) =>
      key.startsWith("$") || value === null ? [] : [[key, isJsonObject(value) ? withoutDirectives(value) : value]],
    ),
  );
}

function removeValues(object: Record<string, unknown>, key: string, values: unknown): void {
  const list = object[key];
  if (Array.isArray(list) && Array.isArray(values)) object[key] = list.filter((item) => !values.includes(item));
}

/** Items that the order names come in that order; the others keep theirs, after them. */
function reorder(object: Record<string, unknown>, key: string, order: unknown, kind: string): void {
  const list = object[key];
  if (!Array.isArray(list) || !Array.isArray(order)) return;
  const mergeKey = mergeKeyOf(key, kind);
  const identity = (item: unknown): unknown => (mergeKey !== undefined && isJsonObject(item) ? item[mergeKey] : item);
  const wanted = order.map(identity);
  const rank = (item: unknown): number => {
    const index = wanted.indexOf(identity(item));
    return index < 0 ? wanted.length : index;
  };
  object[key] = list.toSorted((a, b) => rank(a) - rank(b));
}
