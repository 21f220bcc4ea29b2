/** Who we are to a real API server, and what it says to writes that come too late. */
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { systemClock, systemRandom } from "../../src/kernel/system.ts";
import {
  isAlreadyExists,
  isConflict,
  isNotFound,
  type KubeApi,
  KubeApiError,
  type KubeObject,
  type ObjectRef,
} from "../../src/kube/api.ts";
import { loadKubeApi } from "../../src/kube/config.ts";
import { createInformer } from "../../src/kube/informer.ts";
import { CONFIG_MAPS, NODES, PODS } from "../../src/kube/resources.ts";
import { type RealCluster, startKubernetes } from "./cluster.ts";

const run = promisify(execFile);
let dir: string;
let cluster: RealCluster;
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), "relevo-identity-"));
  await run("openssl", [
    "req",
    "-x509",
    "-newkey",
    "ec",
    "-pkeyopt",
    "ec_paramgen_curve:P-256",
    "-nodes",
    "-days",
    "1",
    "-subj",
    "/CN=ca",
    "-keyout",
    join(dir, "ca.key"),
    "-out",
    join(dir, "ca.crt"),
  ]);
  cluster = await startKubernetes({ parts: [], flags: { apiserver: ["--client-ca-file", join(dir, "ca.crt")] } });
});
afterAll(async () => {
  await cluster.stop();
  await rm(dir, { recursive: true, force: true });
});

/** A kubeconfig for this server with another user. */
async function configWith(user: object): Promise<string> {
  const config = JSON.parse(await readFile(cluster.kubeconfig, "utf8")) as Record<string, unknown>;
  const path = join(dir, `config-${Object.keys(user).join("-")}`);
  const contexts = [{ name: "me", context: { cluster: "kubernetes", user: "me" } }];
  await writeFile(path, JSON.stringify({ ...config, users: [{ name: "me", user }], contexts, "current-context": "me" }));
  return path;
}

async function withApi<T>(user: object, use: (api: KubeApi) => Promise<T>): Promise<T> {
  const api = await loadKubeApi({ kubeconfig: await configWith(user) });
  return use(api).finally(() => api.close());
}

const account = async (): Promise<string> => {
  await cluster.kubectl("create", "serviceaccount", "worker", "-n", "default");
  return (await cluster.kubectl("create", "token", "worker", "-n", "default")).trim();
};

test("a service account whose token was renewed goes on: the file is read again when the server refuses what is kept", async () => {
  await cluster.kubectl("create", "clusterrole", "reader", "--verb=list", "--resource=configmaps");
  await cluster.kubectl("create", "clusterrolebinding", "worker", "--clusterrole=reader", "--serviceaccount=default:worker");
  const tokenFile = join(dir, "token");
  await writeFile(tokenFile, await account());
  await withApi({ tokenFile }, async (api) => {
    const list = (): Promise<unknown> => api.list(CONFIG_MAPS, { namespace: "default" }).then(({ items }) => items);
    await expect.poll(list, { timeout: 10_000 }).toEqual([]); // the role is known a moment later
    await cluster.kubectl("delete", "serviceaccount", "worker", "-n", "default");
    await writeFile(tokenFile, await account()); // another uid: the old token is refused from now on
    await expect.poll(list, { timeout: 30_000 }).toEqual([]);
    expect(await api.list(NODES).catch((error: unknown) => (error instanceof KubeApiError ? error.status.reason : error))).toBe(
      "Forbidden",
    );
  });
});

test("an exec plugin's token is used, and asked for again when the server refuses it", async () => {
  const answer = (token: string): Promise<void> =>
    writeFile(
      join(dir, "answer"),
      JSON.stringify({ apiVersion: "client.authentication.k8s.io/v1", kind: "ExecCredential", status: { token } }),
    );
  await answer("wrong-token");
  const exec = { apiVersion: "client.authentication.k8s.io/v1", command: "cat", args: [join(dir, "answer")], interactiveMode: "Never" };
  await withApi({ exec }, async (api) => {
    const list = (): Promise<unknown> => api.list(NODES).then(({ items }) => items.length);
    expect(await list().catch((error: unknown) => (error as KubeApiError).status.code)).toBe(401);
    await answer("admin-token");
    await expect.poll(list, { timeout: 30_000, interval: 500 }).toBe(0);
  });
});

test("a client certificate is who we are", async () => {
  const [key, request, cert] = ["client.key", "client.csr", "client.crt"].map((name) => join(dir, name));
  const subject = "/O=system:masters/CN=certified";
  await run("openssl", [
    "req",
    "-new",
    "-newkey",
    "ec",
    "-pkeyopt",
    "ec_paramgen_curve:P-256",
    "-nodes",
    "-subj",
    subject,
    "-keyout",
    key ?? "",
    "-out",
    request ?? "",
  ]);
  await run("openssl", [
    "x509",
    "-req",
    "-in",
    request ?? "",
    "-CA",
    join(dir, "ca.crt"),
    "-CAkey",
    join(dir, "ca.key"),
    "-CAcreateserial",
    "-days",
    "1",
    "-out",
    cert ?? "",
  ]);
  await withApi({ "client-certificate": cert, "client-key": key }, async (api) => {
    expect((await api.list(NODES)).items).toEqual([]);
  });
  await withApi({}, async (api) => {
    expect(await api.list(NODES).catch((error: unknown) => (error as KubeApiError).status.code)).toBe(403); // anonymous
  });
});

test("each write that comes too late is a conflict: of an older state, and of another object of the same name", async () => {
  const { api } = cluster;
  const node = await api.create(NODES, { apiVersion: "v1", kind: "Node", metadata: { name: "n" }, spec: { providerID: "any://one" } });
  const podDraft = { apiVersion: "v1", kind: "Pod", metadata: { name: "p" }, spec: { containers: [{ name: "main", image: "any" }] } };
  const pod = await api.create(PODS, podDraft, { namespace: "default" });
  const refs: readonly (readonly [ObjectRef, KubeObject])[] = [
    [{ type: NODES, name: "n" }, node],
    [{ type: PODS, namespace: "default", name: "p" }, pod],
  ];
  for (const [ref, first] of refs) {
    const { uid, resourceVersion } = first.metadata;
    await api.patch(ref, { metadata: { uid, resourceVersion, labels: { a: "b" } } });
    const late: readonly Promise<unknown>[] = [
      api.patch(ref, { metadata: { resourceVersion, labels: { a: "c" } } }),
      api.patch(ref, { metadata: { uid: "00000000-0000-0000-0000-000000000000", labels: { a: "c" } } }),
      api.patchStatus(ref, { metadata: { resourceVersion }, status: { phase: "Running" } }),
      api.replace(ref, first),
      api.delete(ref, { preconditions: { uid, resourceVersion } }),
      api.delete(ref, { preconditions: { uid: "00000000-0000-0000-0000-000000000000" } }),
    ];
    expect(await Promise.all(late.map((write) => write.then(() => "taken", isConflict)))).toEqual(late.map(() => true));
  }
  expect(await api.create(NODES, { apiVersion: "v1", kind: "Node", metadata: { name: "n" } }).catch(isAlreadyExists)).toBe(true);
  expect(
    await api.evict({ type: PODS, namespace: "default", name: "p" }, { preconditions: { uid: node.metadata.uid } }).catch(isConflict),
  ).toBe(true);
  expect(await api.patch({ type: NODES, name: "nobody" }, { metadata: { labels: { a: "b" } } }).catch(isNotFound)).toBe(true);
});

test("who may list and not watch follows by lists, and the missing verb is named", async () => {
  await cluster.kubectl("create", "clusterrole", "lister", "--verb=list", "--resource=configmaps");
  await cluster.kubectl("create", "clusterrolebinding", "lister", "--clusterrole=lister", "--user=relevo");
  const api = await cluster.apiOf("relevo");
  const log: string[] = [];
  const maps = createInformer({
    api,
    type: CONFIG_MAPS,
    namespace: "default",
    clock: systemClock,
    random: systemRandom,
    log: (_level, _message, fields) => void log.push(String(fields["code"])),
    parse: ({ metadata }) => ({ ok: true, value: metadata.name }),
    reflector: { backoffFirstMs: 200, backoffMaxMs: 1_000 },
  });
  maps.start();
  await maps.whenSynced();
  await cluster.api.create(CONFIG_MAPS, { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "late" } }, { namespace: "default" });
  await expect.poll(() => maps.list(), { timeout: 20_000 }).toEqual(["late"]);
  expect(log).toContain("kube_forbidden");
  const refusal = await api.patch({ type: CONFIG_MAPS, namespace: "default", name: "late" }, {}).catch((error: unknown) => error);
  expect((refusal as KubeApiError).message).toContain('cannot patch resource "configmaps"');
  maps.stop();
});
