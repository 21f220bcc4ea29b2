/**
 * How the executor and the observer talk to an instance: one driver per kind of workload. A driver translates and never decides; every call is bounded in
 * time and fails with a RelevoError whose class says what may be done about it.
 */
import type { Instant } from "../kernel/clock.ts";
import type { Slots } from "../model/slots.ts";
import type { Health, Identity as ServiceIdentity, LeaseAccess, Obligations, ProtocolAnswer } from "../model/protocol.ts";

export interface InstanceTarget {
  readonly host: string;
  readonly port: number;
  /** Of the process that is meant; null before its identity was read. */
  readonly bootId: string | null;
  /** `none`: an instance without the protocol, judged by its container id and the gateway's counts. */
  readonly protocol: "relevo/v1" | "none" | "trino/v1";
  /** Of an instance without the protocol: `GET` answers 2xx when it can take work. */
  readonly healthPath: string;
  /** Of a Trino cluster: as whom it is asked, and how many workers its blueprint declares. Of a member: as whom it is asked. */
  readonly trino?:
    | {
        readonly user: string;
        readonly workers: number;
        /** Where its workers are, as far as that is known: they say themselves why they do not belong to the cluster. */
        readonly members?: readonly { readonly host: string; readonly port: number }[] | undefined;
      }
    | undefined;
}

/** Where a member's own process is: of a Trino cluster one of its workers. */
export type MemberTarget = Pick<InstanceTarget, "host" | "port" | "trino">;

/** `gone`: nothing listens there any more. */
export type MemberState = "active" | "draining" | "drained" | "shutting_down" | "gone";

export interface InstanceCall {
  /** The step that calls; the same step gets the same answer. */
  readonly step: string;
  readonly bootId: string;
  /** Of a drain: when it must be over; null: as long as the work lasts. */
  readonly deadline: Instant | null;
  /** Of an admission to a pool with a writer lease. The token in it is a secret. */
  readonly lease?: LeaseAccess;
}

/** As the protocol `relevo/v1` says it; of another protocol under that one's name. */
export type Identity = Omit<ServiceIdentity, "protocol"> & { readonly protocol: ServiceIdentity["protocol"] | "trino/v1" };

export type InstanceHealth = Health | { readonly ok: boolean; readonly bootId: null; readonly reason: string | null };

/** What a call came to: the instance's answer, or nothing because it does not speak the protocol. */
export type CallOutcome = { readonly kind: "answered"; readonly answer: ProtocolAnswer } | { readonly kind: "not_spoken" };

/**
 * Errors: `instance_unreachable` (retryable: provably not connected), `instance_timeout` and `instance_connection_lost` (retryable: it may or may not have
 * happened; the same step can be sent again), `boot_id_mismatch`, `wrong_state`, `step_conflict` (conflict), `instance_failed` (retryable: 5xx),
 * `instance_refused` (terminal: another 4xx), `instance_answer_invalid` (terminal: not the protocol).
 */
export interface InstanceDriver {
  /** Null when the instance does not speak the protocol. */
  identity(target: InstanceTarget): Promise<Identity | null>;
  /** An instance that says it is not well is an answer, not an error. */
  health(target: InstanceTarget): Promise<InstanceHealth>;
  /** Of the process that `target.bootId` names, when it does. Null when the instance does not speak the protocol: the gateway's counts are all there is. */
  obligations(target: InstanceTarget): Promise<Obligations | null>;
  /** Of a worker; null when it does not speak the protocol, or not this call of it. */
  slots(target: InstanceTarget): Promise<Slots | null>;
  prepare(target: InstanceTarget, call: InstanceCall): Promise<CallOutcome>;
  admit(target: InstanceTarget, call: InstanceCall): Promise<CallOutcome>;
  drain(target: InstanceTarget, call: InstanceCall): Promise<CallOutcome>;
  close(target: InstanceTarget, call: InstanceCall): Promise<CallOutcome>;
  /**
   * Tells one member to take no new work: `reversible` finishes what it has and stays, `final` ends after that. Telling it what it does already changes
   * nothing. Errors besides the above: `trino_shutdown_forbidden` (terminal), `wrong_state` (conflict: it shuts down, which nothing takes back).
   */
  drainMember?(target: MemberTarget, how: "reversible" | "final"): Promise<void>;
  /** Takes a reversible drain back. */
  resumeMember?(target: MemberTarget): Promise<void>;
  /** Read from the member itself: what the lead says of it lags. */
  memberState?(target: MemberTarget): Promise<MemberState>;
}
