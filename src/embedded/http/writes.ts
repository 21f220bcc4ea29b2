/** POST, PUT, PATCH and DELETE. */
import type { DeleteOptions, KubeObject, KubeObjectDraft, ObjectRef } from "../../kube/api.ts";
import { apiVersionOf, PODS } from "../../kube/resources.ts";
import type { KindSpec } from "../kinds.ts";
import { badRequest, invalid, methodNotAllowed, notFound, undecodablePatch, unsupportedMediaType } from "../store/api-errors.ts";
import { formatSeconds } from "../store/deletion.ts";
import { isJsonObject, type JsonObject } from "../store/json.ts";
import { applyJsonPatch } from "../store/json-patch.ts";
import { mergePatch } from "../store/merge-patch.ts";
import { checkAddress } from "../store/new-object.ts";
import { refOf, type WriteOptions } from "../store/object-store.ts";
import { applyObject } from "../store/server-side-apply.ts";
import { strategicMerge } from "../store/strategic-merge.ts";
import { sendJson } from "./answer.ts";
import { parseObject, parseValue, type RequestBody, readBody } from "./body.ts";
import { type ApiContext, type Exchange, isDryRun, isTrue, textOf, wholeNumber } from "./context.ts";
import { unknownFields } from "./field-validation.ts";
import { listOptions, sendObject, withoutAddress } from "./reads.ts";

const PATCH_TYPES = [
  "application/json-patch+json",
  "application/merge-patch+json",
  "application/strategic-merge-patch+json",
  "application/apply-patch+yaml",
];

export async function createObject(context: ApiContext, exchange: Exchange, kind: KindSpec, namespace: string | undefined): Promise<void> {
  if (kind.namespaced && namespace === undefined) throw methodNotAllowed("the server does not allow this method on the requested resource");
  const object = parseObject(await readBody(exchange.request)) as unknown as KubeObjectDraft;
  const draft = { ...object, metadata: isJsonObject(object.metadata) ? object.metadata : {} };
  const headers = checkFields(context, exchange, kind, draft);
  const created = context.store.create(kind, draft, { namespace, dryRun: isDryRun(exchange.query, "CreateOptions") });
  sendObject(context, exchange, kind, created, 201, headers);
}

export async function replaceObject(
  context: ApiContext,
  exchange: Exchange,
  kind: KindSpec,
  ref: ObjectRef,
  part: WriteOptions["part"],
): Promise<void> {
  const object = parseObject(await readBody(exchange.request)) as unknown as KubeObjectDraft;
  const draft = { ...object, metadata: isJsonObject(object.metadata) ? object.metadata : {} };
  checkAddress(kind, draft as unknown as JsonObject, ref);
  const headers = checkFields(context, exchange, kind, draft);
  const dryRun = isDryRun(exchange.query, "UpdateOptions");
  const isNew = kind.createsOnUpdate === true && part === undefined && !context.store.find(ref);
  const stored = isNew
    ? context.store.create(kind, draft, { namespace: ref.namespace, dryRun })
    : context.store.replace(ref, draft, { part, dryRun });
  sendObject(context, exchange, kind, stored, isNew ? 201 : 200, headers);
}

export async function patchObject(
  context: ApiContext,
  exchange: Exchange,
  kind: KindSpec,
  ref: ObjectRef,
  part: WriteOptions["part"],
): Promise<void> {
  const body = await readBody(exchange.request);
  const options = { part, dryRun: isDryRun(exchange.query, "PatchOptions") };
  if (body.mediaType === "application/apply-patch+yaml") return applyConfig(context, exchange, kind, ref, parseConfig(body), options);
  const headers: Record<string, string> = {};
  const change = patchOf(kind, body);
  const patched = context.store.modify(
    ref,
    (before) => {
      const after = change(before);
      Object.assign(headers, checkFields(context, exchange, kind, after, before));
      return after;
    },
    options,
  );
  sendObject(context, exchange, kind, patched, 200, headers);
}

function patchOf(kind: KindSpec, body: RequestBody): (before: KubeObject) => JsonObject {
  const patch = parseValue(body, PATCH_TYPES);
  if (body.mediaType === "application/json-patch+json") return (before) => objectOr400(applyJsonPatch(before, patch));
  if (!isJsonObject(patch)) throw badRequest("a patch of this type is an object");
  if (body.mediaType === "application/merge-patch+json") return (before) => objectOr400(mergePatch(before, patch));
  if (kind.custom) {
    throw unsupportedMediaType(
      "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
    );
  }
  return (before) => objectOr400(strategicMerge(before, patch, kind.kind));
}

function objectOr400(value: unknown): JsonObject {
  if (!isJsonObject(value)) throw badRequest("the patched value is no object");
  return value;
}

function parseConfig(body: RequestBody): JsonObject {
  const config = parseValue(body, PATCH_TYPES);
  if (!isJsonObject(config)) throw badRequest("an applied configuration is an object");
  return config;
}

function applyConfig(
  context: ApiContext,
  exchange: Exchange,
  kind: KindSpec,
  ref: ObjectRef,
  config: JsonObject,
  options: WriteOptions,
): void {
  const manager = exchange.query.get("fieldManager") ?? "";
  if (manager === "")
    throw invalid({ group: "meta.k8s.io", plural: "patchoptions", kind: "PatchOptions" }, "", [
      { field: "fieldManager", message: "is required for apply patch", reason: "FieldValueRequired" },
    ]);
  const named = isJsonObject(config["metadata"]) ? config["metadata"]["name"] : undefined;
  if (named !== undefined && named !== "" && named !== ref.name)
    throw badRequest(`the name of the object (${String(named)}) does not match the name on the URL (${ref.name})`);
  const headers = checkFields(context, exchange, kind, config);
  const { store, clock } = context;
  const request = { manager, force: isTrue(exchange.query, "force"), at: formatSeconds(clock.now()), custom: kind.custom };
  const live = store.find(ref);
  const { object, managedFields } = applyObject(live, config, request);
  if (live)
    return sendObject(
      context,
      exchange,
      kind,
      store.modify(ref, () => object, { ...options, managedFields }),
      200,
      headers,
    );
  if (options.part !== undefined) throw notFound(kind, ref.name);
  const metadata = { ...(isJsonObject(object["metadata"]) ? object["metadata"] : {}), name: ref.name };
  const draft = { ...object, metadata } as unknown as KubeObjectDraft;
  sendObject(context, exchange, kind, store.create(kind, draft, { ...options, managedFields, namespace: ref.namespace }), 201, headers);
}

/** The answer's warnings; throws a 400 under `Strict`. What an object had already is not held against a patch. */
function checkFields(
  context: ApiContext,
  { query }: Exchange,
  kind: KindSpec,
  object: JsonObject,
  before?: JsonObject,
): Readonly<Record<string, string>> {
  const mode = query.get("fieldValidation") ?? "Warn";
  if (mode === "Ignore") return {};
  const podSpecFields = context.store.kinds.find(PODS)?.specFields;
  const found = unknownFields(kind, object, podSpecFields, before);
  if (found.length === 0) return {};
  const known = before ? unknownFields(kind, before, podSpecFields) : [];
  const unknown = found.filter((field) => !known.includes(field));
  if (unknown.length === 0) return {};
  const sentences = unknown.map((field) => `unknown field "${field}"`);
  if (mode !== "Strict") return { warning: sentences.map((sentence) => `299 - ${JSON.stringify(sentence)}`).join(", ") };
  const problem = `strict decoding error: ${sentences.join(", ")}`;
  if (before !== undefined) throw undecodablePatch(problem);
  throw badRequest(`${kind.kind} in version "${kind.version}" cannot be handled as a ${kind.kind}: ${problem}`);
}

const PROPAGATION: readonly unknown[] = ["Background", "Foreground", "Orphan"];

async function deleteOptions({ request, query }: Exchange): Promise<DeleteOptions & { readonly dryRun: boolean }> {
  const body = await readBody(request);
  const given = body.text.trim() === "" ? {} : parseObject(body);
  const preconditions = isJsonObject(given["preconditions"]) ? given["preconditions"] : {};
  const graceS = given["gracePeriodSeconds"] ?? wholeNumber(query, "gracePeriodSeconds");
  const policy = given["propagationPolicy"] ?? textOf(query, "propagationPolicy");
  if (graceS !== undefined && graceS !== null && (!Number.isInteger(graceS) || (graceS as number) < 0))
    throw badRequest("gracePeriodSeconds must be a whole number, zero or more");
  if (policy !== undefined && policy !== null && !PROPAGATION.includes(policy))
    throw badRequest(`propagationPolicy must be one of ${PROPAGATION.join(", ")}`);
  return {
    preconditions: { uid: textOrNone(preconditions["uid"]), resourceVersion: textOrNone(preconditions["resourceVersion"]) },
    gracePeriodSeconds: (graceS ?? undefined) as number | undefined,
    propagationPolicy: (policy ?? undefined) as DeleteOptions["propagationPolicy"],
    dryRun: isDryRun(query, "DeleteOptions") || (Array.isArray(given["dryRun"]) && given["dryRun"].includes("All")),
  };
}

function textOrNone(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

export async function deleteObject(context: ApiContext, exchange: Exchange, kind: KindSpec, ref: ObjectRef): Promise<void> {
  const { object, gone } = context.store.delete(ref, await deleteOptions(exchange));
  if (!gone || kind.deleteTellsObject) return sendJson(exchange.response, 200, object);
  const { name, uid } = object.metadata;
  sendJson(exchange.response, 200, {
    kind: "Status",
    apiVersion: "v1",
    metadata: {},
    status: "Success",
    details: { name, ...(kind.group === "" ? {} : { group: kind.group }), kind: kind.plural, uid },
  });
}

export async function deleteCollection(
  context: ApiContext,
  exchange: Exchange,
  kind: KindSpec,
  namespace: string | undefined,
): Promise<void> {
  if (kind.namespaced && namespace === undefined) throw methodNotAllowed("the server does not allow this method on the requested resource");
  const options = await deleteOptions(exchange);
  const { items, resourceVersion } = context.store.list(kind, { ...listOptions(exchange.query, namespace), limit: undefined });
  const deleted: KubeObject[] = [];
  for (const object of items)
    if (context.store.find(refOf(kind, object))) deleted.push(context.store.delete(refOf(kind, object), options).object);
  const shown = kind.custom ? deleted : deleted.map(withoutAddress);
  sendJson(exchange.response, 200, {
    kind: `${kind.kind}List`,
    apiVersion: apiVersionOf(kind),
    metadata: { resourceVersion },
    items: shown,
  });
}
