/** What a client may ask for: the aggregated documents, and the older ones per group version. */
import type { KindSpec, Subresource } from "../kinds.ts";
import type { KindRegistry } from "../store/kind-registry.ts";

type Json = Readonly<Record<string, unknown>>;

const VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
const SUBRESOURCE_VERBS: Readonly<Record<Subresource, readonly string[]>> = {
  status: ["get", "patch", "update"],
  scale: ["get", "patch", "update"],
  finalize: ["update"],
  eviction: ["create"],
  binding: ["create"],
  log: ["get"],
};
/** What a subresource speaks, when it is not the object itself. */
const SUBRESOURCE_KIND: Readonly<
  Partial<Record<Subresource, { readonly group: string; readonly version: string; readonly kind: string }>>
> = {
  scale: { group: "autoscaling", version: "v1", kind: "Scale" },
  eviction: { group: "policy", version: "v1", kind: "Eviction" },
  binding: { group: "", version: "v1", kind: "Binding" },
};

export const AGGREGATED_TYPE = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/** Group to version to kinds, in the order of the table. */
function grouped(kinds: KindRegistry): ReadonlyMap<string, ReadonlyMap<string, readonly KindSpec[]>> {
  const groups = new Map<string, Map<string, KindSpec[]>>();
  for (const kind of kinds.all()) {
    const versions = groups.get(kind.group) ?? new Map<string, KindSpec[]>();
    groups.set(kind.group, versions);
    versions.set(kind.version, [...(versions.get(kind.version) ?? []), kind]);
  }
  return groups;
}

/** `/api` (the core group) or `/apis` (all others), aggregated. */
export function aggregatedDiscovery(kinds: KindRegistry, core: boolean): Json {
  const items = [...grouped(kinds)]
    .filter(([group]) => (group === "") === core)
    .map(([group, versions]) => ({
      metadata: { ...(group === "" ? {} : { name: group }), creationTimestamp: null },
      versions: [...versions].map(([version, list]) => ({ version, freshness: "Current", resources: list.map(aggregatedResource) })),
    }));
  return { kind: "APIGroupDiscoveryList", apiVersion: "apidiscovery.k8s.io/v2", metadata: {}, items };
}

function aggregatedResource(kind: KindSpec): Json {
  return {
    resource: kind.plural,
    responseKind: { group: kind.group, version: kind.version, kind: kind.kind },
    scope: kind.namespaced ? "Namespaced" : "Cluster",
    singularResource: kind.singular,
    verbs: VERBS,
    ...(kind.shortNames.length === 0 ? {} : { shortNames: kind.shortNames }),
    ...(kind.categories.length === 0 ? {} : { categories: kind.categories }),
    subresources: kind.subresources.map((subresource) => ({
      subresource,
      responseKind: SUBRESOURCE_KIND[subresource] ?? { group: kind.group, version: kind.version, kind: kind.kind },
      verbs: SUBRESOURCE_VERBS[subresource],
    })),
  };
}

export function coreVersions(): Json {
  return { kind: "APIVersions", versions: ["v1"], serverAddressByClientCIDRs: [] };
}

export function groupList(kinds: KindRegistry): Json {
  const groups = [...grouped(kinds)]
    .filter(([group]) => group !== "")
    .map(([group, versions]) => groupDocument(group, [...versions.keys()]));
  return { kind: "APIGroupList", apiVersion: "v1", groups };
}

function groupDocument(group: string, versions: readonly string[]): Json {
  const named = versions.map((version) => ({ groupVersion: `${group}/${version}`, version }));
  return { kind: "APIGroup", apiVersion: "v1", name: group, versions: named, preferredVersion: named[0] };
}

/** `/apis/GROUP`; undefined for a group that is not served. */
export function groupOf(kinds: KindRegistry, group: string): Json | undefined {
  const versions = grouped(kinds).get(group);
  return versions && group !== "" ? groupDocument(group, [...versions.keys()]) : undefined;
}

/** `/api/v1`, `/apis/GROUP/VERSION`; undefined when it is not served. */
export function resourceList(kinds: KindRegistry, group: string, version: string): Json | undefined {
  const list = grouped(kinds).get(group)?.get(version);
  if (!list) return undefined;
  return {
    kind: "APIResourceList",
    apiVersion: "v1",
    groupVersion: group === "" ? version : `${group}/${version}`,
    resources: list.flatMap(legacyResources),
  };
}

function legacyResources(kind: KindSpec): readonly Json[] {
  const { plural: name, singular, namespaced, shortNames, categories } = kind;
  return [
    {
      name,
      singularName: singular,
      namespaced,
      kind: kind.kind,
      verbs: VERBS,
      ...(shortNames.length === 0 ? {} : { shortNames }),
      ...(categories.length === 0 ? {} : { categories }),
    },
    ...kind.subresources.map((subresource) => ({
      name: `${name}/${subresource}`,
      singularName: "",
      namespaced,
      kind: kind.kind,
      ...SUBRESOURCE_KIND[subresource],
      verbs: SUBRESOURCE_VERBS[subresource],
    })),
  ];
}
