/** As much OpenAPI v3 as `kubectl apply` and `kubectl explain` need; validation is the server's (`fieldValidation`). */
import { apiVersionOf } from "../../kube/resources.ts";
import type { KindSpec } from "../kinds.ts";
import type { KindRegistry } from "../store/kind-registry.ts";

type Json = Readonly<Record<string, unknown>>;

const pathOf = (kind: KindSpec): string => (kind.group === "" ? `api/${kind.version}` : `apis/${kind.group}/${kind.version}`);

/** `/openapi/v3`. The hash lets clients keep what they have: it changes with the kinds. */
export function openApiIndex(kinds: KindRegistry): Json {
  const paths = [...new Set(kinds.all().map(pathOf))].map((path) => {
    const names = kinds
      .all()
      .filter((kind) => pathOf(kind) === path)
      .map((kind) => kind.plural);
    return [path, { serverRelativeURL: `/openapi/v3/${path}?hash=${names.length}-${names.join("").length}` }];
  });
  return { paths: Object.fromEntries(paths) as Json };
}

/** `/openapi/v3/api/v1`, `/openapi/v3/apis/GROUP/VERSION`; undefined when nothing is served there. */
export function openApiDocument(kinds: KindRegistry, path: string): Json | undefined {
  const served = kinds.all().filter((kind) => pathOf(kind) === path);
  if (served.length === 0) return undefined;
  return {
    openapi: "3.0.0",
    info: { title: "Relevo embedded cluster", version: "v1" },
    paths: Object.fromEntries(served.map((kind) => [objectPath(kind), pathItem(kind)])),
    components: { schemas: { ...Object.fromEntries(served.map((kind) => [schemaName(kind), schemaOf(kind)])), [META]: OBJECT_META } },
  };
}

const META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
const OBJECT_META: Json = {
  type: "object",
  description: "What every object has besides its content.",
  properties: {
    name: { type: "string", description: "Unique within the namespace." },
    namespace: { type: "string", description: "The space within which the name is unique." },
    generateName: { type: "string", description: "The server makes a name from this prefix." },
    labels: { type: "object", additionalProperties: { type: "string" }, description: "Used by selectors." },
    annotations: { type: "object", additionalProperties: { type: "string" }, description: "For anything else." },
    finalizers: { type: "array", items: { type: "string" }, description: "The object is deleted when this is empty." },
    ownerReferences: { type: "array", items: { type: "object" }, description: "The object goes with its owners." },
    uid: { type: "string", description: "Unique in time and space." },
    resourceVersion: { type: "string", description: "Changes with every write." },
    generation: { type: "integer", format: "int64", description: "Changes with every write of the desired state." },
    creationTimestamp: { type: "string", format: "date-time", description: "Set by the server." },
    deletionTimestamp: { type: "string", format: "date-time", description: "When the object is to be gone." },
  },
};

function schemaName(kind: KindSpec): string {
  return kind.group === ""
    ? `io.k8s.api.core.${kind.version}.${kind.kind}`
    : `${kind.group.split(".").reverse().join(".")}.${kind.version}.${kind.kind}`;
}

function objectPath(kind: KindSpec): string {
  return `/${pathOf(kind)}${kind.namespaced ? "/namespaces/{namespace}" : ""}/${kind.plural}/{name}`;
}

const groupVersionKind = (kind: KindSpec): Json => ({ group: kind.group, version: kind.version, kind: kind.kind });

function pathItem(kind: KindSpec): Json {
  const query = (name: string): Json => ({ name, in: "query", schema: { type: "string", uniqueItems: true } });
  const parameters = ["dryRun", "fieldManager", "fieldValidation", "force"].map(query);
  const operation = (action: string): Json => ({
    "x-kubernetes-action": action,
    "x-kubernetes-group-version-kind": groupVersionKind(kind),
    parameters,
    responses: {
      "200": { description: "OK", content: { "application/json": { schema: { $ref: `#/components/schemas/${schemaName(kind)}` } } } },
    },
  });
  return { get: operation("get"), put: operation("put"), patch: operation("patch"), delete: operation("delete") };
}

function schemaOf(kind: KindSpec): Json {
  const isOpen = kind.fields === undefined;
  const members = (kind.fields ?? ["spec", "status"]).map((field) => [field, memberSchema(kind, field)]);
  return {
    type: "object",
    description: kind.description,
    properties: {
      apiVersion: { type: "string", description: `Here ${apiVersionOf(kind)}.` },
      kind: { type: "string", description: `Here ${kind.kind}.` },
      metadata: { description: "Name, labels and the like.", allOf: [{ $ref: `#/components/schemas/${META}` }] },
      ...(Object.fromEntries(members) as Json),
    },
    ...(isOpen ? { "x-kubernetes-preserve-unknown-fields": true } : {}),
    "x-kubernetes-group-version-kind": [groupVersionKind(kind)],
  };
}

const MEMBER: Readonly<Record<string, string>> = { spec: "What is wanted.", status: "What was seen; written by controllers." };

function memberSchema(kind: KindSpec, field: string): Json {
  const description = MEMBER[field] ?? `The ${field} of the ${kind.kind}.`;
  const known = field === "spec" ? kind.specFields : undefined;
  if (!known) return { type: "object", description, "x-kubernetes-preserve-unknown-fields": true };
  const properties = Object.fromEntries(
    known.map((name) => [name, { type: "object", description: `The ${name}.`, "x-kubernetes-preserve-unknown-fields": true }]),
  );
  return { type: "object", description, properties };
}
