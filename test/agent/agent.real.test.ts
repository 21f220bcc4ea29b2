/** `relevo agent` as a process, with stand-ins around it. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { AZURE_MACHINE, startAzureMetadata, startEc2Metadata, startGcpMetadata } from "../../src/agent/testing/metadata.ts";
import { createInstance, type RelevoInstance } from "../../src/sdk/index.ts";
import { type AgentProcess, build, type Build, startAgent, startApi, startController } from "./process.ts";

/** The target of the issue. */
const MOST_MB = 80;
const PATIENT = { timeout: 30_000, interval: 100 };
const SPOT = '{"action":"terminate","time":"2099-11-30T10:02:00Z"}';

let built: Build;
const opened: (() => unknown)[] = [];

beforeAll(() => {
  built = build();
});
afterAll(() => built?.remove());
afterEach(async () => {
  for (const close of opened.splice(0).toReversed()) await close();
});

function closing<T extends { close(): Promise<void> }>(part: T): T {
  opened.push(() => part.close());
  return part;
}

function run(args: readonly string[], env?: Readonly<Record<string, string>>): AgentProcess {
  const agent = startAgent(built, args, env);
  opened.push(() => agent.stop("SIGKILL"));
  return agent;
}

async function anInstance(): Promise<{ readonly instance: RelevoInstance; readonly pod: unknown }> {
  const env = { HOST: "127.0.0.1", PORT: "0", RELEVO_INSTANCE: "orders-1" };
  const instance = createInstance({ handler: (_request, response) => response.end("hello"), name: "orders-1", env });
  opened.push(() => instance.stop());
  const { port } = await instance.listen();
  await instance.perform("admit", "step-admit", null);
  const pod = {
    metadata: { uid: "uid-1", labels: { "relevo.dev/instance": "orders-1" } },
    spec: { containers: [{ env: [{ name: "PORT", value: String(port) }] }] },
    status: { phase: "Running", podIP: "127.0.0.1" },
  };
  return { instance, pod };
}

const kinds = (notices: readonly { readonly path: string; readonly body: Readonly<Record<string, unknown>> }[]): readonly string[] =>
  notices.map(({ path, body }) => `${path.split("/").at(-1)} ${String(body["kind"])} ${String(body["state"])}`);

test("while it works it holds at most 80 MB, whatever metadata, controllers and the API server do to it", async () => {
  const [metadata, controller, api] = [closing(await startEc2Metadata()), closing(await startController()), closing(await startApi())];
  const { pod } = await anInstance();
  api.pods = Array.from({ length: 110 }, () => pod);
  const agent = run([`--controller=${controller.url}`, `--metadata-url=${metadata.url}`, `--kube-api=${api.url}`]);
  await expect.poll(() => controller.heartbeats.length, PATIENT).toBeGreaterThan(0);
  const started = agent.memory();

  metadata.documents.set("spot/instance-action", SPOT);
  await expect.poll(() => controller.notices.length, PATIENT).toBe(1);
  metadata.mood = "huge";
  await expect.poll(() => agent.lines.filter(({ msg }) => msg === "metadata cannot be read").length, PATIENT).toBeGreaterThanOrEqual(1);
  metadata.mood = "well";
  controller.isAway = true;
  metadata.documents.set("autoscaling/target-lifecycle-state", "Terminated");
  await expect.poll(() => agent.lines.some(({ msg }) => msg === "an instance was told"), PATIENT).toBe(true);
  controller.isAway = false;
  await expect.poll(() => controller.notices.length, PATIENT).toBe(2);

  const worked = agent.memory();
  console.info(
    `agent: ${started.now.toFixed(1)} MB at the start, ${worked.now.toFixed(1)} MB at work, ${worked.most.toFixed(1)} MB at the most`,
  );
  expect(worked.most).toBeLessThanOrEqual(MOST_MB);
  expect(await agent.stop()).toBe(0);
});

test("with the API server and the controller away the instances that it remembers are told at once; all is told and taken back later", async () => {
  const [metadata, controller, api] = [closing(await startGcpMetadata()), closing(await startController()), closing(await startApi())];
  const { instance, pod } = await anInstance();
  api.pods = [pod];
  const file = join(built.dir, "instances.json");
  const args = [`--controller=${controller.url}`, `--metadata-url=${metadata.url}`, `--kube-api=${api.url}`, `--instances-file=${file}`];
  const first = run(args);
  await expect.poll(() => controller.heartbeats.length, PATIENT).toBeGreaterThan(0);
  expect(await first.stop()).toBe(0);

  api.isAway = true;
  controller.isAway = true;
  run(args);
  await expect.poll(() => metadata.asked.filter((line) => line.includes("wait_for_change")).length, PATIENT).toBeGreaterThanOrEqual(2);
  const before = performance.now();
  metadata.set("instance/preempted", "TRUE");
  await expect.poll(() => instance.state, PATIENT).toBe("draining");
  expect(performance.now() - before).toBeLessThan(5_000);
  expect(controller.notices).toEqual([]);

  controller.isAway = false;
  await expect.poll(() => kinds(controller.notices), PATIENT).toEqual(["gcp instance/preempted present"]);
  metadata.set("instance/preempted", "FALSE");
  await expect.poll(() => kinds(controller.notices), PATIENT).toEqual(["gcp instance/preempted present", "gcp instance/preempted gone"]);
  await expect.poll(() => instance.state, PATIENT).toBe("admitted");
});

test("Azure: the cloud is found by asking, a neighbour's Preempt is not told, and of two controllers one is enough", async () => {
  const [metadata, controller] = [closing(await startAzureMetadata()), closing(await startController())];
  const event = { EventType: "Preempt", EventStatus: "Scheduled", NotBefore: "Mon, 30 Nov 2026 10:15:00 GMT", DurationInSeconds: -1 };
  metadata.list(
    { ...event, EventId: "theirs", Resources: ["aks-workers-vmss_4"] },
    { ...event, EventId: "ours", Resources: [AZURE_MACHINE] },
  );
  const token = join(built.dir, "token");
  mkdirSync(built.dir, { recursive: true });
  writeFileSync(token, "first-token\n");
  run(["--controller=http://127.0.0.1:1", `--controller=${controller.url}`, `--metadata-url=${metadata.url}`, `--token-file=${token}`]);
  await expect.poll(() => kinds(controller.notices), PATIENT).toEqual(["azure scheduledevents present"]);
  expect(controller.notices[0]).toMatchObject({
    authorization: "Bearer first-token",
    body: { machineName: AZURE_MACHINE, document: { EventId: "ours" } },
  });
  writeFileSync(token, "second-token\n");
  metadata.list();
  await expect.poll(() => kinds(controller.notices).at(-1), PATIENT).toBe("azure scheduledevents gone");
  expect(controller.notices[1]?.authorization).toBe("Bearer second-token");
});

test("metadata that hangs, or is not there, keeps nobody from ending the agent", async () => {
  const [metadata, controller] = [closing(await startEc2Metadata()), closing(await startController())];
  metadata.mood = "hang";
  const agent = run([`--controller=${controller.url}`, `--metadata-url=${metadata.url}`, "--cloud=aws"]);
  await expect.poll(() => agent.lines.some(({ msg }) => String(msg).startsWith("no metadata says")), PATIENT).toBe(true);
  expect(await agent.stop()).toBe(0);
  const none = run([`--controller=${controller.url}`, "--cloud=none"]);
  await expect.poll(() => none.lines.length, PATIENT).toBe(1);
  expect(await none.stop()).toBe(0);
});
