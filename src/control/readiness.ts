/** Whether this controller can do its work: the cluster and the store are read, and each pool was looked at. */
import type { Readiness } from "../server/control-plane.ts";
import type { ControlPlaneParts } from "./control-plane.ts";

export async function readinessOf({
  world,
  store: rows,
  pools: known,
  controller,
}: Pick<ControlPlaneParts, "world" | "store" | "pools" | "controller">): Promise<Readiness> {
  const trouble = world.trouble() ?? world.ownersTrouble();
  const store = await rows.listPools().then(
    () => undefined,
    (error: unknown) => (error instanceof Error ? error.message : String(error)),
  );
  const waiting = known.list().filter(({ key }) => controller.isMine(key) && !controller.lastPass(key)).length;
  // A store that can be read may still take nothing.
  const troubles = known.list().flatMap(({ key }) => controller.troubleOf(key) ?? []);
  const pools = waiting > 0 ? `${waiting} wait for their first pass` : "each was looked at";
  const checks = [
    {
      name: "cluster",
      ok: trouble === undefined,
      message: trouble === undefined ? "its objects are in step" : `cannot be read: ${trouble}`,
    },
    { name: "store", ok: store === undefined, message: store ?? "answers" },
    { name: "pools", ok: waiting === 0 && troubles.length === 0, message: [pools, ...new Set(troubles)].slice(0, 4).join("; ") },
  ];
  return { ready: checks.every(({ ok }) => ok), checks };
}
