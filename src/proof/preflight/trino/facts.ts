/** What the preflight of a Trino pool is judged by: the pods that one cluster is to have, with their files. Read from the document alone. */
import { z } from "zod";
import type { TrinoRole } from "../../../model/effect.ts";
import type { PoolDocument } from "../../../model/pool.ts";
import type { Finding } from "../../../model/finding.ts";
import { mountedFiles, workloadOf } from "../../effect/mounted-files.ts";
import { jvmOptionsOf, JVM_CONFIG, propertiesOf } from "../../effect/settings.ts";

export type Judgement = Pick<Finding, "state" | "message" | "todo">;
export const fine = (message: string): Judgement => ({ state: "ok", message, todo: null });
export const found = (state: "warning" | "held" | "refused", message: string, todo: string): Judgement => ({ state, message, todo });

const resourcesSchema = z
  .object({
    requests: z.record(z.string(), z.union([z.string(), z.number()])).nullish(),
    limits: z.record(z.string(), z.union([z.string(), z.number()])).nullish(),
  })
  .nullish();
const containerSchema = z.object({
  name: z.string(),
  resources: resourcesSchema,
  volumeMounts: z
    .array(z.object({ name: z.string(), mountPath: z.string(), subPath: z.string().nullish(), subPathExpr: z.string().nullish() }))
    .nullish(),
});
const volumeSchema = z.object({
  name: z.string(),
  configMap: z.unknown().optional(),
  secret: z.unknown().optional(),
  projected: z.unknown().optional(),
});
export const podSpecSchema = z.object({
  containers: z.array(containerSchema),
  initContainers: z.array(containerSchema).nullish(),
  volumes: z.array(volumeSchema).nullish(),
  terminationGracePeriodSeconds: z.number().nullish(),
});
export type PodSpecView = z.output<typeof podSpecSchema>;
export type ContainerView = z.output<typeof containerSchema>;

const shapeSchema = z.object({
  kind: z.enum(["Deployment", "StatefulSet"]),
  metadata: z.object({ name: z.string() }),
  spec: z.object({ replicas: z.int().min(0).nullish(), template: z.object({ spec: podSpecSchema }) }),
});

export interface PodPlan {
  readonly workload: string;
  readonly role: TrinoRole;
  readonly replicas: number;
  readonly spec: PodSpecView;
  /** By file beneath the configuration folder and name; of `jvm.config` the options as they stand. */
  readonly files: ReadonlyMap<string, ReadonlyMap<string, string>>;
  readonly jvm: readonly string[];
}

/** The first workload is the lead, so the coordinator. What is malformed is left out: the API server refuses it. */
export function podPlansOf({ spec }: PoolDocument): readonly PodPlan[] {
  const { objects } = spec.blueprint;
  return objects
    .flatMap((object) => {
      const shape = shapeSchema.safeParse(object).data;
      return shape === undefined ? [] : [{ shape, object }];
    })
    .map(({ shape, object }, index) => {
      const view = workloadOf(object);
      const mounted = view === undefined ? [] : mountedFiles(view, objects);
      const files = mounted
        .filter(({ file }) => file.endsWith(".properties"))
        .map(({ file, text }) => [file, new Map(propertiesOf(text))] as const);
      return {
        workload: `${shape.kind} ${shape.metadata.name}`,
        role: index === 0 ? "coordinator" : "worker",
        replicas: shape.spec.replicas ?? 1,
        spec: shape.spec.template.spec,
        files: new Map(files),
        jvm: jvmOptionsOf(mounted.find(({ file }) => file === JVM_CONFIG)?.text ?? ""),
      };
    });
}

export function settingOf({ files }: PodPlan, file: string, name: string): string | undefined {
  return files.get(file)?.get(name);
}

/** Sizes of Trino's files and of the JVM: `1g`, `600MB`, `5GB`; bytes. */
export function parseSize(text: string): number | undefined {
  const [, amount, unit = ""] = /^\s*(\d+(?:\.\d+)?)\s*([kKmMgGtT]?)[bB]?\s*$/.exec(text) ?? [];
  if (amount === undefined) return undefined;
  return Number(amount) * 1024 ** (unit === "" ? 0 : "kmgt".indexOf(unit.toLowerCase()) + 1);
}

export function inMiB(bytes: number): string {
  return `${Math.round(bytes / 2 ** 20)} MiB`;
}
