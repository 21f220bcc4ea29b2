/**
 * Step ids: a base that the decision gives (`create/INSTANCE`, `cordon/NODE_UID/EVIDENCE`), and `#n` from the second attempt on. The same decision in the
 * same world has the same base; one that ended in vain is followed by the next number.
 */
import type { StepRecord } from "../model/step.ts";

export const stepIds = {
  create: (instance: string) => `create/${instance}`,
  protect: (podUid: string) => `protect/${podUid}`,
  unprotect: (podUid: string) => `unprotect/${podUid}`,
  cordon: (nodeUid: string, evidence: string) => `cordon/${nodeUid}/${evidence}`,
  /** The mark may be a further attempt; its `#` would read as one of this step. */
  uncordon: (nodeUid: string, cordonedBy: string) => `uncordon/${nodeUid}/${cordonedBy.replaceAll("#", ".")}`,
  prepare: (instance: string, incarnation: number) => `prepare/${instance}/${incarnation}`,
  admit: (instance: string, incarnation: number) => `admit/${instance}/${incarnation}`,
  /** A deadline that comes nearer is news for the process: another step. */
  drain: (instance: string, incarnation: number, loss: string, deadline: number | null) =>
    `drain/${instance}/${incarnation}/${loss}${deadline === null ? "" : `/${deadline}`}`,
  close: (instance: string, incarnation: number) => `close/${instance}/${incarnation}`,
  /** The same member is told the same again after it was told otherwise: `since` tells these decisions apart. */
  drainMember: (podUid: string, how: string, since: number) => `drain-member/${podUid}/${how}/${since}`,
  replaceMember: (podUid: string) => `replace-member/${podUid}`,
  delete: (instance: string) => `delete/${instance}`,
  /** The same number is wanted again and again: what was decided when tells these decisions apart. */
  scale: (uid: string, decidedAt: number, from: number, to: number) => `scale/${uid}/${decidedAt}/${from}-${to}`,
  removeOwner: (uid: string) => `remove-owner/${uid}`,
  deleteStranger: (instance: string) => `delete-stranger/${instance}`,
};

const ATTEMPT = /#(\d+)$/;

export function baseOf(id: string): string {
  return id.replace(ATTEMPT, "");
}

export function withAttempt(base: string, attempt: number): string {
  return attempt === 1 ? base : `${base}#${attempt}`;
}

/** The attempt of this base that the id is; undefined when it is none. */
export function attemptOf(base: string, id: string): number | undefined {
  if (id === base) return 1;
  return baseOf(id) === base ? Number(ATTEMPT.exec(id)?.[1]) : undefined;
}

/** Whether the id is any attempt of this base. */
export function isAttemptOf(base: string, id: string | undefined): boolean {
  return id !== undefined && attemptOf(base, id) !== undefined;
}

/** The newest of the attempts of this base, whatever became of it. */
export function newestAttempt(
  base: string,
  steps: readonly StepRecord[],
): { readonly attempt: number; readonly step: StepRecord } | undefined {
  let newest: { attempt: number; step: StepRecord } | undefined;
  for (const step of steps) {
    const attempt = attemptOf(base, step.id);
    if (attempt !== undefined && (newest === undefined || attempt > newest.attempt)) newest = { attempt, step };
  }
  return newest;
}
