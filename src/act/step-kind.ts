/**
 * A kind of step: one effect on the world, and the proof of it.
 *
 * 1. Everything that is needed is in the payload: whoever takes over after a crash understands the step alone.
 * 2. `act` may run any number of times with the same payload and step id, and the world ends as after once (I27).
 * 3. `act` re-reads the one object by name and works under preconditions; foreign state is left alone, and the outcome says so. A change that carries the UID and
 *    the resourceVersion of what the read model shows needs no look before it: the server compares, and what it refuses is read by name.
 * 4. Conflicts and network errors are not caught in `act`, but for that first refusal: the executor knows which can be tried again.
 * 5. A kind without a probe does not compile.
 */
import type { ZodType } from "zod";
import type { InstanceDriver } from "../drivers/port.ts";
import { RelevoError } from "../kernel/errors.ts";
import type { KubeApi } from "../kube/api.ts";
import type { KubeNode } from "../kube/types.ts";
import type { LeaseAccess } from "../model/protocol.ts";
import type { Change } from "../store/port.ts";

/** Says with what a process may renew its writer lease. The answer holds a secret: it is in no payload and no result. */
export interface LeaseIssuer {
  accessFor(pool: string, instance: string, bootId: string, ttlMs: number): LeaseAccess | undefined;
}

export interface StepPorts {
  readonly kube: KubeApi;
  readonly driver: InstanceDriver;
  /** Absent: no admission hands out a writer lease. */
  readonly leases?: LeaseIssuer | undefined;
  /** The node as the read model shows it, which may be old: good for a precondition, and for nothing else. Absent: nothing is kept. */
  readonly nodeSeen?: ((name: string) => KubeNode | undefined) | undefined;
  /** The step's id marks what it did. */
  readonly step: { readonly id: string };
}

/**
 * How a step ended. `done`: the effect is there. `superseded`: the world moved on, nothing was to be done any more. `failed`: it is not there and will not
 * be. `code` is snake_case and goes to the journal.
 */
export interface Outcome {
  readonly state: "done" | "superseded" | "failed";
  readonly code: string;
  readonly result?: unknown;
}

export const done = (code: string, result?: unknown): Outcome => ({ state: "done", code, ...(result === undefined ? {} : { result }) });
export const superseded = (code: string, result?: unknown): Outcome => ({
  state: "superseded",
  code,
  ...(result === undefined ? {} : { result }),
});
export const failed = (code: string, result?: unknown): Outcome => ({ state: "failed", code, ...(result === undefined ? {} : { result }) });

/** Whether the effect of a step is there already. */
export type Probe =
  | { readonly answer: "happened"; readonly code: string; readonly result?: unknown }
  | { readonly answer: "not" }
  /** Nothing that can be read would tell; acting again might do it twice. */
  | { readonly answer: "cannot_tell"; readonly why: string };

export const happened = (code: string, result?: unknown): Probe => ({
  answer: "happened",
  code,
  ...(result === undefined ? {} : { result }),
});
export const NOT_HAPPENED: Probe = { answer: "not" };

export interface StepKind<P> {
  /** Name and version, `cordon_node/1`: a payload of another shape is another version. */
  readonly kind: string;
  readonly schema: ZodType<P>;
  /** Committed together with the record of the step, before its effect. */
  begin?(payload: P): readonly Change[];
  /** Compare-and-sets without an effect, committed before each further attempt: what must still hold for the step to be wanted. */
  guard?(payload: P): readonly Change[];
  /** Kinds (with version) of steps of the same instance that must have ended before this one acts. */
  readonly after?: readonly string[];
  /** Acts in places of its own, which no step of another kind takes. */
  readonly isFirst?: boolean;
  act(payload: P, ports: StepPorts): Promise<Outcome>;
  probe(payload: P, ports: StepPorts): Promise<Probe>;
  /** Committed together with the end of the step. */
  settle(payload: P, outcome: Outcome): readonly Change[];
}

/** A kind with one payload: what the executor works with. */
export interface BoundStep {
  readonly kind: string;
  readonly after: readonly string[];
  readonly begin: readonly Change[];
  readonly guard: readonly Change[];
  readonly isFirst: boolean;
  act(ports: StepPorts): Promise<Outcome>;
  probe(ports: StepPorts): Promise<Probe>;
  settle(outcome: Outcome): readonly Change[];
}

export interface RegisteredKind {
  readonly kind: string;
  /** Throws `step_payload_invalid`. */
  bind(payload: unknown): BoundStep;
}

/** Forgets the payload's type behind a parse. */
export function register<P>(kind: StepKind<P>): RegisteredKind {
  return {
    kind: kind.kind,
    bind(payload: unknown): BoundStep {
      const parsed = kind.schema.safeParse(payload);
      if (!parsed.success) throw payloadInvalid(kind.kind, parsed.error.issues[0]);
      const value = parsed.data;
      return {
        kind: kind.kind,
        after: kind.after ?? [],
        begin: kind.begin?.(value) ?? [],
        guard: kind.guard?.(value) ?? [],
        isFirst: kind.isFirst ?? false,
        act: (ports) => kind.act(value, ports),
        probe: (ports) => kind.probe(value, ports),
        settle: (outcome) => kind.settle(value, outcome),
      };
    },
  };
}

function payloadInvalid(kind: string, issue: { readonly path: readonly PropertyKey[]; readonly message: string } | undefined): RelevoError {
  return new RelevoError("step_payload_invalid", `The payload of a step of kind ${kind} is not what that kind takes.`, {
    found: issue === undefined ? "unknown" : `${issue.path.map(String).join(".")}: ${issue.message}`,
    todo: "report it: the step was written by a faulty version",
  });
}
