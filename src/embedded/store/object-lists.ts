/** Lists: selection, order, pages, and which resourceVersions may be asked for. */
import type { Clock } from "../../kernel/clock.ts";
import type { KubeList, KubeObject, ListOptions } from "../../kube/api.ts";
import { kindKey } from "../kind-key.ts";
import type { KindSpec } from "../kinds.ts";
import { badRequest, expired, tooLargeResourceVersion } from "./api-errors.ts";
import type { Collection } from "./collection.ts";
import { formatToken, ListPages, parseToken } from "./list-pages.ts";
import { parseFieldSelector, parseLabelSelector } from "./selectors.ts";
import { covers, type Watcher } from "./watch-index.ts";

export interface StoreListOptions extends ListOptions {
  readonly resourceVersionMatch?: "Exact" | "NotOlderThan" | undefined;
}

export interface StoreList extends KubeList {
  /** How many follow on later pages; absent when there is a selector. */
  readonly remaining?: number | undefined;
}

export type Scope = Omit<Watcher, "sink">;

/** Throws a 400 for a selector that is none or that the kind does not support. */
export function scopeOf(kind: KindSpec, options: Pick<ListOptions, "namespace" | "labelSelector" | "fieldSelector">): Scope {
  return {
    namespace: kind.namespaced && options.namespace !== "" ? options.namespace : undefined,
    labels: parseLabelSelector(options.labelSelector),
    fields: parseFieldSelector(options.fieldSelector, ["metadata.name", "metadata.namespace", ...kind.selectableFields]),
  };
}

/** Throws a 400 for what is no resourceVersion. */
export function parseVersion(text: string): number {
  if (!/^\d{1,15}$/.test(text)) throw badRequest(`Invalid value: ${JSON.stringify(text)}: resourceVersion must be a whole number`);
  return Number(text);
}

export class ObjectLists {
  readonly #pages: ListPages;

  constructor(clock: Clock) {
    this.#pages = new ListPages(clock);
  }

  read(collection: Collection, revision: number, options: StoreListOptions): StoreList {
    if (options.continue !== undefined && options.continue !== "") return this.#continued(collection, revision, options);
    checkVersion(collection, revision, options);
    const limit = options.resourceVersion === "0" ? 0 : (options.limit ?? 0);
    return this.#firstPage(listed(collection, options), select(collection, options), revision, { ...options, limit });
  }

  /** Every token from before is expired afterwards. */
  forget(): void {
    this.#pages.clear();
  }

  #firstPage(of: string, items: readonly KubeObject[], revision: number, options: StoreListOptions): StoreList {
    const { limit = 0 } = options;
    if (limit <= 0 || items.length <= limit) return { resourceVersion: String(revision), items };
    return page(this.#pages.begin(of, revision, items), revision, items, 0, options);
  }

  #continued(collection: Collection, revision: number, options: StoreListOptions): StoreList {
    if (options.resourceVersion !== undefined && options.resourceVersion !== "" && options.resourceVersion !== "0") {
      throw badRequest("specifying resource version is not allowed when using continue");
    }
    const token = parseToken(options.continue ?? "");
    // A token without a snapshot goes on at the current version: for who accepts an inconsistent list.
    if (token.snapshot === 0) {
      return this.#firstPage(
        listed(collection, options),
        select(collection, options).filter((object) => orderKey(object) > token.after),
        revision,
        options,
      );
    }
    const snapshot = this.#pages.find(token.snapshot);
    if (snapshot && snapshot.of !== listed(collection, options)) throw badRequest("continue key is not valid");
    if (snapshot) return page(token.snapshot, snapshot.revision, snapshot.items, token.offset, options);
    throw expired(
      "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results.",
      formatToken({ snapshot: 0, offset: 0, after: token.after }),
    );
  }
}

function listed(collection: Collection, { namespace = "" }: ListOptions): string {
  return `${kindKey(collection.kind)} ${namespace}`;
}

function select(collection: Collection, options: ListOptions): readonly KubeObject[] {
  const scope = scopeOf(collection.kind, options);
  const items: KubeObject[] = [];
  for (const object of collection.inOrder(scope.namespace)) if (covers(scope, object)) items.push(object);
  return items;
}

function checkVersion(collection: Collection, revision: number, { resourceVersion, resourceVersionMatch }: StoreListOptions): void {
  if (resourceVersion === undefined || resourceVersion === "" || resourceVersion === "0") return;
  const asked = parseVersion(resourceVersion);
  if (asked > revision) throw tooLargeResourceVersion(asked, revision);
  if (resourceVersionMatch === "Exact" && asked < collection.changedAt) {
    throw expired(`The resourceVersion for the provided list is too old: ${asked}`);
  }
}

function page(snapshot: number, revision: number, all: readonly KubeObject[], offset: number, options: StoreListOptions): StoreList {
  const { limit = 0 } = options;
  const end = limit <= 0 ? all.length : Math.min(all.length, offset + limit);
  const items = all.slice(offset, end);
  const last = items.at(-1);
  if (end >= all.length || last === undefined) return { resourceVersion: String(revision), items };
  const isSelected = (options.labelSelector ?? "") !== "" || (options.fieldSelector ?? "") !== "";
  return {
    resourceVersion: String(revision),
    items,
    continue: formatToken({ snapshot, offset: end, after: orderKey(last) }),
    ...(isSelected ? {} : { remaining: all.length - end }),
  };
}

function orderKey(object: KubeObject): string {
  const { namespace, name } = object.metadata;
  return namespace === undefined ? name : `${namespace}/${name}`;
}
