/** Roles from the table of permissions: one role for each capability and place, so that each can be left out alone. */
import {
  CAPABILITIES,
  type Capability,
  type GrantPlace,
  type Identity,
  INSTANCES_ACCOUNT,
  type Permission,
  PERMISSIONS,
} from "../../src/kube/permissions.ts";
import { accountOf, labels } from "./names.ts";
import type { Settings } from "./settings.ts";
import type { Json } from "./structural.ts";

const RBAC = "rbac.authorization.k8s.io";

/** Bound to the accounts of Relevo's own namespace; all but what is granted in the namespaces of Pools. */
export function controlPlaneRoles(settings: Settings): readonly Json[] {
  return rolesFor(["cluster", "own_namespace"], settings);
}

/** For one namespace that holds Pools: the account that makes their objects, and what is granted there. `namespace` undefined leaves it to kustomize. */
export function poolNamespaceObjects(settings: Settings, namespace?: string): readonly Json[] {
  const account = {
    apiVersion: "v1",
    kind: "ServiceAccount",
    metadata: meta(INSTANCES_ACCOUNT, namespace),
    automountServiceAccountToken: false,
  };
  return [account, ...rolesFor(["pool_namespace"], settings, namespace)];
}

function rolesFor(places: readonly GrantPlace[], settings: Settings, poolNamespace?: string): readonly Json[] {
  return CAPABILITIES.flatMap((capability) =>
    places.flatMap((place) =>
      groupedByIdentity(PERMISSIONS[capability].filter((each) => each.place === place)).flatMap(([identity, permissions]) =>
        roleAndBinding(capability, identity, permissions, place, settings, poolNamespace),
      ),
    ),
  );
}

function groupedByIdentity(permissions: readonly Permission[]): readonly (readonly [Identity, readonly Permission[]])[] {
  return [...Map.groupBy(permissions, ({ as }) => as)];
}

function roleAndBinding(
  capability: Capability,
  identity: Identity,
  permissions: readonly Permission[],
  place: GrantPlace,
  settings: Settings,
  poolNamespace: string | undefined,
): readonly Json[] {
  const prefix = place === "cluster" ? "Cluster" : "";
  const name = `${identity === "instances" ? INSTANCES_ACCOUNT : accountOf(identity)}-${capability.replaceAll("_", "-")}`.replace(
    `${INSTANCES_ACCOUNT}-instances`,
    INSTANCES_ACCOUNT,
  );
  const namespace = place === "own_namespace" ? settings.namespace : place === "pool_namespace" ? poolNamespace : undefined;
  const subject =
    identity === "instances"
      ? { kind: "ServiceAccount", name: INSTANCES_ACCOUNT, ...(namespace === undefined ? {} : { namespace }) }
      : { kind: "ServiceAccount", name: accountOf(identity), namespace: settings.namespace };
  return [
    { apiVersion: `${RBAC}/v1`, kind: `${prefix}Role`, metadata: meta(name, namespace), rules: permissions.map(ruleOf) },
    {
      apiVersion: `${RBAC}/v1`,
      kind: `${prefix}RoleBinding`,
      metadata: meta(name, namespace),
      roleRef: { apiGroup: RBAC, kind: `${prefix}Role`, name },
      subjects: [subject],
    },
  ];
}

function ruleOf({ group, resource, subresource, verbs, names }: Permission): Json {
  return {
    apiGroups: [group],
    resources: [subresource === undefined ? resource : `${resource}/${subresource}`],
    verbs: [...verbs],
    ...(names === undefined ? {} : { resourceNames: [...names] }),
  };
}

function meta(name: string, namespace: string | undefined): Json {
  return { name, ...(namespace === undefined ? {} : { namespace }), labels: labels() };
}
