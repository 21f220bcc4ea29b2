/** What the stand-in for the Stackable operator makes of a TrinoCluster. There are no images here: what runs, `podOverrides` say. Pure. */
import type { ContainerSpec, PodSpec, PodTemplate } from "../controllers/views.ts";

type Overrides = Readonly<Record<string, Readonly<Record<string, string>>>>;

interface RoleGroupView {
  readonly replicas?: number;
  readonly configOverrides?: Overrides;
  readonly jvmArgumentOverrides?: { readonly add?: readonly string[] };
}

interface RoleView extends RoleGroupView {
  readonly roleGroups?: Readonly<Record<string, RoleGroupView>>;
  readonly podOverrides?: { readonly metadata?: { readonly labels?: Readonly<Record<string, string>> }; readonly spec?: Partial<PodSpec> };
}

export interface TrinoClusterView {
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly image?: { readonly productVersion?: string };
    readonly clusterOperation?: { readonly stopped?: boolean; readonly reconciliationPaused?: boolean };
    readonly coordinators?: RoleView;
    readonly workers?: RoleView;
  };
}

export interface RoleGroup {
  readonly role: "coordinator" | "worker";
  readonly name: string;
  /** Undefined: whoever scales it from outside says how many. */
  readonly replicas: number | undefined;
  readonly parts: readonly RoleGroupView[];
  readonly pod: RoleView["podOverrides"];
}

/** The only files that it writes; an override of any other is accepted and has no effect. */
const KNOWN_PROPERTIES = ["config.properties", "node.properties", "log.properties", "security.properties"];
const JVM_OPTIONS = ["-server", "-Xmx1g", "-XX:+UseG1GC", "-XX:+ExitOnOutOfMemoryError"];
const PORT = 8080;

export function roleGroupsOf({ spec }: TrinoClusterView): readonly RoleGroup[] {
  return (["coordinator", "worker"] as const).flatMap((role) => {
    const { roleGroups = {}, podOverrides, ...own } = spec[`${role}s`] ?? {};
    return Object.entries(roleGroups).map(([name, group]) => ({
      role,
      name,
      replicas: group.replicas,
      parts: [own, group],
      pod: podOverrides,
    }));
  });
}

export interface RenderedGroup {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly selector: Readonly<Record<string, string>>;
  readonly data: Readonly<Record<string, string>>;
  readonly template: PodTemplate;
}

export function renderGroup(cluster: TrinoClusterView, group: RoleGroup): RenderedGroup {
  const name = `${cluster.metadata.name}-${group.role}-${group.name}`;
  const labels = {
    "app.kubernetes.io/name": "trino",
    "app.kubernetes.io/instance": cluster.metadata.name,
    "app.kubernetes.io/component": group.role,
    "app.kubernetes.io/role-group": group.name,
    "app.kubernetes.io/managed-by": "trino.stackable.tech_trinocluster",
  };
  return { name, labels, selector: labels, data: filesOf(cluster, group), template: templateOf(cluster, group, name, labels) };
}

function filesOf({ metadata }: TrinoClusterView, { role, parts }: RoleGroup): Readonly<Record<string, string>> {
  const base: Record<string, Readonly<Record<string, string>>> = {
    "config.properties": { coordinator: String(role === "coordinator"), "http-server.http.port": String(PORT) },
    "node.properties": { "node.environment": metadata.name.replaceAll("-", "_") },
  };
  const files: Record<string, string> = {};
  for (const file of KNOWN_PROPERTIES) {
    const entries = Object.assign({}, base[file], ...parts.map(({ configOverrides }) => configOverrides?.[file]));
    if (Object.keys(entries).length > 0) files[file] = lines(Object.entries(entries).map(([key, value]) => `${key}=${value}`));
  }
  files["jvm.config"] = lines([...JVM_OPTIONS, ...parts.flatMap(({ jvmArgumentOverrides }) => jvmArgumentOverrides?.add ?? [])]);
  return files;
}

function lines(entries: readonly string[]): string {
  return entries.map((entry) => `${entry}\n`).join("");
}

/** Nothing in it says what is in the ConfigMap: that is the trap. */
function templateOf({ spec }: TrinoClusterView, { pod }: RoleGroup, name: string, labels: Readonly<Record<string, string>>): PodTemplate {
  const server: ContainerSpec = {
    name: "trino",
    image: `trino:${spec.image?.productVersion ?? "latest"}`,
    ports: [{ name: "http", containerPort: PORT }],
    volumeMounts: [{ name: "config", mountPath: "/stackable/config" }],
  };
  const { containers = [], volumes = [], ...rest } = pod?.spec ?? {};
  const over = containers.find((each) => each.name === server.name);
  const others = containers.filter((each) => each.name !== server.name);
  return {
    metadata: { labels: { ...labels, ...pod?.metadata?.labels } },
    spec: {
      ...{ terminationGracePeriodSeconds: 15, ...rest },
      containers: [{ ...server, ...over, volumeMounts: [...(server.volumeMounts ?? []), ...(over?.volumeMounts ?? [])] }, ...others],
      volumes: [{ name: "config", configMap: { name } }, ...volumes],
    },
  };
}
