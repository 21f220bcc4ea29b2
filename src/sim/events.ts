/** What the checkers hear of a simulation: every commit, every call of the API and of an instance, every request that is sent to one. */
import type { KubeObject, ListOptions, ObjectRef, ResourceType, WatchEvent } from "../kube/api.ts";
import type { Instant } from "../kernel/clock.ts";
import type { Epoch } from "../kernel/epoch.ts";
import type { PoolDocument } from "../model/pool.ts";
import type { Member, MemberReport, RouteCounts } from "../model/membership.ts";
import type { Plan } from "../plan/decision.ts";
import type { EvacuationInput, EvacuationPlan } from "../plan/evacuation/types.ts";
import type { PoolSnapshot } from "../plan/snapshot.ts";
import type { Authority, Change, PoolRows } from "../store/port.ts";

export type WriteMethod = "create" | "replace" | "patch" | "patchStatus" | "patchScale" | "delete" | "evict";

export type SimEvent =
  | { readonly type: "claimed"; readonly process: string; readonly authority: Authority }
  /** A commit that the store applied. */
  | {
      readonly type: "committed";
      readonly process: string;
      readonly authority: Authority;
      readonly changes: readonly Change[];
      readonly now: Instant;
      /** By the clock of the simulation: when the process asked for it. What was asked for before something was heard could not heed it. */
      readonly askedAt: Instant;
    }
  | { readonly type: "rows_read"; readonly process: string; readonly rows: PoolRows }
  /** An old backup was restored: this is all that the store knows. */
  | { readonly type: "store_rewound"; readonly pools: readonly PoolRows[] }
  /** A pass of a pool: what was seen, and what was planned from it. */
  | { readonly type: "planned"; readonly process: string; readonly snapshot: PoolSnapshot; readonly plan: Plan; readonly at: Instant }
  /** The schedule of an evacuation over all pools. */
  | { readonly type: "scheduled"; readonly process: string; readonly input: EvacuationInput; readonly plan: EvacuationPlan }
  /** A write that the API server applied: `before` and `after` are undefined where there is none. */
  | {
      readonly type: "api_write";
      readonly process: string;
      readonly method: WriteMethod;
      readonly ref: ObjectRef;
      readonly body: unknown;
      readonly before: KubeObject | undefined;
      readonly after: KubeObject | undefined;
    }
  | { readonly type: "api_list"; readonly process: string; readonly of: ResourceType; readonly options: ListOptions }
  /** A controller that stood still: what it did not hear meanwhile was silence to it. */
  | { readonly type: "went_on"; readonly process: string }
  | { readonly type: "api_trouble"; readonly process: string; readonly of: ResourceType }
  /** A write that was refused as one upon old state: its method and object. */
  | { readonly type: "api_conflict"; readonly process: string; readonly what: string }
  | { readonly type: "watch_line"; readonly process: string; readonly of: ResourceType; readonly line: WatchEvent }
  | { readonly type: "listed"; readonly process: string; readonly of: ResourceType; readonly items: readonly KubeObject[] }
  /** An instance did what a step asked for; a repetition that it only answered is none. */
  | { readonly type: "instance_performed"; readonly bootId: string; readonly call: string; readonly step: string }
  | { readonly type: "instance_ended"; readonly podName: string; readonly bootId: string; readonly obligations: number }
  /** A gateway replica sends a request to a process. */
  | {
      readonly type: "dispatched";
      readonly replica: string;
      readonly instance: string;
      readonly incarnation: number;
      readonly bootId: string | null;
      readonly passedCheckAt: Instant | null;
      readonly state: string | null;
      /** Since it runs, or since the replica that stood still goes on. */
      readonly processAgeMs: number;
    }
  /** A result under a writer lease was taken where it lands, or refused there as stale. */
  | { readonly type: "landed"; readonly workload: string; readonly epoch: string; readonly bootId: string }
  | { readonly type: "landing_refused"; readonly workload: string; readonly epoch: string; readonly bootId: string }
  /** A holder asked at `sentAt` and was told that it may write for `ttlMs` from then on, whether it heard it or not. */
  | { readonly type: "lease_renewed"; readonly bootId: string; readonly sentAt: Instant; readonly ttlMs: number }
  /** A gateway replica has applied what it was sent for a route: `writers` as it was sent. */
  | {
      readonly type: "membership_applied";
      readonly replica: string;
      readonly route: string;
      readonly generation: Epoch;
      readonly writers: readonly { readonly ordinal: number; readonly minAccepted: Epoch }[];
    }
  /** A gateway replica passes on an answer that bears an epoch, or refuses it as stale. */
  | {
      readonly type: "answer_landed" | "answer_refused";
      readonly replica: string;
      readonly route: string;
      /** As the replica has it: one that is cut off may have a former place of the process. */
      readonly ordinal: number;
      /** As the process has it. */
      readonly workload: string | null;
      readonly epoch: Epoch;
      readonly bootId: string;
    }
  | { readonly type: "counted"; readonly replica: string; readonly route: string; readonly counts: RouteCounts }
  /** Two workers ended it, and both ends counted. */
  | { readonly type: "job_ended_again"; readonly pool: string; readonly job: string }
  | { readonly type: "unhandled"; readonly error: string };

/** Of the pool that scales. */
export interface TrueJobs {
  /** `namespace/name`. */
  readonly pool: string;
  /** For how long more of its busy slots do nothing than its policy lets pass. */
  readonly stuckForMs: number;
  /** For how long its signal lies. */
  readonly lyingForMs: number;
  /** The controller cannot ask all workers. */
  readonly isUnseen: boolean;
  /** Of the busy slots of workers that answer. */
  readonly longestQuietMs: number;
  /** Slots that say that they are busy, and no job has them. */
  readonly leakedSlots: number;
}

export type Observe = (event: SimEvent) => void;

/** What a gateway replica has of an instance, and what it does with it. */
export type Held = MemberReport & {
  readonly replica: string;
  readonly state: Member["state"];
  /** Nothing goes through between the replica and the controller. */
  readonly isCutOff: boolean;
};

export interface TrueProcess {
  readonly podName: string;
  readonly bootId: string;
  /** Whoever reaches its address is answered. */
  readonly answers: boolean;
  /** Its check passes. */
  readonly isWell: boolean;
  /** Once or more: what it began before that it may end at any time. */
  readonly hasStoodStill: boolean;
  /** It is made not to stop itself. */
  readonly defiesLease: boolean;
}

/** What a checker may look at beside the events: the truth, not what anybody believes. */
export interface Truth {
  readonly now: () => Instant;
  /** By `namespace/name`. */
  readonly pool: (key: string) => PoolDocument | undefined;
  readonly pods: () => readonly KubeObject[];
  readonly objects: (type: ResourceType) => readonly KubeObject[];
  /** What all gateway replicas that run hold of an instance's incarnation. */
  readonly held: (instance: string, incarnation: number) => readonly Held[];
  /** Of instances, all that run. */
  readonly processes: () => readonly TrueProcess[];
  /** Some gateway replica reaches no instance. */
  readonly isGatewayBlind: () => boolean;
  readonly epoch: (pool: string) => Epoch | undefined;
  /** Null: no pool of the run scales. */
  readonly jobs: () => TrueJobs | null;
}
