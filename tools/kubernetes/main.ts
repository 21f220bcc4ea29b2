/** `npm run kubernetes -- up [PART…]`: a real control plane in the foreground, for people. */
import { parseArgs } from "node:util";
import { describeError } from "../../src/kernel/errors.ts";
import { startKubernetes } from "./cluster.ts";
import { KUBERNETES_PARTS, type KubernetesPart } from "./pieces.ts";

const USAGE = `npm run kubernetes -- up [PART…] [--pod-cidr CIDR]

Starts a real Kubernetes control plane on loopback, prints its KUBECONFIG and runs until it is interrupted; nothing is left behind.
PART: ${KUBERNETES_PARTS.join(", ")}; without any: controllers scheduler kwok. \`none\` is etcd and the API server alone.
npm run kubernetes:build compiles the programs (about 11 minutes, once).`;

const isPart = (word: string): word is KubernetesPart => (KUBERNETES_PARTS as readonly string[]).includes(word);

try {
  const { values, positionals } = parseArgs({
    options: { "pod-cidr": { type: "string" }, help: { type: "boolean", short: "h" } },
    allowPositionals: true,
  });
  const [command, ...words] = positionals;
  const unknown = words.filter((word) => !isPart(word) && word !== "none");
  if (values.help) process.stdout.write(`${USAGE}\n`);
  else if (command !== "up" || unknown.length > 0) refuse(unknown.length > 0 ? `no such part: ${unknown.join(", ")}` : "up is missing");
  else await up(words.length === 0 ? undefined : words.filter(isPart), values["pod-cidr"]);
} catch (error) {
  process.stderr.write(`${describeError(error)}\n`);
  process.exitCode = error instanceof TypeError ? 2 : 1;
}

function refuse(sentence: string): void {
  process.stderr.write(`${sentence}\n\n${USAGE}\n`);
  process.exitCode = 2;
}

async function up(parts: readonly KubernetesPart[] | undefined, podCidr: string | undefined): Promise<void> {
  const interrupted = new Promise<void>((resolve) => {
    process.once("SIGINT", () => resolve());
    process.once("SIGTERM", () => resolve());
  });
  const cluster = await startKubernetes({ parts, podCidr });
  process.stdout.write(`KUBECONFIG=${cluster.kubeconfig}\n`);
  process.stderr.write(`${cluster.pieces.names().join(", ")} run; logs in ${cluster.dir}; Ctrl-C ends them\n`);
  const alive = setInterval(() => undefined, 2 ** 30); // children without pipes do not keep a process going
  await interrupted;
  clearInterval(alive);
  await cluster.stop();
}
