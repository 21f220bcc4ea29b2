/** What the API server makes of an object that is to be created, and the address of any object that is written. Pure. */
import type { KubeObject, KubeObjectDraft, Preconditions, ResourceType } from "../../kube/api.ts";
import { apiVersionOf, CUSTOM_RESOURCE_DEFINITIONS } from "../../kube/resources.ts";
import { isType } from "../kind-key.ts";
import type { KindSpec } from "../kinds.ts";
import { applyDefaults, shapeProblem } from "./admission.ts";
import { badRequest, conflict, invalid, modified } from "./api-errors.ts";
import { establish } from "./custom-kinds.ts";
import { isJsonObject, type JsonObject } from "./json.ts";

export interface Birth {
  readonly name: string;
  readonly namespace: string | undefined;
  readonly uid: string;
  /** RFC 3339 in whole seconds. */
  readonly at: string;
  readonly managedFields: readonly unknown[] | undefined;
}

export function newObject(kind: KindSpec, draft: KubeObjectDraft, birth: Birth): KubeObject {
  const { labels, annotations, finalizers, ownerReferences, generateName } = draft.metadata;
  const object: Record<string, unknown> = {
    ...draft,
    apiVersion: apiVersionOf(kind),
    kind: kind.kind,
    metadata: {
      name: birth.name,
      ...(birth.namespace === undefined ? {} : { namespace: birth.namespace }),
      ...(generateName === undefined ? {} : { generateName }),
      uid: birth.uid,
      resourceVersion: "",
      ...(kind.hasGeneration ? { generation: 1 } : {}),
      creationTimestamp: birth.at,
      ...(isEmpty(labels) ? {} : { labels }),
      ...(isEmpty(annotations) ? {} : { annotations }),
      ...(isEmpty(finalizers) ? {} : { finalizers }),
      ...(isEmpty(ownerReferences) ? {} : { ownerReferences }),
      ...(birth.managedFields === undefined ? {} : { managedFields: birth.managedFields }),
    },
  };
  if (kind.statusOnCreate === "drop" && kind.subresources.includes("status")) delete object["status"];
  applyDefaults(object, kind);
  return (isType(kind, CUSTOM_RESOURCE_DEFINITIONS) ? establish(object, birth.at) : object) as unknown as KubeObject;
}

function isEmpty(value: object | undefined | null): boolean {
  return value === undefined || value === null || Object.keys(value).length === 0;
}

/** The namespace that a new object goes to: that of the request, else its own. */
export function namespaceFor(kind: KindSpec, draft: KubeObjectDraft, asked: string | undefined): string | undefined {
  if (!kind.namespaced) return undefined;
  const own = draft.metadata.namespace === "" ? undefined : draft.metadata.namespace;
  const namespace = asked ?? own;
  if (namespace === undefined || namespace === "") throw badRequest("an empty namespace may not be set during creation");
  if (own !== undefined && own !== namespace) {
    throw badRequest("the namespace of the provided object does not match the namespace sent on the request");
  }
  return namespace;
}

const GENERATED_SUFFIX_LENGTH = 5;
const GENERATED_BASE_MAX = 58;

/** The object's own name, or one made of its prefix and the end of a fresh id. */
export function nameFor(kind: KindSpec, draft: KubeObjectDraft, id: () => string): string {
  const { name, generateName } = draft.metadata;
  if (name !== undefined && name !== "") return name;
  if (generateName !== undefined && generateName !== "")
    return generateName.slice(0, GENERATED_BASE_MAX) + id().slice(-GENERATED_SUFFIX_LENGTH);
  throw invalid(kind, "", [{ field: "metadata.name", message: "name or generateName is required", reason: "FieldValueRequired" }]);
}

/** A body may leave out kind and apiVersion; what it names must be right, and its metadata what metadata can be. */
export function checkAddress(
  kind: KindSpec,
  object: JsonObject,
  at?: { readonly name: string; readonly namespace?: string | undefined },
): void {
  const expected = apiVersionOf(kind);
  if (object["apiVersion"] !== undefined && object["apiVersion"] !== "" && object["apiVersion"] !== expected) {
    throw badRequest(`the API version in the data (${String(object["apiVersion"])}) does not match the expected API version (${expected})`);
  }
  if (object["kind"] !== undefined && object["kind"] !== "" && object["kind"] !== kind.kind) {
    if (kind.custom) throw wrongKind(kind, object);
    throw badRequest(`the kind in the data (${String(object["kind"])}) does not match the expected kind (${kind.kind})`);
  }
  const metadata = object["metadata"] ?? {};
  const problem = shapeProblem(metadata);
  if (problem !== undefined) throw badRequest(`${kind.kind} in version "${kind.version}" cannot be handled as a ${kind.kind}: ${problem}`);
  const { name, namespace } = isJsonObject(metadata) ? metadata : {};
  if (at !== undefined && isOther(name, at.name)) {
    throw badRequest(`the name of the object (${String(name)}) does not match the name on the URL (${at.name})`);
  }
  if (at !== undefined && kind.namespaced && isOther(namespace, at.namespace)) {
    throw badRequest("the namespace of the provided object does not match the namespace sent on the request");
  }
}

/** Only custom resources are told apart so late that it is a fault of the object. */
function wrongKind(kind: KindSpec, object: JsonObject): Error {
  const { metadata } = object;
  const name = isJsonObject(metadata) && typeof metadata["name"] === "string" ? metadata["name"] : "";
  const given = String(object["kind"]);
  return invalid({ ...kind, kind: given }, name, [{ field: "kind", message: `${JSON.stringify(given)}: must be ${kind.kind}` }]);
}

function isOther(given: unknown, wanted: unknown): boolean {
  return given !== undefined && given !== "" && given !== wanted;
}

/** What a written object says it was computed from. */
function identityOf(candidate: JsonObject): Preconditions {
  const metadata = isJsonObject(candidate["metadata"]) ? candidate["metadata"] : {};
  const { uid, resourceVersion } = metadata;
  return {
    uid: typeof uid === "string" && uid !== "" ? uid : undefined,
    resourceVersion: typeof resourceVersion === "string" && resourceVersion !== "" ? resourceVersion : undefined,
  };
}

/** Of a DELETE and an eviction. Throws 409 when the object is another one, or was changed. */
export function checkPreconditions(kind: ResourceType, object: KubeObject, { uid, resourceVersion }: Preconditions): void {
  const { name } = object.metadata;
  // Unlike elsewhere the details name the Kind.
  const named = { ...kind, plural: kind.kind };
  if (uid !== undefined && uid !== object.metadata.uid) {
    throw conflict(named, name, `Precondition failed: UID in precondition: ${uid}, UID in object meta: ${object.metadata.uid}`);
  }
  if (resourceVersion !== undefined && resourceVersion !== object.metadata.resourceVersion) {
    const found = object.metadata.resourceVersion;
    throw conflict(
      named,
      name,
      `Precondition failed: ResourceVersion in precondition: ${resourceVersion}, ResourceVersion in object meta: ${found}`,
    );
  }
}

/** Of a patched object: 409 when it was computed from an older state, 422 when from another object. */
export function checkIdentity(kind: ResourceType, object: KubeObject, candidate: JsonObject): void {
  const { uid, resourceVersion } = identityOf(candidate);
  const { name } = object.metadata;
  if (resourceVersion !== undefined && resourceVersion !== object.metadata.resourceVersion) throw modified(kind, name);
  if (uid === undefined || uid === object.metadata.uid) return;
  throw invalid(kind, name, [{ field: "metadata.uid", message: `${JSON.stringify(uid)}: field is immutable` }]);
}
