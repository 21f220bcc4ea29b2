/** The chart by Helm itself: it is well formed, and makes the very objects of the plain manifests. */
import { execFile } from "node:child_process";
import { existsSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join, relative } from "node:path";
import { promisify } from "node:util";
import { beforeAll, expect, test } from "vitest";
import { parseAllDocuments } from "yaml";

const DEPLOY = join(import.meta.dirname, "..", "..", "deploy");
const CHART = join(DEPLOY, "helm");
const HELM = join(process.env["RELEVO_CACHE"] ?? join(homedir(), ".cache", "relevo"), "helm", "helm");

beforeAll(() => {
  if (!existsSync(HELM)) throw new Error(`${HELM} is not there: run tools/deploy/helm.sh`);
});

interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
}

async function run(file: string, ...args: readonly string[]): Promise<string> {
  return (await promisify(execFile)(file, [...args], { timeout: 60_000, maxBuffer: 2 ** 24 })).stdout;
}

/** By kind, namespace and name; the CRD and the Namespace are no part of a chart's templates. */
function byName(text: string): Readonly<Record<string, Manifest>> {
  const objects = parseAllDocuments(text)
    .map((document) => document.toJS() as Manifest | null)
    .filter((object) => object !== null)
    .filter(({ kind }) => kind !== "CustomResourceDefinition" && kind !== "Namespace");
  return Object.fromEntries(objects.map((object) => [`${object.kind} ${object.metadata.namespace ?? ""}/${object.metadata.name}`, object]));
}

function rendered(...args: readonly string[]): Promise<string> {
  return run(HELM, "template", "relevo", CHART, "--kube-version", "1.35.0", ...args);
}

test("helm lint has nothing to say against it", async () => {
  expect(await run(HELM, "lint", "--strict", CHART)).toContain("1 chart(s) linted, 0 chart(s) failed");
});

test("with the values that it comes with it makes what kubectl kustomize makes", async () => {
  const chart = byName(await rendered("-n", "relevo-system"));
  expect(chart).toEqual(byName(await run("kubectl", "kustomize", DEPLOY)));
  expect(Object.keys(chart).length).toBeGreaterThan(35);
});

test("switched on, connections and the scaler for KEDA are what the components make", async () => {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "relevo-overlay-")));
  try {
    const to = (name: string): string => JSON.stringify(relative(folder, join(DEPLOY, name)));
    writeFileSync(join(folder, "kustomization.yaml"), `resources: [${to("")}]\ncomponents: [${to("connections")}, ${to("keda")}]\n`);
    const chart = byName(await rendered("-n", "relevo-system", "--set", "connections.enabled=true", "--set", "kedaScaler.enabled=true"));
    expect(chart).toEqual(byName(await run("kubectl", "kustomize", folder)));
    expect(Object.keys(chart)).toEqual(
      expect.arrayContaining([
        "Service relevo-system/relevo-keda",
        "NetworkPolicy relevo-system/relevo-keda",
        "NetworkPolicy relevo-system/relevo-connections",
      ]),
    );
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("arguments and a cloud's identity can be added", async () => {
  const values = [
    "controller.extraArgs={--kube-qps=20,--kube-burst=40}",
    "controller.annotations.eks\\.amazonaws\\.com/role-arn=arn:aws:iam::1:role/relevo",
  ];
  const chart = byName(await rendered("-n", "relevo-system", ...values.flatMap((value) => ["--set", value])));
  expect(chart["ServiceAccount relevo-system/relevo-controller"]?.metadata).toMatchObject({
    annotations: { "eks.amazonaws.com/role-arn": "arn:aws:iam::1:role/relevo" },
  });
  expect(chart["Deployment relevo-system/relevo-controller"]).toMatchObject({
    spec: {
      template: { spec: { containers: [{ args: expect.arrayContaining(["--priority-classes", "--kube-qps=20", "--kube-burst=40"]) }] } },
    },
  });
});

test("replicas, image, namespaces and parts are values", async () => {
  const values = [
    "controller.replicas=1",
    "image.repository=registry.example/relevo",
    "image.tag=2",
    "poolNamespaces={a,b}",
    "agent.enabled=false",
  ];
  const text = await rendered("-n", "elsewhere", ...values.flatMap((value) => ["--set", value]));
  const chart = byName(text);
  expect(chart["Deployment elsewhere/relevo-controller"]).toMatchObject({
    spec: { replicas: 1, template: { spec: { containers: [{ image: "registry.example/relevo:2" }] } } },
  });
  expect(
    Object.keys(chart)
      .filter((key) => key.startsWith("ServiceAccount"))
      .toSorted(),
  ).toEqual([
    "ServiceAccount a/relevo-instances",
    "ServiceAccount b/relevo-instances",
    "ServiceAccount elsewhere/relevo-agent",
    "ServiceAccount elsewhere/relevo-controller",
    "ServiceAccount elsewhere/relevo-gateway",
  ]);
  expect(chart["RoleBinding a/relevo-controller-instances"]).toMatchObject({
    subjects: [{ name: "relevo-controller", namespace: "elsewhere" }],
  });
  expect(Object.keys(chart).filter((key) => key.startsWith("DaemonSet"))).toEqual([]);
  expect(text).not.toContain("relevo-system.svc");
});
