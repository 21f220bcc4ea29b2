/** GET of objects and lists. */
import type { ServerResponse } from "node:http";
import type { KubeObject } from "../../kube/api.ts";
import { apiVersionOf } from "../../kube/resources.ts";
import type { KindSpec } from "../kinds.ts";
import { invalid } from "../store/api-errors.ts";
import type { StoreListOptions } from "../store/object-lists.ts";
import { sendJson, sendJsonText } from "./answer.ts";
import { type ApiContext, type Exchange, textOf, wholeNumber } from "./context.ts";
import { type IncludeObject, isMetadataWanted, isTableWanted, metadataOf, tableOf } from "./table.ts";

export function sendObject(
  context: ApiContext,
  exchange: Exchange,
  kind: KindSpec,
  object: KubeObject,
  code = 200,
  headers: Readonly<Record<string, string>> = {},
): void {
  if (!isTableWanted(exchange.request.headers.accept)) return sendJsonText(exchange.response, code, context.texts.of(object), headers);
  const { resourceVersion } = object.metadata;
  sendJson(
    exchange.response,
    code,
    tableOf(kind, [object], { resourceVersion }, { now: context.clock.now(), include: includeOf(exchange), withColumns: true }),
    headers,
  );
}

export function includeOf(exchange: Exchange): IncludeObject {
  const asked = exchange.query.get("includeObject");
  return asked === "None" || asked === "Object" ? asked : "Metadata";
}

export async function sendList(context: ApiContext, exchange: Exchange, kind: KindSpec, namespace: string | undefined): Promise<void> {
  const list = context.store.list(kind, listOptions(exchange.query, namespace));
  const metadata = {
    resourceVersion: list.resourceVersion,
    ...(list.continue === undefined ? {} : { continue: list.continue }),
    ...(list.remaining === undefined ? {} : { remainingItemCount: list.remaining }),
  };
  if (isTableWanted(exchange.request.headers.accept)) {
    return sendJson(
      exchange.response,
      200,
      tableOf(kind, list.items, metadata, { now: context.clock.now(), include: includeOf(exchange), withColumns: true }),
    );
  }
  if (isMetadataWanted(exchange.request.headers.accept)) {
    const metadataHead = JSON.stringify({ kind: "PartialObjectMetadataList", apiVersion: "meta.k8s.io/v1", metadata });
    return streamItems(exchange.response, metadataHead, list.items, metadataOf);
  }
  const head = JSON.stringify({ kind: `${kind.kind}List`, apiVersion: apiVersionOf(kind), metadata });
  return streamItems(exchange.response, head, list.items, kind.custom ? (item) => item : withoutAddress);
}

/** A piece of a long list; only so much of it is text at a time, and a slow reader makes the rest wait. */
const PIECE_CHARACTERS = 256 * 1_024;

async function streamItems(
  response: ServerResponse,
  head: string,
  items: readonly KubeObject[],
  shown: (item: KubeObject) => unknown,
): Promise<void> {
  response.writeHead(200, { "content-type": "application/json" });
  let piece = `${head.slice(0, -1)},"items":[`;
  for (const [index, item] of items.entries()) {
    piece += (index === 0 ? "" : ",") + JSON.stringify(shown(item));
    if (piece.length < PIECE_CHARACTERS) continue;
    if (!response.write(piece)) await drained(response);
    if (response.destroyed) return;
    piece = "";
  }
  response.end(`${piece}]}`);
}

function drained(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const go = (): void => {
      response.off("drain", go).off("close", go);
      resolve();
    };
    response.on("drain", go).on("close", go);
  });
}

/** Items of a built-in kind carry no kind and apiVersion. */
export function withoutAddress(object: KubeObject): Readonly<Record<string, unknown>> {
  const { apiVersion: _apiVersion, kind: _kind, ...rest } = object;
  return rest;
}

export function listOptions(query: URLSearchParams, namespace: string | undefined): StoreListOptions {
  const match = query.get("resourceVersionMatch");
  if (match !== null && match !== "" && !query.get("resourceVersion"))
    throw invalid({ group: "meta.k8s.io", plural: "listoptions", kind: "ListOptions" }, "", [
      {
        field: "resourceVersionMatch",
        message: "resourceVersionMatch is forbidden unless resourceVersion is provided",
        reason: "FieldValueForbidden",
      },
    ]);
  return {
    namespace,
    labelSelector: textOf(query, "labelSelector"),
    fieldSelector: textOf(query, "fieldSelector"),
    limit: wholeNumber(query, "limit"),
    continue: textOf(query, "continue"),
    resourceVersion: textOf(query, "resourceVersion"),
    resourceVersionMatch: match === "Exact" || match === "NotOlderThan" ? match : undefined,
  };
}
