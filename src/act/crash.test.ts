/**
 * A controller that dies at every one of its port calls, before and after the effect, and another that takes over: the end is the one of a run without a
 * crash, and no effect is there twice (I27). A new call in a step is covered at once, because the calls are counted by a run without a crash.
 */
import { describe, expect, test } from "vitest";
import { runController } from "./testing/controller.ts";
import { Fuse, type Side } from "./testing/fuse.ts";
import { pictureOf, SCENARIOS, type Scenario } from "./testing/scenarios.ts";
import { aWorld, INSTANCE } from "./testing/world.ts";

/** Virtual; a run without a crash needs none of it. */
const LIMIT_MS = 120_000;

interface Run {
  readonly calls: number;
  readonly crashed: boolean;
  readonly picture: unknown;
}

async function run(scenario: Scenario, crashAt?: number, side?: Side): Promise<Run> {
  const world = await aWorld();
  const decide = await scenario.prepare(world);
  world.effects.length = 0;
  const first = new Fuse(crashAt, side);
  void runController(world, first, decide);
  await world.clock.advance(LIMIT_MS);
  if (!first.isAlive) {
    void runController(world, new Fuse(), decide);
    await world.clock.advance(LIMIT_MS);
  }
  const picture = await pictureOf(scenario, world);
  await world.store.close();
  return { calls: first.calls, crashed: !first.isAlive, picture };
}

describe.each(Object.entries(SCENARIOS))("%s", (_, scenario) => {
  test("ends as without a crash, wherever the controller dies, and nothing is done twice (I27)", async () => {
    const undisturbed = await run(scenario);
    expect(undisturbed.calls).toBeGreaterThan(4);

    const differing: unknown[] = [];
    for (let call = 1; call <= undisturbed.calls; call++) {
      for (const side of ["before", "after"] as const) {
        const { crashed, picture } = await run(scenario, call, side);
        expect(crashed).toBe(true);
        if (JSON.stringify(picture) !== JSON.stringify(undisturbed.picture)) differing.push({ call, side, picture });
      }
    }

    expect({ picture: undisturbed.picture, differing }).toEqual({ picture: undisturbed.picture, differing: [] });
  });
});

test("the undisturbed end of each is the wanted one", async () => {
  const ends = await Promise.all(
    Object.entries(SCENARIOS).map(async ([name, scenario]) => [name, ((await run(scenario)).picture as { steps: string[] }).steps]),
  );

  expect(Object.fromEntries(ends)).toEqual({
    standby: [`prepare/${INSTANCE}/1 done prepared`],
    create: [`create/${INSTANCE} done created`],
    cordon: [expect.stringMatching(/^cordon\/.* done cordoned$/)],
    unprotect: [expect.stringMatching(/^unprotect\/.* done unprotected$/)],
    protect: [expect.stringMatching(/^protect\/.* done protected$/)],
    admit: [`admit/${INSTANCE}/1 done admitted`],
    drain: [`drain/${INSTANCE}/1/deadline/1e15 done told`],
    close: [`close/${INSTANCE}/1 done closed`],
    drain_member: [expect.stringMatching(/^drain-member\/.* done member_drains$/)],
    replace_member: [expect.stringMatching(/^replace-member\/.* done member_deleted$/)],
    delete: [`delete/${INSTANCE} done absent`],
    stranger: [`delete-stranger/${INSTANCE} done absent`],
    scale: [expect.stringMatching(/^scale\/.* done scaled$/)],
    remove_owner: [expect.stringMatching(/^remove-owner\/.* done removed$/)],
    uncordon: [expect.stringMatching(/^uncordon\/.* done uncordoned$/)],
  });
});
