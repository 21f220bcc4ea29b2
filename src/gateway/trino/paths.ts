/** What a request of a Trino client is about, read from its method and path alone. */
import { coordinatorOfQuery } from "../../model/trino.ts";

export type TrinoTarget =
  /** A new statement: it may go to any cluster that takes it, or to that of its transaction. */
  | { readonly kind: "statement" }
  | QueryTarget
  /** A spooled segment; its token says whose. `acks`: its client is done with it. */
  | { readonly kind: "segment"; readonly acks: boolean }
  | { readonly kind: "other" };

/** About one query. */
export interface QueryTarget {
  readonly kind: "query";
  readonly queryId: string;
  readonly coordinator: string;
  /** `page`: its answer is one of the statement protocol. `beat`: its client says that it is still there. `end`: it gives the query up. */
  readonly does: "page" | "beat" | "end" | "other";
}

const STATEMENT = "/v1/statement";
const SPOOLED = "/v1/spooled/";
/** Longer paths are not searched: a query id stands near the beginning of all that have one. */
const SEARCHED = 1_024;
const QUERY_ID = /(?:^|[/?=&.])(\d{8}_\d{6}_\d{5,10}_[a-z0-9]{5})(?=[/?&.#]|$)/;

export function targetOf(method: string, path: string): TrinoTarget {
  if (method === "POST" && isPath(path, STATEMENT)) return { kind: "statement" };
  if (path.startsWith(SPOOLED)) return { kind: "segment", acks: path.startsWith("ack/", SPOOLED.length) };
  const queryId = QUERY_ID.exec(path.length > SEARCHED ? path.slice(0, SEARCHED) : path)?.[1];
  const coordinator = queryId === undefined ? undefined : coordinatorOfQuery(queryId);
  if (queryId === undefined || coordinator === undefined) return { kind: "other" };
  return { kind: "query", queryId, coordinator, does: path.startsWith(`${STATEMENT}/`) ? deedOf(method, path) : "other" };
}

function deedOf(method: string, path: string): QueryTarget["does"] {
  if (method === "GET") return "page";
  if (method === "HEAD") return "beat";
  return method === "DELETE" && !path.includes("/partialCancel/") ? "end" : "other";
}

function isPath(path: string, wanted: string): boolean {
  return path.startsWith(wanted) && (path.length === wanted.length || path[wanted.length] === "?" || path.slice(wanted.length) === "/");
}
