/** Which files of which ConfigMap the pods of a workload see, as its template says: names beneath the configuration folder. Pure. */
import { z } from "zod";

const volumeSchema = z.object({
  name: z.string(),
  configMap: z.object({ name: z.string(), items: z.array(z.object({ key: z.string(), path: z.string() })).nullish() }).nullish(),
});
const mountSchema = z.object({ name: z.string(), mountPath: z.string(), subPath: z.string().nullish() });
const containerSchema = z.object({ volumeMounts: z.array(mountSchema).nullish() });
const workloadSchema = z.object({
  kind: z.string(),
  metadata: z.object({ name: z.string(), labels: z.record(z.string(), z.string()).nullish() }),
  spec: z.object({
    selector: z.object({ matchLabels: z.record(z.string(), z.string()).nullish() }).nullish(),
    template: z.object({
      spec: z.object({
        volumes: z.array(volumeSchema).nullish(),
        containers: z.array(containerSchema),
        initContainers: z.array(containerSchema).nullish(),
      }),
    }),
  }),
});
export type WorkloadView = z.output<typeof workloadSchema>;

/** Undefined: it is no workload. */
export function workloadOf(object: unknown): WorkloadView | undefined {
  return workloadSchema.safeParse(object).data;
}

const configMapSchema = z.object({
  kind: z.literal("ConfigMap"),
  metadata: z.object({ name: z.string() }),
  data: z.record(z.string(), z.string()).nullish(),
});

export interface MountedFile {
  readonly file: string;
  readonly configMap: string;
  readonly text: string;
}

/** `configMaps`: any objects; others than ConfigMaps are passed over. */
export function mountedFiles({ spec }: WorkloadView, configMaps: readonly unknown[]): readonly MountedFile[] {
  const { volumes, containers, initContainers } = spec.template.spec;
  const mounts = [...containers, ...(initContainers ?? [])].flatMap(({ volumeMounts }) => volumeMounts ?? []);
  const known = new Map(
    configMaps.flatMap((object) => configMapSchema.safeParse(object).data ?? []).map((map) => [map.metadata.name, map.data ?? {}]),
  );
  const files = new Map<string, MountedFile>();
  for (const { name, configMap } of volumes ?? []) {
    if (!configMap) continue;
    const data = known.get(configMap.name) ?? {};
    const items = configMap.items ?? Object.keys(data).map((key) => ({ key, path: key }));
    const ofVolume = mounts.filter((each) => each.name === name);
    // Where volumes are folders nothing needs to be mounted.
    for (const mount of ofVolume.length > 0 ? ofVolume : [{ name, mountPath: `/${name}` }])
      for (const { key, path } of items) {
        const file = fileAt(mount, path);
        const text = data[key];
        if (file !== undefined && text !== undefined) files.set(file, { file, configMap: configMap.name, text });
      }
  }
  return [...files.values()];
}

/** Catalogs lie in a folder of their own, or in keys that begin so where one ConfigMap has it all. Of a single file that is mounted by `subPath` the mount's last part is its name. */
function fileAt({ mountPath, subPath }: z.output<typeof mountSchema>, path: string): string | undefined {
  const folder = mountPath.replace(/\/+$/, "").split("/").at(-1) ?? "";
  if (subPath) return subPath === path ? folder : undefined;
  return folder === "catalog" ? `catalog/${path}` : path.replace(/^catalog-/, "catalog/");
}
