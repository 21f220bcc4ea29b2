/** Fields that the kind does not have, as `fieldValidation` asks for: `Strict` refuses, `Warn` warns, `Ignore` takes them. */
import type { KindSpec } from "../kinds.ts";
import { isJsonObject, type JsonObject, valueAt } from "../store/json.ts";

const ENVELOPE = ["apiVersion", "kind", "metadata"];
const METADATA_FIELDS =
  "annotations creationTimestamp deletionGracePeriodSeconds deletionTimestamp finalizers generateName generation labels managedFields name namespace ownerReferences resourceVersion selfLink uid".split(
    " ",
  );
const CONTAINER_FIELDS =
  "args command env envFrom image imagePullPolicy lifecycle livenessProbe name ports readinessProbe resizePolicy resources restartPolicy restartPolicyRules securityContext startupProbe stdin stdinOnce targetContainerName terminationMessagePath terminationMessagePolicy tty volumeDevices volumeMounts workingDir".split(
    " ",
  );

/**
 * Their paths, `spec.template.spec.containers[0].imagePullPolcy`. Only what the table of kinds knows is looked at, and of an object that was patched
 * only what the patch touched.
 */
export function unknownFields(
  kind: KindSpec,
  object: JsonObject,
  podSpecFields: readonly string[] | undefined,
  before?: JsonObject,
): readonly string[] {
  const unknown = [...extra(object["metadata"], METADATA_FIELDS, "metadata.")];
  if (kind.fields) unknown.push(...extra(object, [...ENVELOPE, ...kind.fields], ""));
  if (before !== undefined && before["spec"] === object["spec"]) return unknown;
  if (kind.specFields) unknown.push(...extra(object["spec"], kind.specFields, "spec."));
  const podSpecAt = kind.kind === "Pod" ? "spec" : "spec.template.spec";
  if (kind.custom || !podSpecFields || !kind.specFields?.some((field) => field === "template" || field === "containers")) return unknown;
  const podSpec = valueAt(object, podSpecAt);
  if (kind.kind !== "Pod") unknown.push(...extra(podSpec, podSpecFields, `${podSpecAt}.`));
  for (const list of ["containers", "initContainers"]) {
    const containers = isJsonObject(podSpec) ? podSpec[list] : undefined;
    if (Array.isArray(containers))
      containers.forEach((container, index) => unknown.push(...extra(container, CONTAINER_FIELDS, `${podSpecAt}.${list}[${index}].`)));
  }
  return unknown;
}

function extra(value: unknown, known: readonly string[], at: string): readonly string[] {
  return isJsonObject(value) ? Object.keys(value).flatMap((key) => (known.includes(key) ? [] : [`${at}${key}`])) : [];
}
