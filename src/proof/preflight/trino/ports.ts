/** What the preflight of a Trino pool asks outside the document. Each is absent where nobody can be asked: its line is held then, never assumed. */
import type { KubeApi } from "../../../kube/api.ts";
import type { PoolDocument } from "../../../model/pool.ts";
import type { Judgement } from "./facts.ts";

/** One line of the table, found out by another part: credentials by code path, the bucket of the exchange. */
export type LineCheck = (document: PoolDocument, site: string) => Promise<Judgement>;

export interface TrinoPreflightParts {
  readonly kube: Pick<KubeApi, "get" | "list">;
  /** Whether the worker at this address lets its state be changed; changes nothing. */
  readonly maySetState?: (base: string, user: string) => Promise<boolean>;
  /** What is used of a quota's dimension at a site. */
  readonly quotaUsed?: (site: string, dimension: string) => Promise<number>;
  readonly credentials?: LineCheck;
  readonly exchange?: LineCheck;
}
