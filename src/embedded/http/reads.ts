/** GET of objects and lists. */
import type { KubeObject } from "../../kube/api.ts";
import { apiVersionOf } from "../../kube/resources.ts";
import type { KindSpec } from "../kinds.ts";
import type { StoreListOptions } from "../store/object-lists.ts";
import { sendJson } from "./answer.ts";
import { type ApiContext, type Exchange, textOf, wholeNumber } from "./context.ts";
import { type IncludeObject, isTableWanted, tableOf } from "./table.ts";

export function sendObject(
  context: ApiContext,
  exchange: Exchange,
  kind: KindSpec,
  object: KubeObject,
  code = 200,
  headers: Readonly<Record<string, string>> = {},
): void {
  if (!isTableWanted(exchange.request.headers.accept)) return sendJson(exchange.response, code, object, headers);
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

export function sendList(context: ApiContext, exchange: Exchange, kind: KindSpec, namespace: string | undefined): void {
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
  const items = kind.custom ? list.items : list.items.map(withoutAddress);
  sendJson(exchange.response, 200, { kind: `${kind.kind}List`, apiVersion: apiVersionOf(kind), metadata, items });
}

/** Items of a built-in kind carry no kind and apiVersion. */
function withoutAddress(object: KubeObject): Readonly<Record<string, unknown>> {
  const { apiVersion: _apiVersion, kind: _kind, ...rest } = object;
  return rest;
}

export function listOptions(query: URLSearchParams, namespace: string | undefined): StoreListOptions {
  const match = query.get("resourceVersionMatch");
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
