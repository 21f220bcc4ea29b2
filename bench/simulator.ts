/**
 * The simulator's speed, every invariant on: virtual time per CPU time at 10 and at 500 instances, told apart for the start, a steady phase (all serve, a client
 * sends) and a storm (a quarter of the nodes is taken within 20 s, each with a warning, until the pool is whole again); and what one planning pass costs at
 * 5,000 instances in 3 pools. Prints one JSON document. Targets: 5,000 times real time at 10 instances, 500 times at 500, a pass of at most 200 ms (p99).
 *
 * CPU time of this process and not wall time: one simulation is one thread, and the machine may be shared (a machine that is busy takes more CPU time for the
 * same, too). Checks and probes are every 10 s, as pools of this size would have them. Arguments choose sizes: `node bench/simulator.ts 10`; `--cpu-prof` works as
 * with any script.
 */
import { composeController } from "../src/cli/processes/controller.ts";
import type { KubeObjectDraft } from "../src/kube/api.ts";
import { installGuards } from "../src/sim/guards.ts";
import { Injector } from "../src/sim/inject.ts";
import { createCheckedWorld, type Violation } from "../src/sim/run-seed.ts";
import { poolDocument, type Scenario, scenarioPool } from "../src/sim/scenario.ts";
import type { World } from "../src/sim/world.ts";
import { measurePasses } from "./simulator/planning-pass.ts";

const SIZES = [
  { instances: 10, nodes: 4, target: 5_000, steadyMs: 6_000_000 },
  { instances: 500, nodes: 40, target: 500, steadyMs: 600_000 },
];
const STORM_MS = 20_000;
const STORM_SHARE = 0.25;
const WHOLE_WITHIN_MS = 30 * 60_000;
const CHECK_EVERY_S = 10;
const PASS_P99_MS = 200;
const SEED = 1;

interface Speed {
  readonly virtualS: number;
  readonly cpuS: number;
  readonly timesRealTime: number;
}

const wanted = process.argv.slice(2).map(Number);
const speeds = [];
for (const size of SIZES.filter(({ instances }) => wanted.length === 0 || wanted.includes(instances))) speeds.push(await measure(size));
const pass = wanted.length === 0 || wanted.includes(5_000) ? await measurePasses() : undefined;
const held = {
  speed: speeds.every(({ ratio }) => ratio >= 1),
  pass: pass === undefined || Math.max(pass.quiet.p99Ms, pass.storm.p99Ms) <= PASS_P99_MS,
  invariants: speeds.every(({ violations }) => violations.length === 0),
};
process.stdout.write(`${JSON.stringify({ bench: "simulator", speeds, pass, target: { passP99Ms: PASS_P99_MS }, held })}\n`);
if (Object.values(held).some((each) => !each)) process.exitCode = 1;

async function measure({ instances, nodes, target, steadyMs }: (typeof SIZES)[number]) {
  const violations: Violation[] = [];
  const lift = installGuards();
  const { world } = await createCheckedWorld(SEED, { compose: composeController, scenario: scenarioOf(instances, nodes) }, violations);
  process.stderr.write(`${instances} instances: start\n`);
  const start = await timed(world, async () => {
    await world.start();
    await whole(world);
  });
  for (const client of world.clients) client.start();
  process.stderr.write(`${instances} instances: steady\n`);
  const steady = await timed(world, () => world.clock.advance(steadyMs));
  process.stderr.write(`${instances} instances: storm\n`);
  const storm = await timed(world, async () => {
    const injector = new Injector(world);
    const faults = Math.max(1, Math.round(nodes * STORM_SHARE));
    for (let fault = 0; fault < faults; fault++)
      world.clock.after(Math.round((fault * STORM_MS) / faults), () =>
        injector.inject({ kind: "spot_notice", pick: (fault + 0.5) / faults, delayMs: 100, copies: 1 }),
      );
    await world.clock.advance(STORM_MS);
    await whole(world);
  });
  await world.close();
  lift();
  const ratio = Number((steady.timesRealTime / target).toFixed(2));
  return { instances, target, ratio, start, steady, storm, violations };
}

async function whole(world: World): Promise<void> {
  const until = world.clock.now() + WHOLE_WITHIN_MS;
  for (;;) {
    const missing = await world.whatIsMissing();
    if (missing.length === 0) return;
    if (world.clock.now() >= until) throw new Error(`the pool is not whole: ${missing.slice(0, 5).join("; ")}`);
    await world.clock.advance(500);
  }
}

async function timed(world: World, work: () => Promise<void>): Promise<Speed> {
  const from = world.clock.now();
  const cpu = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(cpu);
  const virtualS = (world.clock.now() - from) / 1_000;
  const cpuS = (user + system) / 1e6;
  return { virtualS, cpuS: Number(cpuS.toFixed(3)), timesRealTime: Math.round(virtualS / cpuS) };
}

function scenarioOf(instances: number, nodes: number): Scenario {
  const share = Math.max(1, Math.round(instances / 10));
  const document = poolDocument({ name: "orders", desired: instances, surge: share, draining: share, startsOff: false });
  return {
    nodes,
    zones: ["zone-a", "zone-b", "zone-c"],
    gateways: 2,
    bootMs: [500, 5_000],
    leadMs: 40_000,
    pools: [scenarioPool(checkedEvery(document, CHECK_EVERY_S))],
  };
}

function checkedEvery(document: KubeObjectDraft, seconds: number): KubeObjectDraft {
  return JSON.parse(
    JSON.stringify(document)
      .replace(/"healthEvery":"[^"]*"/, `"healthEvery":"${seconds}s"`)
      .replace(/"periodSeconds":\d+/, `"periodSeconds":${seconds}`),
  ) as KubeObjectDraft;
}
