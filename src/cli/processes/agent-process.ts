/** `relevo agent`: one on each node. Nothing that is large may be imported here: `npm run test:real` measures its memory. */
import { readFileSync } from "node:fs";
import { type AgentLog, NodeAgent } from "../../agent/agent.ts";
import { AzureCloud } from "../../agent/clouds/azure.ts";
import type { Cloud, CloudName } from "../../agent/clouds/cloud.ts";
import { Ec2Cloud } from "../../agent/clouds/ec2.ts";
import { GcpCloud } from "../../agent/clouds/gcp.ts";
import { Controllers } from "../../agent/controllers.ts";
import { detectCloud } from "../../agent/detect.ts";
import { Hints } from "../../agent/hints.ts";
import { httpCaller, type HttpCaller } from "../../agent/http.ts";
import { LocalInstances, type PodSource } from "../../agent/instances.ts";
import { stayAlive, systemClock, systemIds, systemRandom } from "../../kernel/system.ts";
import { tellReady, untilAskedToEnd } from "./child.ts";
import { createSmallLog } from "./small-log.ts";

export interface AgentProcessOptions {
  readonly node: string;
  readonly cloud: CloudName | "auto" | "none";
  readonly metadataUrl: string;
  readonly controllerUrls: readonly string[];
  /** Of the controllers; read anew at each call when it is a file. */
  readonly token: () => string | undefined;
  readonly controllerCa?: string | undefined;
  /** Where the pods of this node are listed; absent where there is no API server. */
  readonly pods: PodSource | undefined;
  readonly instancesFile?: string | undefined;
  readonly azureApproval: { readonly isOn: boolean; readonly agreed: readonly string[] };
  readonly logLevel: string;
}

/** Runs until it is asked to end. */
export async function runAgent(options: AgentProcessOptions): Promise<void> {
  const asked = untilAskedToEnd();
  const stop = new AbortController();
  void asked.then(() => stop.abort());
  const mayEnd = stayAlive();
  try {
    await run(options, stop.signal);
  } finally {
    mayEnd();
  }
}

async function run(options: AgentProcessOptions, signal: AbortSignal): Promise<void> {
  const log = createSmallLog({ level: options.logLevel, name: "agent", clock: systemClock });
  const { node } = options;
  const http = httpCaller(systemClock);
  const onTrouble = (sentence: string, error: unknown): void => log("warn", sentence, { error });
  const instances = new LocalInstances({ http, node, pods: options.pods, file: options.instancesFile, onTrouble });
  const clouds = cloudsOf(options, http, instances, log);
  tellReady({ agent: node });
  if (clouds.length === 0) {
    log("info", "this machine has no metadata to watch", { node });
    return ended(signal);
  }
  const found = await detectCloud({ clouds, clock: systemClock, random: systemRandom, log }, signal);
  if (found === undefined) return;
  const { cloud, identity } = found;
  log("info", "the metadata of this machine is watched", { node, cloud: cloud.name, ...identity, controllers: options.controllerUrls });
  const agent = new NodeAgent({
    node,
    cloud,
    identity,
    controllers: new Controllers({ http, urls: options.controllerUrls, token: options.token, ca: options.controllerCa }),
    instances,
    hints: new Hints({ http, ids: systemIds, onTold: (what) => log("info", "an instance was told", what), onTrouble }),
    clock: systemClock,
    random: systemRandom,
    bootId: machineBootId(),
    log,
  });
  agent.start();
  await ended(signal);
  await agent.stop();
}

function cloudsOf(
  { cloud, metadataUrl: baseUrl, azureApproval }: AgentProcessOptions,
  http: HttpCaller,
  instances: LocalInstances,
  log: AgentLog,
): readonly Cloud[] {
  const approval = {
    agreed: azureApproval.agreed,
    isEmpty: () => instances.isKnownEmpty,
    onApproved: (events: readonly string[]) => log("info", "scheduled events were approved: nothing of ours runs here", { events }),
  };
  const all: readonly Cloud[] = [
    new Ec2Cloud({ http, clock: systemClock, baseUrl }),
    new GcpCloud({ http, baseUrl }),
    new AzureCloud({ http, baseUrl, ...(azureApproval.isOn ? { approval } : {}) }),
  ];
  return cloud === "auto" ? all : all.filter(({ name }) => name === cloud);
}

function ended(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}

/** Of the machine, also in a container. */
function machineBootId(): string | null {
  try {
    return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim().slice(0, 64) || null;
  } catch {
    return null; // not on Linux: times tell notices apart then
  }
}
