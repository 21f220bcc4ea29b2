/** An executor in a fresh world for each test, under an authority of its own. */
import { afterEach, beforeEach } from "vitest";
import { z } from "zod";
import { reason } from "../../model/reasons.ts";
import type { StepDraft, StepRecord } from "../../model/step.ts";
import { KubeApiError } from "../../kube/api.ts";
import type { Authority } from "../../store/port.ts";
import { createExecutor, type Executor, type ExecutorOptions } from "../executor.ts";
import { registryOf, type StepRegistry } from "../registry.ts";
import { renderBlueprint } from "../render-blueprint.ts";
import { done, NOT_HAPPENED, register, type StepKind } from "../step-kind.ts";
import { aNode, aWorld, BLUEPRINT, INSTANCE, POOL, type World } from "./world.ts";

export const MINUTES = 60_000;
export const API_DOWN = new KubeApiError({ code: 503, reason: "ServiceUnavailable" }, "the API server is away");

export class Harness {
  world: World;
  authority: Authority;
  /** How many times the planner was asked again. */
  settled = 0;

  constructor(world: World, authority: Authority) {
    this.world = world;
    this.authority = authority;
  }

  anExecutor(overrides: Partial<ExecutorOptions> = {}): Executor {
    return createExecutor({
      store: this.world.store,
      kube: this.world.kube,
      driver: this.world.instances,
      clock: this.world.clock,
      random: { next: () => 0.5 },
      log: { info: () => {}, warn: () => {}, error: () => {} },
      onSettled: () => void this.settled++,
      ...overrides,
    });
  }

  steps(): Promise<readonly StepRecord[]> {
    return this.world.store.listSteps(POOL, 100);
  }

  /** Oldest first: `id state outcome`. */
  async stepsAs(): Promise<readonly string[]> {
    return (await this.steps()).map(({ id, state, outcome }) => `${id} ${state} ${outcome}`).toReversed();
  }

  /** Makes the node and says to cordon it. */
  async aCordon(name = "a"): Promise<StepDraft> {
    const node = await aNode(this.world.kube, name);
    const { uid } = node.metadata;
    this.world.effects.length = 0;
    return draftOf(`cordon/${uid}/e1`, "cordon_node/1", { node: { name, uid }, evidence: "e1" });
  }
}

/** Filled anew before each test of the file. */
export function useHarness(): Harness {
  const harness = Object.create(Harness.prototype) as Harness;
  beforeEach(async () => {
    const world = await aWorld();
    Object.assign(harness, new Harness(world, await world.store.claim(POOL, "controller-1", world.clock.now())));
  });
  afterEach(() => harness.world.store.close());
  return harness;
}

export function draftOf(id: string, kind: string, payload: unknown): StepDraft {
  return { id, operation: "op", pool: POOL, instance: INSTANCE, kind, payload, reason: reason("created") };
}

export function aCreate(): StepDraft {
  const objects = renderBlueprint(BLUEPRINT, { instance: INSTANCE, pool: "orders", site: "local", namespace: "default" });
  const createdBy = `create/${INSTANCE}`;
  return draftOf(createdBy, "create_instance/1", { instance: INSTANCE, namespace: "default", createdBy, objects });
}

/** A kind whose effect is up to the test. */
export function aKind(overrides: Partial<StepKind<unknown>>): StepRegistry {
  return registryOf([
    register({
      kind: "try/1",
      schema: z.unknown(),
      act: async () => done("tried"),
      probe: async () => NOT_HAPPENED,
      settle: () => [],
      ...overrides,
    }),
  ]);
}
