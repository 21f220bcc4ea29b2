/** The harness itself: what it starts ends with who started it, and pods get addresses of this machine. */
import { spawn } from "node:child_process";
import { readFileSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { NODES, PODS } from "../../src/kube/resources.ts";
import { startKubernetes } from "./cluster.ts";

const MAIN = join(import.meta.dirname, "../../tools/kubernetes/main.ts");

test("a control plane whose starter is killed leaves no process behind", async () => {
  const starter = spawn(process.execPath, [MAIN, "up", "none"], { stdio: ["ignore", "pipe", "inherit"] });
  const kubeconfig = await new Promise<string>((resolve) =>
    starter.stdout.on("data", (data: Buffer) => resolve(data.toString("utf8").trim().replace("KUBECONFIG=", ""))),
  );
  const config = JSON.parse(readFileSync(kubeconfig, "utf8")) as {
    readonly clusters: readonly { readonly cluster: { readonly server: string } }[];
  };
  const server = new URL(config.clusters[0]?.cluster.server ?? "");
  expect(await isListening(Number(server.port))).toBe(true);
  starter.kill("SIGKILL");
  await expect.poll(() => isListening(Number(server.port)), { timeout: 10_000 }).toBe(false);
  rmSync(dirname(kubeconfig), { recursive: true, force: true });
});

function isListening(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1", () => {
      socket.destroy();
      resolve(true);
    });
    socket.on("error", () => resolve(false));
  });
}

test("a pod of kwok's runs at an address of this machine, which its node's zone follows", async () => {
  const cluster = await startKubernetes();
  try {
    await cluster.api.create(NODES, {
      apiVersion: "v1",
      kind: "Node",
      metadata: { name: "n", annotations: { "kwok.x-k8s.io/node": "fake" }, labels: { "topology.kubernetes.io/zone": "z1" } },
      status: { allocatable: { cpu: "4", memory: "4Gi", pods: "10" }, capacity: { cpu: "4", memory: "4Gi", pods: "10" } },
    });
    const spec = { containers: [{ name: "main", image: "any" }], tolerations: [{ operator: "Exists" }] };
    await cluster.api.create(PODS, { apiVersion: "v1", kind: "Pod", metadata: { name: "p" }, spec }, { namespace: "default" });
    const pod = { type: PODS, namespace: "default", name: "p" };
    const address = async (): Promise<string | undefined> =>
      ((await cluster.api.get(pod))["status"] as { readonly podIP?: string } | undefined)?.podIP;
    await expect.poll(address, { timeout: 60_000 }).toMatch(new RegExp(`^${cluster.podCidr.split(".").slice(0, 2).join("\\.")}\\.`));
    expect((await cluster.api.get(pod)).metadata.labels).toMatchObject({ "topology.kubernetes.io/zone": "z1" });
  } finally {
    await cluster.stop();
  }
});
