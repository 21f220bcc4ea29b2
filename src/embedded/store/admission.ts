/** What the API server adds to objects at a write, and what it refuses. Pure: objects in, objects and problems out. */
import type { JsonObject } from "./json.ts";
import { equalJson, isJsonObject, valueAt } from "./json.ts";
import type { FieldProblem } from "./api-errors.ts";
import { type LabelSelector, matchesLabelSelector } from "./selectors.ts";

type Mutable = Record<string, unknown>;
type Defaults = (object: Mutable) => void;

const DNS_SUBDOMAIN = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const LABEL_KEY = /^([a-z0-9]([-a-z0-9.]*[a-z0-9])?\/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;
const LABEL_VALUE = /^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$/;
const MICRO_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}(Z|[+-]\d\d:\d\d)$/;
const NAME_MAX = 253;
const POD_GRACE_DEFAULT_S = 30;
const UNREACHABLE_DEFAULT_S = 300;

function child(object: Mutable, key: string): Mutable {
  const value = object[key];
  if (isJsonObject(value)) {
    const copy = { ...value };
    object[key] = copy;
    return copy;
  }
  const fresh: Mutable = {};
  object[key] = fresh;
  return fresh;
}

function defaultTo(object: Mutable, values: JsonObject): void {
  for (const [key, value] of Object.entries(values)) object[key] ??= value;
}

function defaultPodSpec(spec: Mutable): void {
  defaultTo(spec, {
    restartPolicy: "Always",
    terminationGracePeriodSeconds: POD_GRACE_DEFAULT_S,
    dnsPolicy: "ClusterFirst",
    schedulerName: "default-scheduler",
  });
}

function defaultTemplate(spec: Mutable): void {
  if (isJsonObject(spec["template"])) defaultPodSpec(child(child(spec, "template"), "spec"));
}

/** A pod bears an unreachable node for five minutes, unless it says otherwise (the DefaultTolerationSeconds admission). */
function tolerateUnreachable(spec: Mutable): void {
  const given: readonly unknown[] = Array.isArray(spec["tolerations"]) ? spec["tolerations"] : [];
  const covers = (key: string): boolean =>
    given.some((toleration) => {
      const { key: tolerated, effect } = toleration as { key?: string; effect?: string };
      return (
        (tolerated === key || tolerated === undefined || tolerated === "") &&
        (effect === "NoExecute" || effect === undefined || effect === "")
      );
    });
  const missing = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"].filter((key) => !covers(key));
  if (missing.length > 0) {
    spec["tolerations"] = [
      ...given,
      ...missing.map((key) => ({ key, operator: "Exists", effect: "NoExecute", tolerationSeconds: UNREACHABLE_DEFAULT_S })),
    ];
  }
}

/** By kind; run at every create and before every replace. */
const DEFAULTS: Readonly<Record<string, Defaults>> = {
  Pod(pod) {
    const spec = child(pod, "spec");
    defaultPodSpec(spec);
    tolerateUnreachable(spec);
    defaultTo(child(pod, "status"), { phase: "Pending", qosClass: "BestEffort" });
  },
  Namespace(namespace) {
    defaultTo(child(namespace, "spec"), { finalizers: ["kubernetes"] });
    defaultTo(child(namespace, "status"), { phase: "Active" });
    const metadata = child(namespace, "metadata");
    child(metadata, "labels")["kubernetes.io/metadata.name"] ??= metadata["name"];
  },
  Deployment(deployment) {
    const spec = child(deployment, "spec");
    defaultTo(spec, {
      replicas: 1,
      progressDeadlineSeconds: 600,
      revisionHistoryLimit: 10,
      strategy: { type: "RollingUpdate", rollingUpdate: { maxSurge: "25%", maxUnavailable: "25%" } },
    });
    defaultTemplate(spec);
  },
  ReplicaSet(replicaSet) {
    const spec = child(replicaSet, "spec");
    defaultTo(spec, { replicas: 1 });
    defaultTemplate(spec);
  },
  StatefulSet(statefulSet) {
    const spec = child(statefulSet, "spec");
    defaultTo(spec, {
      replicas: 1,
      podManagementPolicy: "OrderedReady",
      revisionHistoryLimit: 10,
      updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition: 0 } },
    });
    defaultTemplate(spec);
  },
  DaemonSet(daemonSet) {
    const spec = child(daemonSet, "spec");
    defaultTo(spec, {
      revisionHistoryLimit: 10,
      updateStrategy: { type: "RollingUpdate", rollingUpdate: { maxSurge: 0, maxUnavailable: 1 } },
    });
    defaultTemplate(spec);
  },
  Service(service) {
    defaultTo(child(service, "spec"), { type: "ClusterIP", sessionAffinity: "None", clusterIP: "None" });
  },
  Secret(secret) {
    defaultTo(secret, { type: "Opaque" });
    const { stringData } = secret;
    if (!isJsonObject(stringData)) return;
    const data = child(secret, "data");
    for (const [key, value] of Object.entries(stringData)) data[key] = Buffer.from(String(value)).toString("base64");
    delete secret["stringData"];
  },
  PersistentVolumeClaim(claim) {
    defaultTo(child(claim, "spec"), { volumeMode: "Filesystem" });
    defaultTo(child(claim, "status"), { phase: "Pending" });
  },
};

/** Adds the defaults of a built-in kind; changes `object`, copying what it changes beneath. */
export function applyDefaults(object: Mutable, kind: { readonly kind: string; readonly custom: boolean }): void {
  if (!kind.custom) DEFAULTS[kind.kind]?.(object);
}

const isText = (value: unknown): boolean => typeof value === "string";
const isTextMap = (value: unknown): boolean => isJsonObject(value) && Object.values(value).every(isText);
const isOwner = (value: unknown): boolean =>
  isJsonObject(value) && ["apiVersion", "kind", "name", "uid"].every((field) => isText(value[field]));
const isListOf =
  (isItem: (value: unknown) => boolean) =>
  (value: unknown): boolean =>
    Array.isArray(value) && value.every(isItem);

const METADATA_SHAPES: Readonly<Record<string, { readonly is: (value: unknown) => boolean; readonly what: string }>> = {
  name: { is: isText, what: "a string" },
  namespace: { is: isText, what: "a string" },
  generateName: { is: isText, what: "a string" },
  uid: { is: isText, what: "a string" },
  resourceVersion: { is: isText, what: "a string" },
  labels: { is: isTextMap, what: "a map of strings" },
  annotations: { is: isTextMap, what: "a map of strings" },
  finalizers: { is: isListOf(isText), what: "a list of strings" },
  ownerReferences: { is: isListOf(isOwner), what: "a list of objects with apiVersion, kind, name and uid" },
};

/** Metadata that no server could decode, as a sentence. */
export function shapeProblem(metadata: unknown): string | undefined {
  if (!isJsonObject(metadata)) return "metadata must be an object";
  for (const [field, { is, what }] of Object.entries(METADATA_SHAPES)) {
    const value = metadata[field];
    if (value !== undefined && value !== null && !is(value)) return `metadata.${field} must be ${what}`;
  }
  return undefined;
}

/** Finalizers without a domain that Kubernetes itself sets. */
const STANDARD_FINALIZERS: readonly unknown[] = ["orphan", "foregroundDeletion", "kubernetes"];

function ownershipProblems(metadata: JsonObject, isCustom: boolean): readonly FieldProblem[] {
  const finalizers: readonly unknown[] = Array.isArray(metadata["finalizers"]) ? metadata["finalizers"] : [];
  const owners: readonly unknown[] = Array.isArray(metadata["ownerReferences"]) ? metadata["ownerReferences"] : [];
  return [
    ...finalizers.flatMap((finalizer, index) =>
      isCustom || STANDARD_FINALIZERS.includes(finalizer) || String(finalizer).includes("/")
        ? []
        : [
            {
              field: `metadata.finalizers[${index}]`,
              message: `${JSON.stringify(finalizer)}: name is neither a standard finalizer name nor is it fully qualified`,
            },
          ],
    ),
    ...owners.flatMap((owner) =>
      isJsonObject(owner) && owner["uid"] === "" ? [{ field: "metadata.ownerReferences.uid", message: '"": must not be empty' }] : [],
    ),
  ];
}

/** What is wrong with an object by the rules for all kinds. */
export function metadataProblems(
  metadata: JsonObject,
  kind: { readonly custom: boolean; readonly anyName?: boolean },
): readonly FieldProblem[] {
  const problems: FieldProblem[] = [...ownershipProblems(metadata, kind.custom)];
  const name = metadata["name"];
  if (kind.anyName) return problems;
  if (typeof name !== "string" || name.length > NAME_MAX || !DNS_SUBDOMAIN.test(name)) {
    problems.push({
      field: "metadata.name",
      message: `${JSON.stringify(name)}: a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.'`,
    });
  }
  for (const [key, value] of Object.entries(isJsonObject(metadata["labels"]) ? metadata["labels"] : {})) {
    if (!LABEL_KEY.test(key)) problems.push({ field: "metadata.labels", message: `${JSON.stringify(key)} is no label key` });
    else if (typeof value !== "string" || !LABEL_VALUE.test(value))
      problems.push({ field: "metadata.labels", message: `${JSON.stringify(value)} is no label value` });
  }
  for (const [key, value] of Object.entries(isJsonObject(metadata["annotations"]) ? metadata["annotations"] : {})) {
    if (typeof value !== "string") problems.push({ field: `metadata.annotations.${key}`, message: "must be a string" });
  }
  return problems;
}

type Check = (object: JsonObject) => readonly FieldProblem[];

const RESTART_POLICIES: readonly unknown[] = ["Always", "OnFailure", "Never"];
const PORT_MAX = 65_535;

function portProblems(container: unknown, at: string): readonly FieldProblem[] {
  const ports: unknown = isJsonObject(container) ? container["ports"] : undefined;
  return (Array.isArray(ports) ? ports : []).flatMap((port: unknown, index) => {
    const number = isJsonObject(port) ? port["containerPort"] : undefined;
    if (Number.isInteger(number) && (number as number) > 0 && (number as number) <= PORT_MAX) return [];
    return [
      { field: `${at}.ports[${index}].containerPort`, message: `${JSON.stringify(number)}: must be between 1 and ${PORT_MAX}, inclusive` },
    ];
  });
}

function podSpecProblems(spec: unknown, at: string): readonly FieldProblem[] {
  const containers = isJsonObject(spec) ? spec["containers"] : undefined;
  if (!Array.isArray(containers) || containers.length === 0)
    return [{ field: `${at}.containers`, message: "at least one container", reason: "FieldValueRequired" }];
  const problems: FieldProblem[] = [];
  const names = new Set<unknown>();
  for (const [index, container] of containers.entries()) {
    const name: unknown = isJsonObject(container) ? container["name"] : undefined;
    if (typeof name !== "string" || name === "")
      problems.push({ field: `${at}.containers[${index}].name`, message: "a name", reason: "FieldValueRequired" });
    else if (names.has(name))
      problems.push({ field: `${at}.containers[${index}].name`, message: JSON.stringify(name), reason: "FieldValueDuplicate" });
    names.add(name);
    problems.push(...portProblems(container, `${at}.containers[${index}]`));
  }
  const policy = isJsonObject(spec) ? spec["restartPolicy"] : undefined;
  if (policy !== undefined && !RESTART_POLICIES.includes(policy))
    problems.push({ field: `${at}.restartPolicy`, message: JSON.stringify(policy), reason: "FieldValueNotSupported" });
  return problems;
}

/** A workload's selector must select its own template, or its controller would make pods for ever. */
function workloadProblems(object: JsonObject): readonly FieldProblem[] {
  const selector = valueAt(object, "spec.selector");
  const problems: FieldProblem[] = [];
  if (!isJsonObject(selector)) problems.push({ field: "spec.selector", message: "a label selector", reason: "FieldValueRequired" });
  const labels = valueAt(object, "spec.template.metadata.labels");
  if (
    !isJsonObject(selector) ||
    !matchesLabelSelector(selector as LabelSelector, isJsonObject(labels) ? (labels as Record<string, string>) : {})
  ) {
    problems.push({
      field: "spec.template.metadata.labels",
      message: `${JSON.stringify(labels ?? {})}: \`selector\` does not match template \`labels\``,
    });
  }
  problems.push(...podSpecProblems(valueAt(object, "spec.template.spec"), "spec.template.spec"));
  const replicas = valueAt(object, "spec.replicas");
  if (replicas !== undefined && (!Number.isInteger(replicas) || (replicas as number) < 0)) {
    problems.push({ field: "spec.replicas", message: `${JSON.stringify(replicas)}: must be a whole number, zero or more` });
  }
  return problems;
}

const DATA_BYTES_MAX = 2 ** 20;

const CHECKS: Readonly<Record<string, Check>> = {
  Pod: (pod) => podSpecProblems(pod["spec"], "spec"),
  Deployment: workloadProblems,
  ReplicaSet: workloadProblems,
  StatefulSet: workloadProblems,
  DaemonSet: workloadProblems,
  ConfigMap(map) {
    const bytes = Object.values({ ...(map["data"] as JsonObject), ...(map["binaryData"] as JsonObject) }).reduce<number>(
      (sum, value) => sum + Buffer.byteLength(String(value)),
      0,
    );
    return bytes > DATA_BYTES_MAX
      ? [{ field: "[]", message: `may not be more than ${DATA_BYTES_MAX} bytes`, reason: "FieldValueTooLong" }]
      : [];
  },
  Lease(lease) {
    const seconds = valueAt(lease, "spec.leaseDurationSeconds");
    return typeof seconds === "number" && seconds <= 0
      ? [{ field: "spec.leaseDurationSeconds", message: `${seconds}: must be greater than 0` }]
      : [];
  },
  PodDisruptionBudget(budget) {
    const both = valueAt(budget, "spec.minAvailable") !== undefined && valueAt(budget, "spec.maxUnavailable") !== undefined;
    return both ? [{ field: "spec", message: "minAvailable and maxUnavailable cannot be both set" }] : [];
  },
};

/** What is wrong with an object of a built-in kind. */
export function kindProblems(object: JsonObject, kind: { readonly kind: string; readonly custom: boolean }): readonly FieldProblem[] {
  return kind.custom ? [] : (CHECKS[kind.kind]?.(object) ?? []);
}

/** What of a pod's spec may change after its creation; `nodeName` once, from nothing. */
const POD_SPEC_MUTABLE = ["activeDeadlineSeconds", "tolerations", "schedulingGates"];

function podSpecRest(spec: JsonObject): JsonObject {
  const rest: Mutable = { ...spec };
  for (const field of POD_SPEC_MUTABLE) delete rest[field];
  for (const field of ["containers", "initContainers"]) {
    const containers = rest[field];
    if (Array.isArray(containers))
      rest[field] = containers.map((container) => (isJsonObject(container) ? { ...container, image: undefined } : container));
  }
  return rest;
}

/** What may not change between two states of an object. */
export function changeProblems(
  kind: { readonly kind: string; readonly custom: boolean },
  before: JsonObject,
  after: JsonObject,
): readonly FieldProblem[] {
  if (kind.custom) return [];
  if (kind.kind === "Node") {
    const machine = valueAt(before, "spec.providerID");
    if (machine === undefined || machine === "" || machine === valueAt(after, "spec.providerID")) return [];
    return [
      {
        field: "spec.providerID",
        message: "node updates may not change providerID except from empty to valid",
        reason: "FieldValueForbidden",
      },
    ];
  }
  if (kind.kind === "Pod") {
    const old = before["spec"];
    const now = after["spec"];
    if (old === now || !isJsonObject(old) || !isJsonObject(now)) return [];
    const oldRest = podSpecRest(old);
    const wasBound = typeof old["nodeName"] === "string" && old["nodeName"] !== "";
    const allowed = wasBound ? oldRest : { ...oldRest, nodeName: now["nodeName"] };
    if (equalJson(allowed, podSpecRest(now))) return [];
    return [
      {
        field: "spec",
        message: "pod updates may not change fields other than images, tolerations and deadlines",
        reason: "FieldValueForbidden",
      },
    ];
  }
  if (
    ["Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"].includes(kind.kind) &&
    !equalJson(valueAt(before, "spec.selector"), valueAt(after, "spec.selector"))
  ) {
    return [{ field: "spec.selector", message: "field is immutable" }];
  }
  return [];
}

/** Times that must have exactly six digits after the dot; `toISOString()` has three and is refused by the real server too. */
const MICRO_TIMES: Readonly<Record<string, readonly string[]>> = { Lease: ["spec.renewTime", "spec.acquireTime"], Event: ["eventTime"] };

/** The first time that is no MicroTime, as a sentence. */
export function microTimeProblem(object: JsonObject, kind: { readonly kind: string; readonly custom: boolean }): string | undefined {
  if (kind.custom) return undefined;
  for (const path of MICRO_TIMES[kind.kind] ?? []) {
    const value = valueAt(object, path);
    if (value === undefined || value === null || (typeof value === "string" && MICRO_TIME.test(value))) continue;
    return `${kind.kind} in version "v1" cannot be handled as a ${kind.kind}: ${path}: cannot parse ${JSON.stringify(value)} as "2006-01-02T15:04:05.000000Z07:00"`;
  }
  return undefined;
}
