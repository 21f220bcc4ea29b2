/**
 * A process that takes notices from a queue as a controller does: SDK, poller, desk with its correlation, SQLite with an fsync at every commit. Its cluster has
 * as many nodes as it is told. On SIGTERM it ends in good order and prints one JSON document: what it cost.
 */
import { systemClock, systemIds, systemRandom } from "../../src/kernel/system.ts";
import type { Change } from "../../src/kube/informer.ts";
import type { KubeNode } from "../../src/kube/types.ts";
import { QueuePoller } from "../../src/notices/sqs/poller.ts";
import { SdkQueue } from "../../src/notices/sqs/sdk-queue.ts";
import { NoticeDesk, type NoticeDeskOptions } from "../../src/observe/notice-desk.ts";
import { openStore } from "../../src/store/store.ts";
import { machineName, type TakerSetting } from "./taking.ts";

const setting = JSON.parse(process.argv[2] ?? "{}") as TakerSetting;
const store = await openStore({ path: setting.store });
const desk = new NoticeDesk({
  store,
  world: worldOf(setting.nodes),
  clock: systemClock,
  ids: systemIds,
  onChange: () => {},
  onOutcome: () => {},
  log: () => {},
});
await desk.start();
const poller = new QueuePoller({
  queue: new SdkQueue({ url: setting.queue }),
  keeper: desk,
  clock: systemClock,
  random: systemRandom,
  onHeard: () => {},
  onTrouble: (trouble) => process.stderr.write(`${trouble}\n`),
  log: () => {},
  visibilitySeconds: setting.visibilitySeconds,
});
const before = process.cpuUsage();
poller.start();
process.stdout.write("ready\n");
process.once("SIGTERM", () => void end());
// Nothing else keeps the process alive while all receivers wait.
const alive = setInterval(() => {}, 60_000);

async function end(): Promise<void> {
  await poller.stop();
  const { user, system } = process.cpuUsage(before);
  const cost = {
    cpuMs: Math.round((user + system) / 1_000),
    rssMiB: Math.round(process.memoryUsage.rss() / 2 ** 20),
    open: desk.open().length,
  };
  desk.stop();
  await store.close();
  clearInterval(alive);
  process.stdout.write(`${JSON.stringify(cost)}\n`);
}

/** Nodes that never change, found by their machine as the read model finds them. */
function worldOf(count: number): NoticeDeskOptions["world"] {
  const nodes = Array.from({ length: count }, (_, index) => nodeOf(index));
  const byMachine = new Map(nodes.map((node, index) => [machineName(index), [node]]));
  const world = {
    nodes: {
      list: () => nodes,
      byIndex: (_index: string, value: string) => byMachine.get(value) ?? [],
      synced: () => true,
      onChange: (_listener: (change: Change<KubeNode>) => void) => () => {},
    },
    nodeClaims: { byIndex: () => [] },
    trouble: () => undefined,
  };
  return world as unknown as NoticeDeskOptions["world"];
}

function nodeOf(index: number): KubeNode {
  const node = {
    metadata: { uid: `uid-${index}`, name: `node-${index}` },
    spec: { providerID: `aws:///eu-west-1a/${machineName(index)}` },
  };
  return node as unknown as KubeNode;
}
