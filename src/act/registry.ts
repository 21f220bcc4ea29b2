/** All kinds of steps that this version can finish. A release finishes those of the previous minor: their files stay until then. */
import { type RegisteredKind, register } from "./step-kind.ts";
import { admitInstance } from "./steps/admit-instance.ts";
import { closeInstance } from "./steps/close-instance.ts";
import { cordonNode } from "./steps/cordon-node.ts";
import { createInstance } from "./steps/create-instance.ts";
import { deleteInstance } from "./steps/delete-instance.ts";
import { deleteStranger } from "./steps/delete-stranger.ts";
import { drainInstance } from "./steps/drain-instance.ts";
import { drainMember } from "./steps/drain-member.ts";
import { prepareInstance } from "./steps/prepare-instance.ts";
import { replaceMember } from "./steps/replace-member.ts";
import { removeScaleOwner } from "./steps/remove-scale-owner.ts";
import { scaleTarget } from "./steps/scale-target.ts";
import { protectPod } from "./steps/protect-pod.ts";
import { unprotectPod } from "./steps/unprotect-pod.ts";
import { uncordonNode } from "./steps/uncordon-node.ts";

export type StepRegistry = ReadonlyMap<string, RegisteredKind>;

export function registryOf(kinds: readonly RegisteredKind[]): StepRegistry {
  return new Map(kinds.map((kind) => [kind.kind, kind]));
}

export const STEP_KINDS: StepRegistry = registryOf([
  register(createInstance),
  register(protectPod),
  register(unprotectPod),
  register(cordonNode),
  register(uncordonNode),
  register(prepareInstance),
  register(admitInstance),
  register(drainInstance),
  register(closeInstance),
  register(drainMember),
  register(replaceMember),
  register(deleteInstance),
  register(deleteStranger),
  register(scaleTarget),
  register(removeScaleOwner),
]);
