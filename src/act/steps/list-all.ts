/** All pages of a list. */
import { RelevoError } from "../../kernel/errors.ts";
import type { KubeApi, KubeObject, ListOptions, ResourceType } from "../../kube/api.ts";

const PAGE_SIZE = 500;
/** An instance has at most a few objects of a kind: more pages are a fault of the server. */
const PAGES_MAX = 20;

/** Throws when a token expires on the way: the caller's step is then tried again as a whole. */
export async function listAll(kube: KubeApi, type: ResourceType, options: ListOptions): Promise<readonly KubeObject[]> {
  const items: KubeObject[] = [];
  let next: string | undefined;
  for (let page = 0; page < PAGES_MAX; page++) {
    const list = await kube.list(type, { ...options, limit: PAGE_SIZE, ...(next === undefined ? {} : { continue: next }) });
    items.push(...list.items);
    next = list.continue;
    if (next === undefined) return items;
  }
  throw new RelevoError("list_too_long", `A list of ${type.plural} has no end.`, { class: "retryable", found: items.length });
}
