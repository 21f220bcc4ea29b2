/**
 * Random faults at the ports, before and after the effect, and crashes in between: as long as they end some time, every step ends as it would have without
 * them, and no effect is there twice (I27, D13).
 */
import fc from "fast-check";
import { expect, test } from "vitest";
import { RelevoError } from "../kernel/errors.ts";
import { KubeApiError } from "../kube/api.ts";
import { storeUnavailable } from "../store/port.ts";
import { type Faults, runController } from "./testing/controller.ts";
import { type Fault, Fuse } from "./testing/fuse.ts";
import { pictureOf, SCENARIOS, type Scenario } from "./testing/scenarios.ts";
import { aWorld } from "./testing/world.ts";

const FATES = ["well", "fails", "loses its reply", "conflicts", "kills"] as const;
type Fate = (typeof FATES)[number];

const fates = fc.array(
  fc.oneof(
    { weight: 3, arbitrary: fc.constant<Fate>("well") },
    { weight: 4, arbitrary: fc.constantFrom<Fate>("fails", "loses its reply", "conflicts", "kills") },
  ),
  { maxLength: 40 },
);

const KUBE_AWAY = new KubeApiError({ code: 503, reason: "ServiceUnavailable" }, "away");
const KUBE_CONFLICT = new KubeApiError({ code: 409, reason: "Conflict" }, "changed meanwhile");
const LOST = new RelevoError("instance_connection_lost", "lost", { class: "retryable" });
const STORE_AWAY = storeUnavailable("i/o", null);

/** Each call of the executor takes the next fate; when they are used up, all is well. */
function faultsOf(queue: Fate[], current: () => Fuse): Faults {
  const fault =
    (error: unknown, conflict: unknown): Fault =>
    () => {
      switch (queue.shift() ?? "well") {
        case "well":
          return undefined;
        case "fails":
          return { error, side: "before" };
        case "loses its reply":
          return { error, side: "after" };
        case "conflicts":
          return { error: conflict, side: "before" };
        case "kills":
          current().kill();
          return undefined;
        default:
          throw new Error("no such fate");
      }
    };
  return { store: fault(STORE_AWAY, STORE_AWAY), kube: fault(KUBE_AWAY, KUBE_CONFLICT), driver: fault(LOST, LOST) };
}

/** A failure prints its seed; `SEED=…` runs it again. */
const SEED = process.env["SEED"] === undefined ? {} : { seed: Number(process.env["SEED"]) };

const SLICE_MS = 90_000;
const SLICES_MAX = 60;

async function run(scenario: Scenario, script: readonly Fate[]): Promise<unknown> {
  const world = await aWorld();
  const decide = await scenario.prepare(world);
  world.effects.length = 0;
  const queue = [...script];
  let fuse = new Fuse();
  void runController(
    world,
    fuse,
    decide,
    faultsOf(queue, () => fuse),
  );
  for (let slice = 0; slice < SLICES_MAX; slice++) {
    await world.clock.advance(SLICE_MS);
    if (fuse.isAlive && queue.length === 0) break;
    if (fuse.isAlive && (await isOver(world))) break;
    if (fuse.isAlive) continue;
    fuse = new Fuse();
    void runController(
      world,
      fuse,
      decide,
      faultsOf(queue, () => fuse),
    );
  }
  await world.clock.advance(SLICE_MS);
  const picture = await pictureOf(scenario, world);
  await world.store.close();
  return picture;
}

async function isOver({ store }: Awaited<ReturnType<typeof aWorld>>): Promise<boolean> {
  const steps = await store.listSteps("default/orders", 10);
  return steps.length > 0 && steps.every(({ state }) => state === "done");
}

test.each(Object.entries(SCENARIOS))("%s ends as without faults (I27)", async (_, scenario) => {
  const undisturbed = await run(scenario, []);

  await fc.assert(
    fc.asyncProperty(fates, async (script) => {
      expect(await run(scenario, script)).toEqual(undisturbed);
    }),
    { numRuns: 40, ...SEED },
  );
});
