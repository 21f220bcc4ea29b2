/**
 * Makes a standby warm: the process is told to prepare, and its health is asked after that, so that what it prepared is covered. It takes no traffic; the
 * admission that may follow one day asks both again.
 */
import { z } from "zod";
import { done, NOT_HAPPENED, type StepKind, superseded } from "../step-kind.ts";
import { callProcess, isOutcome, processSchema } from "./process.ts";

const prepareInstanceSchema = z.object({
  instance: z.string(),
  incarnation: z.int().min(1),
  process: processSchema,
});
export type PrepareInstance = z.infer<typeof prepareInstanceSchema>;

export const prepareInstance: StepKind<PrepareInstance> = {
  kind: "prepare_instance/1",
  schema: prepareInstanceSchema,

  guard: ({ instance }) => [{ kind: "update_instance", instance, phase: "validating", set: {} }],

  async act({ process }, ports) {
    const prepared = await callProcess(process, ports, null, (target, call) => ports.driver.prepare(target, call));
    if (isOutcome(prepared)) return prepared;
    const health = await ports.driver.health({ ...process.target, bootId: prepared.bootId });
    return health.ok ? done("prepared", { bootId: prepared.bootId }) : superseded("not_healthy");
  },

  /** The same key is answered as it was first: telling it again is the probe. */
  async probe() {
    return NOT_HAPPENED;
  },

  settle: ({ instance, incarnation }, outcome) =>
    outcome.state === "done" ? [{ kind: "move_instance", instance, incarnation, from: "validating", to: "standby" }] : [],
};
