/** What a container's spec comes to: command, environment, volumes, as Kubernetes expands them. Pure but for the look-up of config maps and secrets. */
import type { KubeObject } from "../../kube/api.ts";
import { RelevoError } from "../../kernel/errors.ts";
import { parseQuantity } from "../../kernel/units.ts";
import type { ContainerSpec, EnvVar, PodView } from "../controllers/views.ts";
import type { PodSandbox, VolumeFiles } from "./pod-runtime.ts";

/** Undefined when there is none. */
export type FindConfig = (kind: "ConfigMap" | "Secret", name: string) => Promise<KubeObject | undefined>;

export async function commandAndEnv(
  pod: PodView,
  container: ContainerSpec,
  sandbox: PodSandbox,
  base: Readonly<Record<string, string>>,
  find: FindConfig,
): Promise<{ readonly command: readonly string[]; readonly env: Record<string, string> }> {
  const env: Record<string, string> = { ...base, ...addressEnv(pod, container, sandbox) };
  for (const source of container.envFrom ?? []) Object.assign(env, await fromSource(source, find));
  for (const variable of container.env ?? []) {
    const value = variable.value === undefined ? await valueFrom(variable, pod, container, sandbox, find) : expand(variable.value, env);
    if (value !== undefined) env[variable.name] = value;
  }
  const command = [...(container.command ?? []), ...(container.args ?? [])].map((word) => expand(word, env));
  if ((container.command ?? []).length === 0) {
    throw new RelevoError("container_without_command", `Container ${container.name} names an image only; this cluster runs processes.`, {
      found: container.image ?? "",
      allowed: "spec.containers[].command",
      todo: "Give the container a command.",
    });
  }
  return { command, env };
}

/** What every container is told about its place. */
function addressEnv(pod: PodView, container: ContainerSpec, sandbox: PodSandbox): Record<string, string> {
  const port = container.ports?.[0]?.containerPort;
  return {
    HOSTNAME: pod.spec.hostname ?? pod.metadata.name,
    POD_IP: sandbox.podIP,
    HOST: sandbox.podIP,
    POD_DIR: sandbox.dir,
    ...(port === undefined ? {} : { PORT: String(sandbox.portMap.get(port) ?? port) }),
  };
}

async function fromSource(source: NonNullable<ContainerSpec["envFrom"]>[number], find: FindConfig): Promise<Record<string, string>> {
  const reference = source.configMapRef ?? source.secretRef;
  if (reference === undefined) return {};
  const kind = source.configMapRef === undefined ? "Secret" : "ConfigMap";
  const found = await find(kind, reference.name);
  if (found === undefined && reference.optional !== true) throw missing(kind, reference.name);
  return Object.fromEntries(Object.entries(textsOf(found)).map(([key, value]) => [`${source.prefix ?? ""}${key}`, value]));
}

async function valueFrom(
  variable: EnvVar,
  pod: PodView,
  container: ContainerSpec,
  sandbox: PodSandbox,
  find: FindConfig,
): Promise<string | undefined> {
  const { fieldRef, configMapKeyRef, secretKeyRef, resourceFieldRef } = variable.valueFrom ?? {};
  if (fieldRef !== undefined) return fieldOf(pod, fieldRef.fieldPath, sandbox);
  if (resourceFieldRef !== undefined) {
    const [part = "", name = ""] = resourceFieldRef.resource.split(".");
    const quantity = part === "requests" ? container.resources?.requests?.[name] : container.resources?.limits?.[name];
    return String(Math.ceil(parseQuantity(quantity ?? "0") ?? 0));
  }
  const reference = configMapKeyRef ?? secretKeyRef;
  if (reference === undefined) return "";
  const kind = configMapKeyRef === undefined ? "Secret" : "ConfigMap";
  const value = textsOf(await find(kind, reference.name))[reference.key];
  if (value === undefined && reference.optional !== true) throw missing(kind, `${reference.name}, key ${reference.key}`);
  return value;
}

function fieldOf(pod: PodView, path: string, sandbox: PodSandbox): string {
  const subscript = /^metadata\.(labels|annotations)\['(.+)'\]$/.exec(path);
  if (subscript !== null) return pod.metadata[subscript[1] as "labels" | "annotations"]?.[subscript[2] ?? ""] ?? "";
  switch (path) {
    case "metadata.name":
      return pod.metadata.name;
    case "metadata.namespace":
      return pod.metadata.namespace ?? "";
    case "metadata.uid":
      return pod.metadata.uid;
    case "spec.nodeName":
      return pod.spec.nodeName ?? "";
    case "spec.serviceAccountName":
      return pod.spec.serviceAccountName ?? "default";
    case "status.podIP":
    case "status.podIPs":
      return sandbox.podIP;
    case "status.hostIP":
      return sandbox.hostIP;
    default:
      throw new RelevoError("field_path_unknown", `The field ${path} cannot be given to a container.`, {
        found: path,
        allowed:
          "metadata.name, .namespace, .uid, .labels['…'], .annotations['…'], spec.nodeName, spec.serviceAccountName, status.podIP, status.hostIP",
      });
  }
}

/** `$(NAME)` becomes the variable's value, `$$(NAME)` the literal `$(NAME)`; an unknown name stays as it is. */
export function expand(text: string, env: Readonly<Record<string, string>>): string {
  return text.replaceAll(/\$\$\(([^)]*)\)|\$\(([^)]*)\)/g, (whole, escaped: string | undefined, name: string | undefined) =>
    escaped === undefined ? (env[name ?? ""] ?? whole) : `$(${escaped})`,
  );
}

export async function volumeFiles(pod: PodView, find: FindConfig): Promise<VolumeFiles> {
  const volumes = new Map<string, ReadonlyMap<string, string | Uint8Array>>();
  for (const volume of pod.spec.volumes ?? []) {
    const name = volume.configMap?.name ?? volume.secret?.secretName;
    if (name === undefined) {
      volumes.set(volume.name, new Map());
      continue;
    }
    const kind = volume.configMap === undefined ? "Secret" : "ConfigMap";
    const found = await find(kind, name);
    if (found === undefined && (volume.configMap ?? volume.secret)?.optional !== true) throw missing(kind, name);
    const files = filesOf(found);
    const items = volume.configMap?.items;
    volumes.set(volume.name, items === undefined ? files : new Map(items.map(({ key, path }) => [path, files.get(key) ?? ""])));
  }
  return volumes;
}

function filesOf(object: KubeObject | undefined): ReadonlyMap<string, string | Uint8Array> {
  const data = (object?.["data"] ?? {}) as Readonly<Record<string, string>>;
  const binary = (object?.["binaryData"] ?? {}) as Readonly<Record<string, string>>;
  const isSecret = object?.kind === "Secret";
  return new Map<string, string | Uint8Array>([
    ...Object.entries(data).map(([key, value]) => [key, isSecret ? Buffer.from(value, "base64") : value] as const),
    ...Object.entries(binary).map(([key, value]) => [key, Buffer.from(value, "base64")] as const),
  ]);
}

function textsOf(object: KubeObject | undefined): Readonly<Record<string, string>> {
  return Object.fromEntries(
    [...filesOf(object)].map(([key, value]) => [key, typeof value === "string" ? value : Buffer.from(value).toString("utf8")]),
  );
}

function missing(kind: string, what: string): RelevoError {
  return new RelevoError("config_missing", `${kind} ${what} not found.`, { class: "retryable", found: what });
}
