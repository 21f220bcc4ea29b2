import type { ResourceType } from "../../kube/api.ts";
import { kindKey } from "../kind-key.ts";
import { KINDS, type KindSpec } from "../kinds.ts";

/** The kinds of one cluster: those of the table, and those that users add by a CustomResourceDefinition. */
export class KindRegistry {
  readonly #byKey = new Map<string, KindSpec>();

  readonly #built: ReadonlySet<string>;

  constructor(kinds: readonly KindSpec[] = KINDS) {
    for (const each of kinds) this.#byKey.set(kindKey(each), each);
    this.#built = new Set(this.#byKey.keys());
  }

  find(type: Pick<ResourceType, "group" | "version" | "plural">): KindSpec | undefined {
    return this.#byKey.get(kindKey(type));
  }

  /** Replaces a kind of the same address. */
  add(added: KindSpec): void {
    this.#byKey.set(kindKey(added), added);
  }

  /** Not one of the table this registry began with. */
  isAdded(type: Pick<ResourceType, "group" | "version" | "plural">): boolean {
    return this.#byKey.has(kindKey(type)) && !this.#built.has(kindKey(type));
  }

  remove(type: Pick<ResourceType, "group" | "version" | "plural">): void {
    this.#byKey.delete(kindKey(type));
  }

  all(): readonly KindSpec[] {
    return [...this.#byKey.values()];
  }
}
