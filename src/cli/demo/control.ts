/**
 * The control: the same acts with `disruption.mode: Off`, gateway and embedded cluster unchanged. The nodes go when their owner takes them, the drifted one
 * too, and nobody moves anything out of the way. It must lose work, or the demo proves nothing.
 */
import { LoadProcess } from "./load/client-process.ts";
import type { LoadOptions } from "./load/client.ts";
import type { ActResult } from "./load/tally.ts";
import { ACTS, type Stage } from "./acts.ts";

/** Nobody listens to the notice here, so that a shorter one shows the same. */
const DEADLINE_MS = 5_000;
const BETWEEN_MS = 1_500;

/** `stage.pool` is the pool that is left alone; it has a load of its own. */
export async function playControl(stage: Stage, load: LoadOptions): Promise<ActResult> {
  const { world, pool, clock, supervisor, signal, tell, progress } = stage;
  const own = await LoadProcess.start(load);
  try {
    await own.startAct("control");
    await clock.sleep(2_000, signal);
    const hit = new Set<string>();
    for (const act of ACTS) {
      const { node, instance } = await world.victim(pool, hit);
      hit.add(node.name);
      tell(`control, ${act}: ${node.name} with ${instance}`);
      if (act === "voluntary") await world.drift(node.name);
      else if (act === "deadline") await world.interrupt(node.name, DEADLINE_MS);
      else await world.kill(node.name);
      if (act === "controller") {
        const restarted = supervisor.whenRestarted("controller");
        const pid = supervisor.pidOf("controller");
        if (pid !== undefined) process.kill(pid, "SIGKILL");
        await restarted;
      }
      await clock.sleep(BETWEEN_MS, signal);
      progress("control", await own.snapshot());
    }
    await clock.sleep(DEADLINE_MS, signal);
    return (await own.endAct("control")).result;
  } finally {
    await own.stop();
  }
}
