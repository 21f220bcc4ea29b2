/** Which kind is meant. */
import type { ResourceType } from "../kube/api.ts";

/** Where a kind is found: `apps/v1/deployments`. */
export function kindKey(type: Pick<ResourceType, "group" | "version" | "plural">): string {
  return `${type.group}/${type.version}/${type.plural}`;
}

/** The same kind, whatever the version. */
export function isType(kind: Pick<ResourceType, "group" | "plural">, type: Pick<ResourceType, "group" | "plural">): boolean {
  return kind.plural === type.plural && kind.group === type.group;
}
