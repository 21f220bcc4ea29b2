/** An instance as the store keeps it. */
import type { Instant } from "../kernel/clock.ts";
import type { Epoch } from "../kernel/epoch.ts";
import type { Loss, Phase, Seal, Trust } from "./phase.ts";

export const PURPOSES = ["fill", "replace", "standby"] as const;
/** Why it was made: to have as many as desired, to take over from one that must go, or to be there for whoever must go next. */
export type Purpose = (typeof PURPOSES)[number];

/** A standby holds no place of its pool: it gets that of the one that it takes over from. */
export const NO_ORDINAL = -1;

/** Which process an instance is right now: (pod UID, container id, boot id) of its lead pod. */
export interface Incarnation {
  /** Rises with each new process, from 1; 0 before the first is seen. */
  readonly number: number;
  readonly podName: string | null;
  readonly podUid: string | null;
  readonly containerId: string | null;
  readonly bootId: string | null;
  readonly nodeName: string | null;
  readonly nodeUid: string | null;
  readonly host: string | null;
  readonly port: number | null;
}

export interface InstanceRecord {
  readonly id: string;
  /** `namespace/name`. */
  readonly pool: string;
  /** `NO_ORDINAL` of a standby. */
  readonly ordinal: number;
  readonly purpose: Purpose;
  /** The instance that this one takes over from. */
  readonly replaces: string | null;
  readonly phase: Phase;
  readonly phaseSince: Instant;
  readonly createdAt: Instant;
  readonly trust: Trust;
  readonly incarnation: Incarnation;
  readonly blueprintHash: string;
  /** The objects that the create step made, each with its UID, the lead first; empty before. */
  readonly objects: readonly OwnedObject[];
  /** The generation in which it was admitted, and in which its drain was committed. */
  readonly admittedGeneration: Epoch | null;
  readonly drainGeneration: Epoch | null;
  readonly drainLoss: Loss | null;
  readonly drainSince: Instant | null;
  readonly drainDeadline: Instant | null;
  readonly seal: Seal | null;
  /** Of a failed candidate: why. */
  readonly failure: string | null;
  readonly failedAt: Instant | null;
}

export interface OwnedObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}
