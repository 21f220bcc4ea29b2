/**
 * How far a key has come, judged by what was seen at each hop (T1, T2, T15, T18). Pure.
 *
 * 1. A hop counts only when the one before it holds: what the process has by chance was not delivered by anybody.
 * 2. What the process says itself beats what may be concluded from files and times. A file in the pod alone is `delivered`.
 * 3. What could not be read is never taken for what it should be: the state stays at the last hop that was seen (I24).
 * 4. An operator that has seen the declaration and rendered something else, or nothing, has dropped it. One that is paused has not seen what was declared since: `stale`.
 */
import type { Instant } from "../../kernel/clock.ts";
import type { EffectState, KeyKind } from "../../model/effect.ts";
import { isSameValue } from "./same-value.ts";

/** `absent`: it was looked for and is not there. `unread`: nobody could look. */
export type Seen =
  | { readonly seen: "value"; readonly value: string; readonly where: string }
  /** `hasFile`: the file is there without it. */
  | { readonly seen: "absent"; readonly where: string; readonly hasFile?: boolean }
  | { readonly seen: "unread"; readonly where: string };

/** What proves that a process has a key, by its kind. */
export type ProcessSays =
  | { readonly says: "value"; readonly value: string; readonly where: string }
  /** Asked for where it would be told, and it is not there. */
  | { readonly says: "absent"; readonly where: string }
  /** A call that only the key allows; files that only the key puts there. */
  | { readonly says: "happened" | "not"; readonly where: string }
  /** It does not tell such keys, or was not able to. */
  | { readonly says: "nothing"; readonly where: string };

export interface Owner {
  /** `TrinoCluster trino-a`. */
  readonly name: string;
  readonly isPaused: boolean;
  /** It has not looked at the newest declaration yet. */
  readonly isBehind: boolean;
}

export interface Evidence {
  readonly kind: KeyKind;
  readonly declared: string;
  /** Who renders the declaration into other objects; null: what is declared is the object. */
  readonly owner: Owner | null;
  readonly rendered: Seen;
  readonly delivered: Seen;
  /** The instance was made from another blueprint than that of today. */
  readonly isMadeBefore: boolean;
  /** When what the process reads got its present value, at the latest; null: unknown. */
  readonly changedAt: Instant | null;
  /** Of the process, at the earliest; null: nobody says, or there is none. */
  readonly startedAt: Instant | null;
  readonly process: ProcessSays;
}

export interface Verdict {
  readonly state: EffectState;
  readonly message: string;
  readonly todo: string | null;
}

const RESTART = "restart its instances through the ordinary lifecycle: relevo check POOL --restart";

export function judge(seen: Evidence): Verdict {
  return judgeRendered(seen) ?? judgeDelivered(seen) ?? judgeEffective(seen);
}

const verdict = (state: EffectState, message: string, todo: string | null = null): Verdict => ({ state, message, todo });

function judgeRendered({ declared, owner, rendered, isMadeBefore }: Evidence): Verdict | undefined {
  if (rendered.seen === "value" && isSameValue(rendered.value, declared)) return undefined;
  const found = rendered.seen === "value" ? `${rendered.where} has ${rendered.value}` : `${rendered.where} has nothing of it`;
  if (rendered.seen === "unread") return verdict("declared", `${rendered.where} could not be read`, "see why, then check again");
  if (owner?.isPaused === true)
    return verdict("stale", `${owner.name} is paused, so what was declared since has no effect: ${found}`, "let its owner resume it");
  if (owner?.isBehind === true) return verdict("declared", `${owner.name} has not looked at it yet: ${found}`, "wait for its operator");
  if (owner !== null)
    return verdict(
      "dropped",
      `${owner.name} accepted it and rendered something else: ${found}`,
      "its operator knows no such setting: docs/check.md",
    );
  if (isMadeBefore) return verdict("stale", `the instance was made before the change: ${found}`, RESTART);
  return verdict("declared", found, "somebody changed the object after Relevo had made it: see who, and replace the instance");
}

function judgeDelivered({ kind, declared, delivered, rendered, changedAt, startedAt, process }: Evidence): Verdict | undefined {
  switch (delivered.seen) {
    case "value":
      if (isSameValue(delivered.value, declared)) return undefined;
      return verdict("stale", `the pod has ${delivered.value}, as it was before the change: ${delivered.where}`, RESTART);
    case "absent":
      if (delivered.hasFile === true)
        return verdict("stale", `the pod has its file as it was before the change: ${delivered.where}`, RESTART);
      return verdict(
        "rendered",
        `no file of the pod has it: ${delivered.where}`,
        "mount what was rendered where the process reads it: docs/check.md",
      );
    case "unread":
      // Who says it itself needs no file.
      if (process.says === "value" || process.says === "happened") return undefined;
      if (isOld(changedAt, startedAt)) return verdict("stale", `the process is older than the change of ${rendered.where}`, RESTART);
      return verdict("rendered", unreadWhy(kind, delivered, process), "nothing here can read it: docs/check.md says what can");
    default:
      return delivered satisfies never;
  }
}

function unreadWhy(kind: KeyKind, delivered: Seen, process: ProcessSays): string {
  const says = process.says === "not" ? `and ${process.where}` : `and the process does not say it: ${process.where}`;
  return kind === "config" ? `the file was not read (${delivered.where})` : `the file was not read (${delivered.where}), ${says}`;
}

function judgeEffective(seen: Evidence): Verdict {
  const { kind, declared, process, changedAt, startedAt } = seen;
  switch (process.says) {
    case "value":
      if (isSameValue(process.value, declared))
        return isOld(changedAt, startedAt) && kind === "config"
          ? verdict("stale", `the process has the value, but is older than the change: ${process.where}`, RESTART)
          : verdict("effective", `the process has it: ${process.where}`);
      return unlike(seen, `the process has ${process.value}: ${process.where}`);
    case "absent":
      return unlike(seen, `the process has nothing of it: ${process.where}`);
    case "happened":
      return verdict("effective", process.where);
    case "not":
      return isOld(changedAt, startedAt)
        ? verdict("stale", `the process is older than the change, and ${process.where}`, RESTART)
        : verdict("delivered", process.where, "the file is there and does not do what it says: read the server's log");
    case "nothing":
      return kind === "config"
        ? judgeStart(seen)
        : verdict("delivered", `a file alone proves nothing: ${process.where}`, "docs/check.md says what proves it");
    default:
      return process satisfies never;
  }
}

/** A process that reads a file once, at its start, has what was in it then. */
function judgeStart({ changedAt, startedAt, process }: Evidence): Verdict {
  if (startedAt === null)
    return verdict("delivered", `nobody says when the process started: ${process.where}`, "see why, then check again");
  if (changedAt === null) return verdict("delivered", "nobody says when it changed", "see why, then check again");
  return isOld(changedAt, startedAt)
    ? verdict("stale", "the file changed after the process had started", RESTART)
    : verdict("effective", "the process started after the change, with this file");
}

function unlike({ changedAt, startedAt }: Evidence, found: string): Verdict {
  // Newer than the change and yet unlike it: it read another file, or something in it counts more.
  if (changedAt !== null && startedAt !== null && !isOld(changedAt, startedAt))
    return verdict("dropped", `${found}, though it started after the change`, "another file or setting counts more: read the server's log");
  return verdict("stale", found, RESTART);
}

function isOld(changedAt: Instant | null, startedAt: Instant | null): boolean {
  return changedAt !== null && startedAt !== null && startedAt < changedAt;
}
