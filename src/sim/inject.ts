/** Lets one planned fault happen in the world, and heals it when its time is over. A fault that finds nothing to act upon is not counted. */
import type { Instant } from "../kernel/clock.ts";
import { RelevoError } from "../kernel/errors.ts";
import { spotInterruptionWarning } from "../notices/eventbridge/compose.ts";
import type { Fault, FaultKind } from "./faults.ts";
import { type Handlers, type Happened, Injection } from "./injection/injection.ts";
import { INSTANCE_FAULTS } from "./injection/instances.ts";
import { JOB_FAULTS } from "./injection/jobs.ts";
import { NODE_FAULTS } from "./injection/nodes.ts";
import { NOTICE_FAULTS } from "./injection/notices.ts";
import { patchPool, POOL_FAULTS } from "./injection/pools.ts";
import { PROCESS_FAULTS } from "./injection/processes.ts";
import { WIRE_FAULTS } from "./injection/wires.ts";
import type { World } from "./world.ts";

/** One for each kind: a kind without one does not compile. */
const HANDLERS: Handlers<FaultKind> = {
  ...NODE_FAULTS,
  ...NOTICE_FAULTS,
  ...INSTANCE_FAULTS,
  ...WIRE_FAULTS,
  ...PROCESS_FAULTS,
  ...POOL_FAULTS,
  ...JOB_FAULTS,
};

export class Injector {
  readonly #world: World;
  readonly #injection: Injection;

  constructor(world: World) {
    this.#world = world;
    this.#injection = new Injection(world);
  }

  /** When the last thing that is under way and cannot be called back has happened. */
  get quietAt(): Instant {
    return this.#injection.quietAt;
  }

  inject(fault: Fault): void {
    this.#world.log.add(`fault ${JSON.stringify(fault)}`);
    void this.#inject(fault).then(
      (happened) => happened && this.#world.troubles.took(fault.kind),
      (error: unknown) => {
        if (!(error instanceof RelevoError)) throw error;
        this.#world.log.add(`fault ${fault.kind} finds nothing: ${error.code}`);
      },
    );
  }

  /** Ends what still lasts. */
  heal(): void {
    this.#injection.heal();
    this.#world.controllers.disarm();
  }

  /** Evidence that waits is acted upon only in mode Act. */
  async turnOn(): Promise<void> {
    for (const pool of this.#world.scenario.pools) await patchPool(this.#world, pool, { disruption: { mode: "Act" } });
  }

  /** Ends drains that nobody else will end: the nodes beneath them are interrupted, with a notice. Says how many. */
  endDrains(nodes: ReadonlySet<string>): number {
    const { cluster, clock, scenario } = this.#world;
    let ended = 0;
    for (const { name, isReady } of cluster.provisioner.nodes()) {
      if (!nodes.has(name) || !isReady) continue; // one that is being deleted waits for the drain too
      const { instanceId, region, account } = cluster.provisioner.interrupt(name, { deadlineMs: scenario.leadMs });
      const event = { id: this.#injection.noticeId(), at: clock.now(), machineId: instanceId, region, account };
      this.#injection.post(spotInterruptionWarning(event));
      ended += 1;
    }
    return ended;
  }

  async #inject(fault: Fault): Promise<boolean> {
    const handler = HANDLERS[fault.kind] as (fault: Fault, injection: Injection) => Happened;
    return handler(fault, this.#injection);
  }
}
