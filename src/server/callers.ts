/**
 * Who calls, and whether that one may. A caller is a person (or a program of theirs) with a role, or a part of Relevo whose token is bound to itself: a gateway
 * replica speaks for itself alone, an agent for its node alone.
 */
import { RelevoError } from "../kernel/errors.ts";
import { isRole, mayActAs, type Need, type Role, roleFor } from "./roles.ts";

export type Caller =
  | {
      readonly kind: "person";
      /** Null: whoever has the one token, or is on this machine; what they call themselves is not verified. */
      readonly name: string | null;
      /** Null: known, and may do nothing. */
      readonly role: Role | null;
    }
  /** `replica`: the name that its replica ids begin with; null when its token is bound to no replica. */
  | { readonly kind: "gateway"; readonly name: string; readonly replica: string | null }
  | { readonly kind: "agent"; readonly name: string; readonly node: string | null };

/** What a route can ask a token for. */
export type TokenNeed = Exclude<Need, "public" | "instance">;

export interface Authenticator {
  /** Undefined: not a token that it knows. Throws the retryable `auth_unavailable` when it cannot tell. */
  identify(token: string, need: TokenNeed): Promise<Caller | undefined>;
}

/** Without tokens only programs on this machine get here, and they may do everything. */
export const ANYBODY_HERE: Caller = { kind: "person", name: null, role: "admin" };

/** The first that knows the token; asked in order. */
export function firstOf(authenticators: readonly Authenticator[]): Authenticator {
  return {
    async identify(token, need) {
      for (const each of authenticators) {
        const caller = await each.identify(token, need);
        if (caller !== undefined) return caller;
      }
      return undefined;
    },
  };
}

/** Throws `role_missing`, which names what is needed and what the caller is. */
export function assertMay(caller: Caller, need: TokenNeed, route: string): void {
  const role = roleFor(need);
  switch (caller.kind) {
    case "person":
      if (caller.role !== null && mayActAs(caller.role, role)) return;
      break;
    case "gateway":
      if (need === "gateway") return;
      break;
    case "agent":
      if (need === "sender") return;
      break;
    default:
      caller satisfies never;
  }
  throw new RelevoError("role_missing", `This needs ${describeNeed(need)}, which ${describeCaller(caller)} has not.`, {
    found: caller.kind === "person" ? (caller.role ?? "no role") : caller.kind,
    allowed: describeNeed(need),
    todo: `ask an admin of Relevo for the role (${route}; docs/security.md)`,
  });
}

function describeNeed(need: TokenNeed): string {
  if (isRole(need)) return `the role ${need}`;
  return need === "gateway"
    ? "the token of a gateway replica or the role admin"
    : "the token of an agent, a signature, or the role operator";
}

export function describeCaller(caller: Caller): string {
  switch (caller.kind) {
    case "person":
      return caller.name ?? "this caller";
    case "gateway":
      return `the gateway ${caller.name}`;
    case "agent":
      return `the agent ${caller.name}`;
    default:
      return caller satisfies never;
  }
}

/** For notes and logs: the proven name; where there is none, what the caller says of itself. */
export function nameOf(caller: Caller, said: string | undefined): string {
  return caller.name ?? said ?? "unknown";
}

/** Throws `replica_not_yours`: a gateway that speaks for another could let a seal pass that the other still holds up. */
export function assertOwnReplica(caller: Caller, replica: string): void {
  if (caller.kind !== "gateway" || (caller.replica !== null && isReplicaOf(replica, caller.replica))) return;
  throw new RelevoError("replica_not_yours", `Replica ${replica} is another's: ${describeCaller(caller)} may not speak for it.`, {
    found: replica,
    allowed: caller.replica === null ? "none: its token is bound to no replica" : `${caller.replica}, or ${caller.replica}-<id>`,
    todo: "start it with --replica NAME (POD_NAME in a cluster): the name that its token is bound to",
  });
}

/** Throws `node_not_yours`. */
export function assertOwnNode(caller: Caller, node: string): void {
  if (caller.kind !== "agent" || caller.node === node) return;
  throw new RelevoError("node_not_yours", `Node ${node} is another's: ${describeCaller(caller)} may not speak for it.`, {
    found: node,
    allowed: caller.node ?? "none: its token is bound to no node",
  });
}

/** A replica's id is its name, or its name, a dash and one word of ten characters or more, new at each start: a longer name of another replica is neither. */
function isReplicaOf(replica: string, name: string): boolean {
  return replica === name || (replica.startsWith(`${name}-`) && /^[a-z0-9]{10,}$/.test(replica.slice(name.length + 1)));
}
