/**
 * Whether a pod's mounts can be made (T4). What a ConfigMap or a Secret fills is read-only, so that nothing can be made inside it: a single file (`subPath`) there ends in
 * `not a directory` for ever. A folder whose place the outer volume has already, or whose volume is mounted whole, is fine.
 */
import type { ContainerView, PodSpecView } from "./facts.ts";
import { fine, found, type Judgement } from "./facts.ts";

/** Of a pod template. */
export function judgeMounts(spec: PodSpecView): Judgement {
  const readOnly = new Set(
    (spec.volumes ?? []).filter(({ configMap, secret, projected }) => Boolean(configMap ?? secret ?? projected)).map(({ name }) => name),
  );
  const troubles = [...spec.containers, ...(spec.initContainers ?? [])].flatMap((container) => troublesOf(container, readOnly));
  const [first] = troubles;
  return first === undefined
    ? fine("no file is mounted inside a read-only volume")
    : found("refused", troubles.join("; "), "mount a folder of its own there, or put the file into the outer ConfigMap");
}

function troublesOf({ name, volumeMounts }: ContainerView, readOnly: ReadonlySet<string>): readonly string[] {
  const mounts = (volumeMounts ?? []).map((mount) => ({ ...mount, at: mount.mountPath.replace(/\/+$/, "") }));
  return mounts.flatMap((inner) => {
    const twin = mounts.find((other) => other !== inner && other.at === inner.at && mounts.indexOf(other) < mounts.indexOf(inner));
    if (twin !== undefined) return [`container ${name}: ${twin.name} and ${inner.name} are both mounted at ${inner.at}`];
    const single = inner.subPath ?? inner.subPathExpr;
    if (single === undefined || single === null) return [];
    const outer = mounts.find((other) => other !== inner && readOnly.has(other.name) && inner.at.startsWith(`${other.at}/`));
    return outer === undefined
      ? []
      : [`container ${name}: the single file ${inner.at} lies inside ${outer.at}, which ${outer.name} fills read-only`];
  });
}
