/** What a TrinoCluster of the Stackable operator declares, and how its operator stands to it. Pure. */
import { z } from "zod";
import type { ResourceType } from "../../kube/api.ts";
import type { TrinoRole } from "../../model/effect.ts";
import { jvmOptionsOf, JVM_CONFIG, kindOfFile, nameOfOption, type Setting } from "./settings.ts";

export const TRINO_CLUSTERS: ResourceType = {
  ...{ group: "trino.stackable.tech", version: "v1alpha1", kind: "TrinoCluster", plural: "trinoclusters", namespaced: true },
};

const overridesSchema = z.object({
  configOverrides: z.record(z.string(), z.record(z.string(), z.string())).nullish(),
  jvmArgumentOverrides: z.object({ add: z.array(z.string()).nullish() }).nullish(),
});
const roleSchema = overridesSchema.extend({
  roleGroups: z.record(z.string(), overridesSchema.extend({ replicas: z.int().nullish() })).nullish(),
});
const clusterSchema = z.object({
  metadata: z.object({ name: z.string(), uid: z.string().nullish(), generation: z.int().nullish() }),
  spec: z.object({
    clusterOperation: z.object({ stopped: z.boolean().nullish(), reconciliationPaused: z.boolean().nullish() }).nullish(),
    coordinators: roleSchema.nullish(),
    workers: roleSchema.nullish(),
  }),
  status: z.object({ observedGeneration: z.int().nullish() }).nullish(),
});
export type TrinoClusterView = z.output<typeof clusterSchema>;
type RoleView = z.output<typeof roleSchema>;

/** Undefined: it is none, or malformed. */
export function trinoClusterOf(object: unknown): TrinoClusterView | undefined {
  return clusterSchema.safeParse(object).data;
}

const ROLES = [
  ["coordinator", "coordinators"],
  ["worker", "workers"],
] as const;

/** What a role group says counts more than what its role says. */
export function declaredBy({ spec }: TrinoClusterView): readonly Setting[] {
  return ROLES.flatMap(([role, field]) => settingsOfRole(role, spec[field] ?? {}));
}

function settingsOfRole(role: TrinoRole, { roleGroups, ...own }: RoleView): readonly Setting[] {
  const found = new Map<string, Setting>();
  for (const { configOverrides, jvmArgumentOverrides } of [own, ...Object.values(roleGroups ?? {})]) {
    for (const [file, entries] of Object.entries(configOverrides ?? {}))
      for (const [name, value] of Object.entries(entries))
        found.set(`${file} ${name}`, { kind: kindOfFile(file), role, file, name, value });
    for (const value of jvmOptionsOf((jvmArgumentOverrides?.add ?? []).join("\n"))) {
      const name = nameOfOption(value);
      found.set(`${JVM_CONFIG} ${name}`, { kind: "jvm", role, file: JVM_CONFIG, name, value });
    }
  }
  return [...found.values()];
}

/** Null: it is not paused. */
export function pauseOf({ spec }: TrinoClusterView): "paused" | "stopped" | null {
  if (spec.clusterOperation?.reconciliationPaused === true) return "paused";
  return spec.clusterOperation?.stopped === true ? "stopped" : null;
}
