/**
 * Begins a node of a Trino cluster in a pod: finds its coordinator, writes what differs from node to node, and runs the launcher with the folder of the ConfigMap.
 *
 * The embedded cluster has no addresses of Services, so a worker asks the Kubernetes API for the pod of its own instance's coordinator, and waits for it. In the
 * config files `${ENV:COORDINATOR}` and `${ENV:POD_IP}` are resolved by Trino itself.
 */
import { spawn } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, readdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parse } from "yaml";

const LOOK_EVERY_MS = 500;
const NAMESPACE = "default";

const { POD_DIR, POD_IP, HOSTNAME, TRINO_HOME, TRINO_JAVA, TRINO_INSTANCE, TRINO_COORDINATOR = "self", KUBECONFIG } = process.env;
if (!POD_DIR || !POD_IP || !HOSTNAME || !TRINO_HOME || !TRINO_JAVA || !TRINO_INSTANCE)
  throw new Error("POD_DIR, POD_IP, HOSTNAME, TRINO_HOME, TRINO_JAVA or TRINO_INSTANCE is missing");

const coordinator = TRINO_COORDINATOR === "self" ? POD_IP : await addressOf(`app=trino,component=coordinator,instance=${TRINO_INSTANCE}`);
const data = join(POD_DIR, "data");
const etc = join(data, "etc");
writeEtc();
// The file outlives a process that was killed, and its number is soon another process's: the launcher would then refuse for ever.
if (process.env.TRINO_PID_CLEANUP !== "off") rmSync(join(data, "var/run/launcher.pid"), { force: true });

const server = spawn(join(TRINO_HOME, "bin/launcher"), ["--etc-dir", etc, "--data-dir", data, "--jvm-dir", TRINO_JAVA, "run"], {
  cwd: data,
  env: { ...process.env, COORDINATOR: coordinator },
  stdio: "inherit",
});
for (const signal of ["SIGTERM", "SIGINT"]) process.on(signal, () => server.kill(signal));
server.once("error", (error) => {
  console.error(`the launcher did not begin: ${error.message}`);
  process.exit(1);
});
server.once("exit", (code, signal) => process.exit(code ?? (signal === "SIGKILL" ? 137 : 143)));

function writeEtc() {
  rmSync(etc, { recursive: true, force: true });
  mkdirSync(join(etc, "catalog"), { recursive: true });
  cpSync(join(POD_DIR, "config"), etc, { recursive: true, dereference: true });
  // A key of a ConfigMap has no folder.
  for (const name of readdirSync(etc))
    if (name.startsWith("catalog-")) renameSync(join(etc, name), join(etc, "catalog", name.slice("catalog-".length)));
  writeFileSync(
    join(etc, "node.properties"),
    Object.entries({
      "node.environment": process.env.TRINO_ENVIRONMENT ?? "demo",
      "node.id": HOSTNAME,
      "node.data-dir": data,
      "node.internal-address": POD_IP,
      "node.bind-ip": POD_IP,
    })
      .map(([name, value]) => `${name}=${value}\n`)
      .join(""),
  );
  rmSync(join(data, "plugin"), { force: true });
  symlinkSync(join(TRINO_HOME, "plugin"), join(data, "plugin"));
}

/** Of the one pod with these labels, once it has an address. */
async function addressOf(selector) {
  const { clusters } = parse(readFileSync(KUBECONFIG ?? "", "utf8"));
  const url = `${clusters[0].cluster.server}/api/v1/namespaces/${NAMESPACE}/pods?labelSelector=${encodeURIComponent(selector)}`;
  for (let said = ""; ; await sleep(LOOK_EVERY_MS)) {
    try {
      const { items } = await (await fetch(url)).json();
      const pod = items.find(({ metadata, status }) => metadata.deletionTimestamp === undefined && status?.podIP);
      if (pod !== undefined) return pod.status.podIP;
      if (said !== "none") console.error(`no pod of ${selector} has an address yet`);
      said = "none";
    } catch (error) {
      if (said !== String(error)) console.error(`the API does not say where the coordinator is: ${error}`);
      said = String(error);
    }
  }
}
