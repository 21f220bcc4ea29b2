import { expect, onTestFinished, test } from "vitest";
import { VirtualClock } from "../kernel/virtual-clock.ts";
import type { AgentReport } from "../notices/agent-report.ts";
import type { Look, Said } from "../notices/standing.ts";
import { HEARTBEAT_MS, NodeAgent } from "./agent.ts";
import type { Delivery } from "./controllers.ts";
import { MAX_WAITING } from "./outbox.ts";

const spot = (change: Partial<Said> = {}): Said => ({
  kind: "spot/instance-action",
  meaning: "terminate",
  time: 1,
  document: { action: "terminate" },
  isGoing: true,
  ...change,
});
const saying = (...said: Said[]): Look => ({ kind: "spot/instance-action", said });
const FAILED: Look = { kind: "spot/instance-action", failed: "spot/instance-action: status 503" };

interface World {
  readonly clock: VirtualClock;
  readonly agent: NodeAgent;
  /** What metadata says at the next looks. */
  look: Look;
  /** What a controller does with a report now. */
  controller: () => Delivery;
  /** How long it takes to tell the instances. */
  givesWithinMs: number;
  readonly log: string[];
  readonly beats: (string | null)[];
}

/** An agent on a virtual clock whose metadata, controllers and instances are scripted; everything that it does is a line of the log. */
function aWorld(): World {
  const clock = new VirtualClock();
  const log: string[] = [];
  const beats: (string | null)[] = [];
  const seconds = (): string => `${Math.round(clock.monotonic() / 100) / 10}s`;
  let told = 0;
  const parts = { look: saying(), controller: (): Delivery => "kept", givesWithinMs: 0 };
  const agent = new NodeAgent({
    node: "node-1",
    cloud: {
      name: "aws",
      source: "ec2-metadata",
      identify: () => Promise.reject(new Error("not asked")),
      watches: [{ everyMs: 5_000, goneAfter: 3, look: async () => [parts.look] }],
    },
    identity: { providerID: "aws:///eu-west-1a/i-1" },
    controllers: {
      deliver: async (source: string, { state, ageMs }: AgentReport) => {
        const delivery = parts.controller();
        log.push(`${seconds()} ${source} ${state} ${delivery === "kept" ? "kept" : "refused"} age ${Math.round(ageMs / 1_000)}`);
        return delivery;
      },
      heartbeat: async (_source, { trouble }) => void beats.push(trouble),
    },
    instances: { known: [{ instance: "orders-1", podUid: "uid-1", host: "127.0.0.1", ports: [1] }], refresh: async () => undefined },
    hints: {
      give: async (instances) => {
        log.push(`${seconds()} hint ${instances.map(({ instance }) => instance).join()}`);
        if (parts.givesWithinMs > 0) await clock.sleep(parts.givesWithinMs);
        told = instances.length;
      },
      takeBack: async () => {
        log.push(`${seconds()} hint taken back`);
        told = 0;
      },
      forgetOthers: () => undefined,
      get standing() {
        return told;
      },
    },
    clock,
    random: { next: () => 0.5 },
    bootId: "boot",
    log: () => undefined,
  });
  agent.start();
  const world = { clock, agent, log, beats };
  onTestFinished(async () => {
    const stopped = agent.stop();
    await clock.advance(0);
    await stopped;
  });
  return Object.defineProperties(world, {
    look: {
      set: (look: Look) => {
        parts.look = look;
      },
    },
    givesWithinMs: {
      set: (ms: number) => {
        parts.givesWithinMs = ms;
      },
    },
    controller: {
      set: (controller: () => Delivery) => {
        parts.controller = controller;
      },
    },
  }) as World;
}

const away = (): never => {
  throw new Error("nobody is there");
};

test("a notice is told once, and no instance is bothered while a controller hears", async () => {
  const world = aWorld();
  world.look = saying(spot());
  await world.clock.advance(60_000);
  expect(world.log).toEqual(["5s ec2-metadata present kept age 0"]);
});

test("a time that slides with each look is no new notice", async () => {
  const world = aWorld();
  for (let at = 0; at < 10; at++) {
    world.look = saying(spot({ time: 1_000_000 + at * 5_000 }));
    await world.clock.advance(5_000);
  }
  expect(world.log).toEqual(["5s ec2-metadata present kept age 0"]);
});

test("while no controller hears, the instances of the node are told, once two seconds are over, and the notice goes on being sent until it is kept", async () => {
  const world = aWorld();
  world.controller = away;
  world.look = saying(spot());
  await world.clock.advance(20_000);
  expect(world.log[0]).toBe("7s hint orders-1");
  world.controller = () => "kept";
  await world.clock.advance(6_000);
  expect(world.log.filter((line) => !line.includes("hint"))).toHaveLength(1);
  expect(world.log.at(-1)).toMatch(/ec2-metadata present kept age 1[5-9]$/);
});

test("a controller that comes back within two seconds spares the instances", async () => {
  const world = aWorld();
  world.controller = away;
  world.look = saying(spot());
  await world.clock.advance(6_000);
  world.controller = () => "kept";
  await world.clock.advance(30_000);
  expect(world.log).toEqual([expect.stringMatching(/ec2-metadata present kept age 1$/)]);
});

test("what metadata does not say any more is withdrawn, and the hint is taken back although no controller hears", async () => {
  const world = aWorld();
  world.controller = away;
  world.look = saying(spot());
  await world.clock.advance(10_000);
  world.look = saying();
  await world.clock.advance(20_000);
  expect(world.log.filter((line) => line.includes("taken back"))).toEqual(["25s hint taken back"]);
  world.controller = () => "kept";
  await world.clock.advance(10_000);
  expect(world.log.slice(-2).map((line) => line.replace(/^\S+ | age.*$/g, ""))).toEqual([
    "ec2-metadata present kept",
    "ec2-metadata gone kept",
  ]);
});

test("a hint that is still being given when metadata says nothing any more is taken back once it was given", async () => {
  const world = aWorld();
  world.controller = away;
  world.givesWithinMs = 20_000;
  world.look = saying(spot());
  await world.clock.advance(8_000);
  world.look = saying();
  await world.clock.advance(15_000);
  expect(world.log).toEqual(["7s hint orders-1"]);
  await world.clock.advance(10_000);
  expect(world.log).toEqual(["7s hint orders-1", "27s hint taken back"]);
});

test("a recommendation that nothing follows is told to the controllers, never to the instances", async () => {
  const world = aWorld();
  world.controller = away;
  world.look = saying(spot({ isGoing: false, meaning: "rebalance" }));
  await world.clock.advance(60_000);
  expect(world.log).toEqual([]);
});

test("metadata that fails says nothing and takes nothing back; the heartbeat names it until it is well again", async () => {
  const world = aWorld();
  world.look = saying(spot());
  await world.clock.advance(10_000);
  world.look = FAILED;
  await world.clock.advance(3 * HEARTBEAT_MS);
  expect(world.log).toEqual(["5s ec2-metadata present kept age 0"]);
  expect(world.beats.at(-1)).toBe("spot/instance-action: status 503");
  world.look = saying(spot());
  await world.clock.advance(2 * HEARTBEAT_MS);
  expect([world.beats[0], world.beats.at(-1), world.log.length]).toEqual([null, null, 1]);
});

test("what a controller refuses for good is not sent for ever", async () => {
  const world = aWorld();
  world.controller = () => ({ refused: "status 400" });
  world.look = saying(spot());
  await world.clock.advance(60_000);
  expect(world.log).toEqual(["5s ec2-metadata present refused age 0"]);
});

test("what waits for a controller is bounded, and what was lost of it is told", async () => {
  const world = aWorld();
  world.controller = away;
  for (let at = 0; at < MAX_WAITING + 10; at++) {
    world.look = saying(spot({ isGoing: false, meaning: `action-${at}` }));
    await world.clock.advance(5_500);
  }
  world.controller = () => "kept";
  await world.clock.advance(120_000);
  expect(world.log.length).toBeLessThanOrEqual(MAX_WAITING + 1);
  expect(world.agent.trouble).toMatch(/notices could not be kept until a controller heard them$/);
});
