/** deploy/ by Debian's kubectl: it builds, and the embedded cluster takes the definition of the kind that it serves already. */
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterEach, beforeEach, expect, test } from "vitest";
import { parseAllDocuments } from "yaml";
import { startEmbeddedApi } from "../../src/embedded/http/server.ts";
import { bootstrapCluster } from "../../src/embedded/store/bootstrap.ts";
import { ObjectStore } from "../../src/embedded/store/object-store.ts";
import { systemClock, systemIds } from "../../src/kernel/system.ts";
import { GOOD_POOLS } from "./bad-pools.ts";

const DEPLOY = join(import.meta.dirname, "..", "..", "deploy");

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "relevo-deploy-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

async function kubectl(...args: readonly string[]): Promise<string> {
  return (await promisify(execFile)("kubectl", [...args], { timeout: 30_000 })).stdout;
}

interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
  readonly subjects?: readonly { readonly name: string; readonly namespace?: string }[];
}

interface Pod {
  readonly containers: readonly {
    readonly args: readonly string[];
    readonly ports: readonly { readonly name: string }[];
    readonly volumeMounts: readonly { readonly mountPath: string }[];
  }[];
}

async function built(path: string): Promise<readonly Manifest[]> {
  return parseAllDocuments(await kubectl("kustomize", path)).map((document) => document.toJS() as Manifest);
}

test("kubectl kustomize builds it, and each subject of a binding is an account that is made", async () => {
  const manifests = await built(DEPLOY);
  const accounts = manifests
    .filter(({ kind }) => kind === "ServiceAccount")
    .map(({ metadata: { namespace, name } }) => `${namespace}/${name}`);
  expect(accounts.toSorted()).toEqual([
    "default/relevo-instances",
    "relevo-system/relevo-agent",
    "relevo-system/relevo-controller",
    "relevo-system/relevo-gateway",
  ]);
  const bound = manifests.flatMap(({ subjects = [] }) => subjects.map(({ namespace, name }) => `${namespace}/${name}`));
  expect(bound.filter((subject) => !accounts.includes(subject))).toEqual([]);
});

test("another namespace with Pools is an overlay of a few lines", async () => {
  const base = join(folder, "base");
  await promisify(execFile)("cp", ["-r", join(DEPLOY, "pool-namespace"), base]);
  writeFileSync(join(folder, "kustomization.yaml"), "namespace: shop\nresources: [base]\n");
  const manifests = await built(folder);
  expect(new Set(manifests.map(({ metadata }) => metadata.namespace))).toEqual(new Set(["shop"]));
  const bound = manifests.flatMap(({ subjects = [] }) => subjects.map(({ namespace, name }) => `${namespace}/${name}`));
  expect(new Set(bound)).toEqual(new Set(["relevo-system/relevo-controller", "shop/relevo-instances"]));
});

test("connections and the scaler for KEDA are components: with both, the controller has all that each adds, beside what it had", async () => {
  for (const name of ["control-plane", "connections", "keda"])
    await promisify(execFile)("cp", ["-r", join(DEPLOY, name), join(folder, name)]);
  writeFileSync(join(folder, "kustomization.yaml"), "resources: [control-plane]\ncomponents: [connections, keda]\n");
  const [plain, added] = [await built(join(folder, "control-plane")), await built(folder)];
  const names = (manifests: readonly Manifest[]) => manifests.map(({ kind, metadata }) => `${kind} ${metadata.name}`);
  expect(
    names(added)
      .filter((name) => !names(plain).includes(name))
      .toSorted(),
  ).toEqual(["NetworkPolicy relevo-connections", "NetworkPolicy relevo-keda", "Service relevo-keda"]);
  const [before, after] = [controllerOf(plain), controllerOf(added)];
  expect(after.args.slice(before.args.length)).toEqual([
    "--connections=/etc/relevo/connections/connections.yaml",
    "--keda-scaler=0.0.0.0:6000",
    "--keda-tls-cert=/etc/relevo/keda/tls.crt",
    "--keda-tls-key=/etc/relevo/keda/tls.key",
    "--keda-client-ca=/etc/relevo/keda/ca.crt",
  ]);
  expect([before.ports, after.ports]).toEqual([["api"], ["api", "keda"]]);
  expect([before.mounts, after.mounts]).toEqual([
    ["/tmp", "/etc/relevo/store", "/etc/relevo/access"],
    ["/tmp", "/etc/relevo/store", "/etc/relevo/access", "/etc/relevo/connections", "/etc/relevo/keda"],
  ]);
});

function controllerOf(manifests: readonly Manifest[]) {
  const manifest = manifests.find(({ kind, metadata }) => kind === "Deployment" && metadata.name === "relevo-controller");
  const { containers } = (manifest as unknown as { readonly spec: { readonly template: { readonly spec: Pod } } }).spec.template.spec;
  const [container] = containers;
  return {
    args: container?.args ?? [],
    ports: container?.ports.map(({ name }) => name),
    mounts: container?.volumeMounts.map(({ mountPath }) => mountPath),
  };
}

test("the embedded cluster takes the definition of Pools, twice, and goes on to serve them", async () => {
  const store = new ObjectStore({ clock: systemClock, ids: systemIds });
  bootstrapCluster(store);
  const podLogs = {
    read() {
      throw new Error("no pods run here");
    },
  };
  const server = await startEmbeddedApi({ store, clock: systemClock, podLogs });
  const flags = ["--server", server.url, "--cache-dir", join(folder, "cache")];
  try {
    writeFileSync(join(folder, "pool.json"), JSON.stringify(GOOD_POOLS[0]?.pool));
    const before = await kubectl(...flags, "apply", "-f", join(folder, "pool.json"));
    const said = [
      await kubectl(...flags, "apply", "-k", join(DEPLOY, "crds")),
      await kubectl(...flags, "apply", "-k", join(DEPLOY, "crds")),
    ];
    expect([before, ...said, await kubectl(...flags, "get", "pools", "-o", "name")]).toEqual([
      "pool.relevo.dev/orders created\n",
      "customresourcedefinition.apiextensions.k8s.io/pools.relevo.dev created\n",
      "customresourcedefinition.apiextensions.k8s.io/pools.relevo.dev unchanged\n",
      "pool.relevo.dev/orders\n",
    ]);
  } finally {
    await server.close();
  }
});
