/** `relevo agent` with AWS's own mock of EC2's metadata: IMDSv2 only, times that slide with each look. */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { systemClock, systemIds } from "../../src/kernel/system.ts";
import { NoticeDesk } from "../../src/observe/notice-desk.ts";
import { fakeNodes } from "../../src/observe/testing/fake-nodes.ts";
import { openStore } from "../../src/store/store.ts";
import { build, type Build, type Heard, startAgent, startController, type StandInController } from "./process.ts";
import { freePort } from "../ports.ts";

const SCRIPT = join(import.meta.dirname, "../../tools/peers/ec2-metadata-mock.sh");
/** The mock's own. */
const MACHINE = "i-1234567890abcdef0";
const PATIENT = { timeout: 60_000, interval: 200 };

let built: Build;
const opened: (() => unknown)[] = [];

beforeAll(() => {
  execFileSync("sh", [SCRIPT, "fetch"], { stdio: ["ignore", "ignore", "inherit"] });
  built = build();
}, 600_000);
afterAll(() => built?.remove());
afterEach(async () => {
  for (const close of opened.splice(0).toReversed()) await close();
});

/** `args` choose what it mocks: `spot`, `events`, `asglifecycle`; all of it without any. */
async function startMock(...args: readonly string[]): Promise<string> {
  const port = await freePort();
  const mock: ChildProcess = spawn("sh", [SCRIPT, "run", String(port), ...args], { stdio: "ignore" });
  opened.push(() => new Promise((resolve) => (mock.exitCode === null ? (mock.once("exit", resolve), mock.kill()) : resolve(null))));
  const url = `http://127.0.0.1:${port}`;
  await expect
    .poll(
      () =>
        fetch(`${url}/latest/api/token`)
          .then(() => true)
          .catch(() => false),
      PATIENT,
    )
    .toBe(true);
  return url;
}

async function anAgent(url: string): Promise<StandInController> {
  const controller = await startController();
  opened.push(() => controller.close());
  const agent = startAgent(built, [`--controller=${controller.url}`, `--metadata-url=${url}`]);
  opened.push(() => agent.stop("SIGKILL"));
  return controller;
}

const said = (notices: readonly Heard[]): readonly string[] =>
  notices.map(({ body }) => `${String(body["kind"])} ${String(body["state"])}`).toSorted();

/** What a controller makes of it, with the machine's node in its cluster. */
async function evidenceOf(notices: readonly Heard[]): Promise<readonly string[]> {
  const store = await openStore({ path: ":memory:" });
  const nodes = fakeNodes();
  nodes.put("node-1", `aws:///us-east-1a/${MACHINE}`);
  const quiet = { onChange: () => {}, onOutcome: () => {}, log: () => {} };
  const desk = new NoticeDesk({ store, world: nodes.world, clock: systemClock, ids: systemIds, ...quiet });
  opened.push(() => (desk.stop(), store.close()));
  for (const { body } of notices) await desk.receive("ec2-metadata", { body: JSON.stringify(body), headers: {} });
  return [...desk.findings().values()].flat().map(({ reason }) => reason);
}

test("a recommendation and an interruption are told once each, although their times slide with each look (S1)", async () => {
  const controller = await anAgent(await startMock("spot", "--action", "terminate", "--mock-delay-sec", "4"));
  await expect
    .poll(() => said(controller.notices), PATIENT)
    .toEqual(["events/recommendations/rebalance present", "spot/instance-action present"]);
  // Four more looks.
  await systemClock.sleep(21_000);
  expect(controller.notices).toHaveLength(2);
  expect(controller.notices.map(({ body }) => body["providerID"])).toEqual(Array.from({ length: 2 }, () => `aws:///us-east-1a/${MACHINE}`));
  expect([...(await evidenceOf(controller.notices))].toSorted()).toEqual(["node_rebalance", "spot_interruption"]);
});

test("all that the mock says at once is understood: maintenance and a lifecycle state too", async () => {
  const controller = await anAgent(await startMock());
  await expect
    .poll(() => said(controller.notices), PATIENT)
    .toEqual([
      "autoscaling/target-lifecycle-state present",
      "events/maintenance/scheduled present",
      "events/recommendations/rebalance present",
      "spot/instance-action present",
    ]);
  // One fact for each class of loss; of those with a deadline the earliest counts.
  const [voluntary, deadline, ...more] = [...(await evidenceOf(controller.notices))].toSorted();
  expect([voluntary, more]).toEqual(["node_rebalance", []]);
  expect(["instance_state_change", "scheduled_maintenance", "spot_interruption"]).toContain(deadline);
});

test("maintenance that is completed is not told as maintenance to come", async () => {
  const url = await startMock("events", "--code", "system-reboot", "--state", "completed");
  const controller = await anAgent(url);
  await expect.poll(() => controller.heartbeats.length, PATIENT).toBeGreaterThan(0);
  await systemClock.sleep(6_000);
  expect(said(controller.notices)).toEqual([]);
});
