import { expect, test } from "vitest";
import type { KubeObject } from "../../kube/api.ts";
import type { ContainerSpec, PodView } from "../controllers/views.ts";
import { commandAndEnv, expand, volumeFiles } from "./container-config.ts";
import type { PodSandbox } from "./pod-runtime.ts";

const SANDBOX: PodSandbox = { podIP: "127.64.0.2", hostIP: "127.64.0.1", dir: "/pods/u", portMap: new Map() };
const POD: PodView = {
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name: "web-1", namespace: "shop", uid: "u", resourceVersion: "1", creationTimestamp: "", labels: { app: "web" } },
  spec: { nodeName: "node-a1", containers: [] },
};
const object = (kind: string, fields: Readonly<Record<string, unknown>>): KubeObject => ({
  apiVersion: "v1",
  kind,
  metadata: POD.metadata,
  ...fields,
});
const CONFIGS: Readonly<Record<string, KubeObject>> = {
  "ConfigMap settings": object("ConfigMap", { data: { level: "debug", "app.conf": "a = 1\n" } }),
  "Secret keys": object("Secret", { data: { token: Buffer.from("s3cret").toString("base64") } }),
};
const find = async (kind: string, name: string): Promise<KubeObject | undefined> => CONFIGS[`${kind} ${name}`];
const resolve = (container: Partial<ContainerSpec>, sandbox = SANDBOX) =>
  commandAndEnv(POD, { name: "main", command: ["run"], ...container }, sandbox, { BASE: "1" }, find);

test("a container learns its place from the environment", async () => {
  const { env } = await resolve({ ports: [{ containerPort: 8080 }] });

  expect(env).toEqual({ BASE: "1", HOSTNAME: "web-1", POD_IP: "127.64.0.2", HOST: "127.64.0.2", POD_DIR: "/pods/u", PORT: "8080" });
});

test("where pods share an address the port is the real one", async () => {
  const { env } = await resolve(
    { ports: [{ containerPort: 8080 }] },
    { ...SANDBOX, podIP: "127.0.0.1", portMap: new Map([[8080, 45_123]]) },
  );

  expect(env).toMatchObject({ HOST: "127.0.0.1", PORT: "45123" });
});

test("values come from fields, config maps and secrets, and later ones may refer to earlier ones", async () => {
  const field = (name: string, fieldPath: string) => ({ name, valueFrom: { fieldRef: { fieldPath } } });
  const { env, command } = await resolve({
    envFrom: [{ prefix: "CFG_", configMapRef: { name: "settings" } }],
    env: [
      field("NAME", "metadata.name"),
      field("NAMESPACE", "metadata.namespace"),
      field("UID_", "metadata.uid"),
      field("NODE", "spec.nodeName"),
      field("IP", "status.podIP"),
      field("APP", "metadata.labels['app']"),
      { name: "LEVEL", valueFrom: { configMapKeyRef: { name: "settings", key: "level" } } },
      { name: "TOKEN", valueFrom: { secretKeyRef: { name: "keys", key: "token" } } },
      { name: "ABSENT", valueFrom: { configMapKeyRef: { name: "none", key: "x", optional: true } } },
      { name: "URL", value: "http://$(IP):80/$(NAME)?$$(NAME)$(UNKNOWN)" },
    ],
    command: ["run", "$(NODE)"],
    args: ["--level=$(LEVEL)"],
  });

  expect(env).toMatchObject({
    NAME: "web-1",
    NAMESPACE: "shop",
    UID_: "u",
    NODE: "node-a1",
    IP: "127.64.0.2",
    APP: "web",
    LEVEL: "debug",
    TOKEN: "s3cret",
    CFG_level: "debug",
  });
  expect(env).not.toHaveProperty("ABSENT");
  expect(env["URL"]).toBe("http://127.64.0.2:80/web-1?$(NAME)$(UNKNOWN)");
  expect(command).toEqual(["run", "node-a1", "--level=debug"]);
});

test("what is missing, unknown or not there is said", async () => {
  await expect(resolve({ env: [{ name: "X", valueFrom: { configMapKeyRef: { name: "none", key: "x" } } }] })).rejects.toMatchObject({
    code: "config_missing",
    class: "retryable",
  });
  await expect(resolve({ env: [{ name: "X", valueFrom: { fieldRef: { fieldPath: "spec.foo" } } }] })).rejects.toMatchObject({
    code: "field_path_unknown",
  });
  await expect(resolve({ command: [] })).rejects.toMatchObject({ code: "container_without_command" });
});

test("volumes become files, picked and renamed by their items", async () => {
  const volumes = [
    { name: "scratch", emptyDir: {} },
    { name: "all", configMap: { name: "settings" } },
    { name: "one", configMap: { name: "settings", items: [{ key: "app.conf", path: "etc/app.conf" }] } },
    { name: "keys", secret: { secretName: "keys" } },
  ];
  const files = await volumeFiles({ ...POD, spec: { ...POD.spec, volumes } }, find);

  expect(
    Object.fromEntries(
      [...files].map(([name, content]) => [name, Object.fromEntries([...content].map(([path, text]) => [path, String(text)]))]),
    ),
  ).toEqual({
    scratch: {},
    all: { level: "debug", "app.conf": "a = 1\n" },
    one: { "etc/app.conf": "a = 1\n" },
    keys: { token: "s3cret" },
  });
});

test("expansion leaves alone what it does not know", () => {
  expect(expand("$(A) $$(A) $(B) $A ${A}", { A: "1" })).toBe("1 $(A) $(B) $A ${A}");
});
