/** A controller over 10,000 nodes and 50,000 pods that the embedded API holds, in a process of its own; a part of the pods are a pool's that serves. */
import { fork } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startStandIn, type StandInRoutes } from "../../src/cli/demo/kubernetes/stand-in.ts";
import { ordersPool } from "../../src/cli/demo/kubernetes/documents.ts";
import { HOLDS_MUCH, SERVES_MUCH } from "../../src/cli/processes/node-flags.ts";
import { Supervisor } from "../../src/cli/processes/supervisor.ts";
import { systemClock, systemIds, systemRandom } from "../../src/kernel/system.ts";
import { httpKubeApi } from "../../src/kube/http-api.ts";
import { POOLS } from "../../src/kube/resources.ts";
import { say } from "../fleet/machine.ts";
import { measureSteady, type Steady } from "./steady.ts";

const INSTANCES = 100;
const SERVING_WITHIN_MS = 300_000;
const NOTHING: StandInRoutes = {
  attach: () => undefined,
  handle: (_, response) => void response.end(),
  upgrade: (_, socket) => void socket.destroy(),
};

export async function measureLarge(size: {
  readonly nodes: number;
  readonly pods: number;
}): Promise<Steady & typeof size & { instances: number }> {
  const dir = mkdtempSync(join(tmpdir(), "relevo-bench-large-"));
  const server = fork(join(import.meta.dirname, "large-api.ts"), [String(size.nodes), String(size.pods - INSTANCES)], {
    execArgv: [...HOLDS_MUCH],
  });
  const url = await new Promise<string>((resolve, reject) => {
    server.once("message", (message) => resolve(String(message)));
    server.once("exit", (code) => reject(new Error(`the embedded API ended: ${code}`)));
  });
  const api = httpKubeApi({ baseUrl: url });
  const standIn = await startStandIn({
    api,
    port: 0,
    routes: () => NOTHING,
    startMs: 0,
    clock: systemClock,
    random: systemRandom,
    ids: systemIds,
  });
  const supervisor = new Supervisor({
    clock: systemClock,
    logDir: join(dir, "logs"),
    onDeath: (name, how) => say("kubernetes", `${name} ended (${how})`),
  });
  try {
    const cluster = { name: "embedded", cluster: { server: url } };
    const kubeconfig = {
      apiVersion: "v1",
      kind: "Config",
      clusters: [cluster],
      contexts: [{ name: "embedded", context: { cluster: "embedded", user: "none" } }],
    };
    writeFileSync(
      join(dir, "kubeconfig"),
      JSON.stringify({ ...kubeconfig, users: [{ name: "none", user: {} }], "current-context": "embedded" }),
    );
    writeFileSync(join(dir, "gateway.key"), "bench-gateway-key-of-32-characters");
    const controller = await supervisor.start({
      name: "controller",
      nodeFlags: HOLDS_MUCH,
      args: (known) => [
        ...[
          "controller",
          "--log-level",
          "warn",
          "--kubeconfig",
          join(dir, "kubeconfig"),
          "--store",
          join(dir, "store.db"),
          "--kube-qps",
          "0",
        ],
        ...["--port", known.controller === undefined ? "0" : new URL(known.controller).port],
      ],
    });
    const controllerUrl = controller.controller ?? "";
    await supervisor.start({
      name: "gateway",
      nodeFlags: SERVES_MUCH,
      args: () => [
        "gateway",
        "--log-level",
        "warn",
        "--controller",
        controllerUrl,
        "--key-file",
        join(dir, "gateway.key"),
        "--port",
        "0",
        "--admin-port",
        "0",
      ],
    });
    const document = ordersPool({
      name: "orders",
      mode: "Act",
      nodePool: "bench",
      desired: INSTANCES,
      port: standIn.port,
      provisioners: ["none"],
    });
    await api.create(POOLS, document, { namespace: "default" });
    await untilServing(controllerUrl);
    const pods = Array.from({ length: size.pods - INSTANCES }, (_, number) => `others-${number}`);
    const pid = () => supervisor.pidOf("controller") ?? 0;
    const restart = async () => {
      const restarted = supervisor.whenRestarted("controller");
      process.kill(pid(), "SIGKILL");
      await restarted;
    };
    return { ...size, instances: INSTANCES, ...(await measureSteady({ api, pods, controllerUrl, pid, restart })) };
  } finally {
    await supervisor.stop();
    await standIn.stop();
    await api.close();
    server.kill("SIGKILL");
    rmSync(dir, { recursive: true, force: true });
  }
}

async function untilServing(controllerUrl: string): Promise<void> {
  const end = systemClock.monotonic() + SERVING_WITHIN_MS;
  while (systemClock.monotonic() < end) {
    const pool = (await (await fetch(`${controllerUrl}/v1/pools/default/orders`)).json()) as { readonly serving?: number };
    if ((pool.serving ?? 0) >= INSTANCES) return;
    await systemClock.sleep(500);
  }
  throw new Error(`not ${INSTANCES} instances serve in time`);
}
