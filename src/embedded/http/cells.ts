/** The computed cells of `kubectl get`. */
import { type Instant, parseInstant } from "../../kernel/clock.ts";
import type { KubeObject } from "../../kube/api.ts";
import { isJsonObject, type JsonObject, valueAt } from "../store/json.ts";

export type Cell = string | number | boolean;

const NONE = "<none>";

/** `value` as in the table of kinds: a path, or `=name` or `=name:argument` of a computed cell. */
export function cellOf(object: KubeObject, value: string, now: Instant): Cell {
  if (!value.startsWith("=")) return plain(valueAt(object, value));
  const colon = value.indexOf(":");
  const name = colon < 0 ? value.slice(1) : value.slice(1, colon);
  return CELLS[name]?.(object, colon < 0 ? "" : value.slice(colon + 1), now) ?? NONE;
}

function plain(value: unknown): Cell {
  if (value === undefined || value === null || value === "") return NONE;
  if (typeof value === "string" || typeof value === "number" || typeof value === "boolean") return value;
  return JSON.stringify(value);
}

const list = (object: unknown, path: string): readonly unknown[] => {
  const value = valueAt(object, path);
  return Array.isArray(value) ? value : [];
};
const number = (object: unknown, path: string): number => {
  const value = valueAt(object, path);
  return typeof value === "number" ? value : 0;
};
const text = (value: unknown): string => (typeof value === "string" ? value : "");
const joined = (items: readonly unknown[]): string => (items.length === 0 ? NONE : items.map(String).join(","));
const pairs = (value: unknown): string =>
  isJsonObject(value) ? joined(Object.entries(value).map(([key, each]) => `${key}=${String(each)}`)) : NONE;
const containers = (object: KubeObject): readonly unknown[] =>
  list(object, object.kind === "Pod" ? "spec.containers" : "spec.template.spec.containers");

const CELLS: Readonly<Record<string, (object: KubeObject, argument: string, now: Instant) => Cell>> = {
  "pod-ready": (pod) =>
    `${list(pod, "status.containerStatuses").filter((status) => valueAt(status, "ready") === true).length}/${containers(pod).length}`,
  "pod-status": podStatus,
  "pod-restarts": (pod, _, now) => podRestarts(pod, now),
  "node-status": nodeStatus,
  "node-roles": (node) =>
    joined(
      Object.keys(node.metadata.labels ?? {}).flatMap((label) =>
        label.startsWith("node-role.kubernetes.io/") ? [label.slice("node-role.kubernetes.io/".length)] : [],
      ),
    ),
  "node-address": (node, type) =>
    plain(
      valueAt(
        list(node, "status.addresses").find((address) => valueAt(address, "type") === type),
        "address",
      ),
    ),
  label: (object, label) => plain(object.metadata.labels?.[label]),
  condition: (object, type) =>
    plain(
      valueAt(
        list(object, "status.conditions").find((condition) => valueAt(condition, "type") === type),
        "status",
      ),
    ),
  "service-ports": (service) =>
    joined(list(service, "spec.ports").map((port) => `${plain(valueAt(port, "port"))}/${text(valueAt(port, "protocol")) || "TCP"}`)),
  map: (object, path) => pairs(valueAt(object, path)),
  list: (object, path) => joined(listAt(object, path)),
  count: (object, paths) => paths.split(",").reduce((sum, path) => sum + size(valueAt(object, path)), 0),
  number: (object, path) => number(object, path),
  flag: (object, path) => valueAt(object, path) === true,
  path: (object, path) => plain(jsonPath(object, path)),
  "or-na": (object, path) => plain(valueAt(object, path) ?? "N/A"),
  "ready-of-desired": (object) => `${number(object, "status.readyReplicas")}/${number(object, "spec.replicas")}`,
  "container-names": (object) => joined(containers(object).map((container) => valueAt(container, "name"))),
  "container-images": (object) => joined(containers(object).map((container) => valueAt(container, "image"))),
  selector: (object) => pairs(valueAt(object, "spec.selector.matchLabels")),
  "event-last-seen": (event, _, now) => age(text(event["lastTimestamp"]) || text(event["eventTime"]) || text(event["firstTimestamp"]), now),
  "event-object": (event) => `${text(valueAt(event, "involvedObject.kind")).toLowerCase()}/${text(valueAt(event, "involvedObject.name"))}`,
};

/** What `kubectl` shows: the reason that matters most, else the phase. */
function podStatus(pod: KubeObject): string {
  const reason = list(pod, "status.containerStatuses")
    .map(containerReason)
    .findLast((each) => each !== "");
  const shown = reason || text(valueAt(pod, "status.reason")) || text(valueAt(pod, "status.phase")) || "Unknown";
  if (pod.metadata.deletionTimestamp === undefined) return shown;
  return text(valueAt(pod, "status.reason")) === "NodeLost" ? "Unknown" : "Terminating";
}

function containerReason(status: unknown): string {
  const waiting = text(valueAt(status, "state.waiting.reason"));
  const terminated = valueAt(status, "state.terminated");
  if (waiting !== "" || !isJsonObject(terminated)) return waiting;
  const signal = number(terminated, "signal");
  return text(terminated["reason"]) || (signal > 0 ? `Signal:${signal}` : `ExitCode:${number(terminated, "exitCode")}`);
}

function podRestarts(pod: KubeObject, now: Instant): string {
  const statuses = list(pod, "status.containerStatuses");
  const restarts = statuses.reduce<number>((sum, status) => sum + number(status, "restartCount"), 0);
  const lastEnd =
    statuses
      .map((status) => text(valueAt(status, "lastState.terminated.finishedAt")))
      .toSorted()
      .at(-1) ?? "";
  return restarts > 0 && lastEnd !== "" ? `${restarts} (${age(lastEnd, now)} ago)` : String(restarts);
}

function nodeStatus(node: KubeObject): string {
  const ready = list(node, "status.conditions").find((condition) => valueAt(condition, "type") === "Ready");
  const status = ready === undefined ? "Unknown" : valueAt(ready, "status") === "True" ? "Ready" : "NotReady";
  return valueAt(node, "spec.unschedulable") === true ? `${status},SchedulingDisabled` : status;
}

function size(value: unknown): number {
  if (Array.isArray(value)) return value.length;
  return isJsonObject(value) ? Object.keys(value).length : 0;
}

/** `ports.port` in a list of objects. */
function listAt(object: JsonObject, path: string): readonly unknown[] {
  const [head = "", ...rest] = path.split(".");
  const value = object[head];
  if (rest.length === 0) return Array.isArray(value) ? value : value === undefined ? [] : [value];
  if (Array.isArray(value)) return value.filter(isJsonObject).flatMap((item) => listAt(item, rest.join(".")));
  return isJsonObject(value) ? listAt(value, rest.join(".")) : [];
}

/** The part of JSONPath that printer columns use: `.spec.replicas`, `.status.conditions[?(@.type=="Ready")].status`, `.metadata.labels.a\.b`. */
function jsonPath(object: unknown, path: string): unknown {
  let value: unknown = object;
  for (const match of path.matchAll(/\.((?:\\\.|[^.[\]])+)|\[\?\(@\.([\w.]+)\s*==\s*['"]([^'"]*)['"]\)\]|\[(\d+)\]/g)) {
    const [, name, filterPath, wanted, index] = match;
    if (name !== undefined) value = isJsonObject(value) ? value[name.replaceAll("\\.", ".")] : undefined;
    else if (filterPath !== undefined)
      value = Array.isArray(value) ? value.find((item) => String(valueAt(item, filterPath)) === wanted) : undefined;
    else value = Array.isArray(value) ? value[Number(index)] : undefined;
  }
  return value;
}

/** As kubectl writes it: `5s`, `3m10s`, `4h`, `12d`. */
export function age(since: string, now: Instant): string {
  const at = parseInstant(since);
  if (at === undefined) return "<unknown>";
  const seconds = Math.max(0, Math.floor((now - at) / 1_000));
  if (seconds < 120) return `${seconds}s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 10) return seconds % 60 === 0 ? `${minutes}m` : `${minutes}m${seconds % 60}s`;
  if (minutes < 180) return `${minutes}m`;
  const hours = Math.floor(minutes / 60);
  if (hours < 8) return minutes % 60 === 0 ? `${hours}h` : `${hours}h${minutes % 60}m`;
  if (hours < 48) return `${hours}h`;
  return `${Math.floor(hours / 24)}d`;
}
