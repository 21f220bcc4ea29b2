/** Lists for an examination: bounded, and a kind that is not served is no failure. */
import { isForbidden, isNotFound, type KubeApi, type KubeObject, type ListOptions, type ResourceType } from "../../kube/api.ts";
import { bad, type Finding } from "../../model/finding.ts";

const PAGE = 500;
/** More objects of a kind than this are not looked at. */
const PAGES_MAX = 20;

export type Listed =
  | { readonly state: "listed"; readonly items: readonly KubeObject[]; readonly isWhole: boolean }
  | { readonly state: "not_served" }
  | { readonly state: "forbidden" };

export async function listAll(kube: KubeApi, type: ResourceType, options: ListOptions = {}): Promise<Listed> {
  const items: KubeObject[] = [];
  let next: string | undefined;
  try {
    for (let page = 0; page < PAGES_MAX; page++) {
      const list = await kube.list(type, { ...options, limit: PAGE, ...(next === undefined ? {} : { continue: next }) });
      items.push(...list.items);
      next = list.continue;
      if (next === undefined) return { state: "listed", items, isWhole: true };
    }
    return { state: "listed", items, isWhole: false };
  } catch (error) {
    if (isNotFound(error)) return { state: "not_served" };
    if (isForbidden(error)) return { state: "forbidden" };
    throw error;
  }
}

export function itemsOf(listed: Listed): readonly KubeObject[] {
  return listed.state === "listed" ? listed.items : [];
}

/** What could not be looked at is said: silence would pass for good news. */
export function unseen(check: string, lists: Readonly<Record<string, Listed>>): readonly Finding[] {
  const said = (what: string, why: string) => bad(check, "warning", `${what} ${why}`, "grant the capability `doctor` of deploy/");
  return Object.entries(lists).flatMap(([what, listed]) =>
    listed.state === "forbidden"
      ? [said(what, "may not be listed")]
      : listed.state === "listed" && !listed.isWhole
        ? [
            bad(
              check,
              "warning",
              `only the first ${PAGE * PAGES_MAX} ${what} were looked at`,
              `look at the others by kubectl get ${what} -A`,
            ),
          ]
        : [],
  );
}
