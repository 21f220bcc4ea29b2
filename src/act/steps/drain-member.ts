/**
 * Tells one member of a cluster to take no new work, or to take it again. Its pod is read by name first: what listens at its address may be another one's by now.
 */
import { z } from "zod";
import type { MemberState } from "../../drivers/port.ts";
import { isRetryable, RelevoError } from "../../kernel/errors.ts";
import { done, failed, happened, NOT_HAPPENED, type StepKind, type StepPorts, superseded } from "../step-kind.ts";
import { podRefSchema } from "./objects.ts";
import { absenceOf, findPod, memberTargetSchema } from "./process.ts";

const drainMemberSchema = z.object({
  instance: z.string(),
  /** The id of the evidence for it. */
  evidence: z.string(),
  how: z.enum(["reversible", "final", "back"]),
  process: z.object({ pod: podRefSchema, containerId: z.string(), target: memberTargetSchema }),
});
export type DrainMember = z.infer<typeof drainMemberSchema>;

const OUTCOMES = { reversible: "member_drains", final: "member_ends", back: "member_works" } as const;

const REACHED: Readonly<Record<DrainMember["how"], readonly MemberState[]>> = {
  reversible: ["draining", "drained"],
  final: ["shutting_down", "gone"],
  back: ["active"],
};

export const drainMember: StepKind<DrainMember> = {
  kind: "drain_member/1",
  schema: drainMemberSchema,

  async act({ how, process }, { kube, driver }) {
    const absence = absenceOf(process, await findPod(kube, process));
    if (absence !== undefined) return superseded(absence);
    if (driver.drainMember === undefined || driver.resumeMember === undefined) return failed("not_spoken");
    try {
      await (how === "back" ? driver.resumeMember(process.target) : driver.drainMember(process.target, how));
    } catch (error) {
      if (error instanceof RelevoError && error.code === "wrong_state") return superseded("wrong_state"); // it ends for good
      throw error;
    }
    return done(OUTCOMES[how]);
  },

  /** It says itself what it does. One that gives no answer is called again, and its pod looked for. */
  async probe({ how, process }, { driver }) {
    const state = await stateOf(process.target, driver);
    return state !== undefined && REACHED[how].includes(state) ? happened(OUTCOMES[how]) : NOT_HAPPENED;
  },

  settle: () => [],
};

async function stateOf(target: DrainMember["process"]["target"], driver: StepPorts["driver"]): Promise<MemberState | undefined> {
  try {
    return await driver.memberState?.(target);
  } catch (error) {
    if (isRetryable(error)) return undefined;
    throw error;
  }
}
