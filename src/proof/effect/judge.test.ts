import { describe, expect, test } from "vitest";
import type { EffectState } from "../../model/effect.ts";
import { type Evidence, judge, type Seen } from "./judge.ts";
import { isSameValue } from "./same-value.ts";

const value = (text: string, where: string): Seen => ({ seen: "value", value: text, where });
const CHANGED = 1_000_000;
const OWNER = { name: "TrinoCluster t", isPaused: false, isBehind: false };

/** Delivered as it was declared, and nothing asked of the process, which is newer than the change. */
function evidence(change: Partial<Evidence>): Evidence {
  return {
    kind: "config",
    declared: "600MB",
    owner: null,
    isMadeBefore: false,
    rendered: value("600MB", "ConfigMap c"),
    delivered: value("600MB", "etc/config.properties in pod p"),
    changedAt: CHANGED,
    startedAt: CHANGED + 60_000,
    process: { says: "nothing", where: "it does not tell such keys" },
    ...change,
  };
}

const ABSENT: Seen = { seen: "absent", where: "ConfigMap c" };
const UNREAD: Seen = { seen: "unread", where: "no exec" };
const says = (text: string) => ({ says: "value" as const, value: text, where: "SHOW SESSION" });
const happened = { says: "happened" as const, where: "3 files were listed during query q" };
const not = { says: "not" as const, where: "no file was listed during query q" };
const absent = { says: "absent" as const, where: "its command line" };

describe("how far a key has come (T1)", () => {
  test.each<[string, Partial<Evidence>, EffectState]>([
    ["a config file counts when the process started after its change", {}, "effective"],
    ["and is stale in a process that is older (T15)", { startedAt: CHANGED - 60_000 }, "stale"],
    ["or began at any time before it (T15)", { startedAt: CHANGED - 1 }, "stale"],
    ["nobody says when the process started: delivered", { startedAt: null }, "delivered"],
    ["nobody says when it changed: delivered", { changedAt: null }, "delivered"],
    ["a process that says otherwise is believed", { process: says("300MB") }, "dropped"],
    ["and an old one that says otherwise is stale", { process: says("300MB"), startedAt: CHANGED - 1 }, "stale"],
    ["a JVM option in the file alone is delivered", { kind: "jvm" }, "delivered"],
    ["in the process's own command line it is effective", { kind: "jvm", process: says("600MB") }, "effective"],
    ["another value there is stale", { kind: "jvm", process: says("1g"), startedAt: CHANGED - 1 }, "stale"],
    ["not there in a newer process: dropped", { kind: "jvm", process: absent }, "dropped"],
    ["an exchange's file alone is delivered", { kind: "exchange" }, "delivered"],
    ["with files listed during a query it is effective", { kind: "exchange", process: happened }, "effective"],
    ["without any it is delivered at most", { kind: "exchange", process: not }, "delivered"],
    ["and stale in an old process", { kind: "exchange", process: not, startedAt: CHANGED - 1 }, "stale"],
    ["access control's file alone is delivered", { kind: "access" }, "delivered"],
    ["a call that only it allows makes it effective", { kind: "access", process: happened }, "effective"],
    ["a call that is refused leaves it delivered", { kind: "access", process: not }, "delivered"],
    ["a session default's file alone is delivered", { kind: "session" }, "delivered"],
    ["SHOW SESSION makes it effective", { kind: "session", process: says("600MB") }, "effective"],
    ["SHOW SESSION with another value does not", { kind: "session", process: says("1GB") }, "dropped"],
    ["an override that its operator does not know is dropped", { owner: OWNER, rendered: ABSENT, delivered: ABSENT }, "dropped"],
    ["whatever a process says by chance", { owner: OWNER, rendered: ABSENT, process: says("600MB") }, "dropped"],
    ["an operator that overrules it drops it too", { owner: OWNER, rendered: value("1GB", "ConfigMap c") }, "dropped"],
    ["before the operator has looked it is declared", { owner: { ...OWNER, isBehind: true }, rendered: ABSENT }, "declared"],
    ["what was declared under a paused operator is stale (T18)", { owner: { ...OWNER, isPaused: true }, rendered: ABSENT }, "stale"],
    ["what it rendered before its pause counts", { owner: { ...OWNER, isPaused: true } }, "effective"],
    ["rendered, and in no file of the pod: rendered", { delivered: ABSENT }, "rendered"],
    ["its file is there without it: stale (T15)", { delivered: { seen: "absent", where: "pod p", hasFile: true } }, "stale"],
    ["the pod's file is as it was before: stale", { delivered: value("300MB", "pod p") }, "stale"],
    ["a file that cannot be read proves nothing (I24)", { delivered: UNREAD }, "rendered"],
    ["but an old process is stale in any case (T15)", { delivered: UNREAD, startedAt: CHANGED - 1 }, "stale"],
    ["a process that says it needs no file", { delivered: UNREAD, process: says("600MB") }, "effective"],
    ["a call that is refused and no file read: rendered", { kind: "access", delivered: UNREAD, process: not }, "rendered"],
    ["nothing rendered can be read: declared", { rendered: UNREAD }, "declared"],
    ["somebody changed the object: declared", { rendered: value("300MB", "ConfigMap c") }, "declared"],
    ["an instance of an earlier blueprint is stale (T15)", { rendered: value("300MB", "ConfigMap c"), isMadeBefore: true }, "stale"],
  ])("%s", (_name, change, state) => {
    expect(judge(evidence(change)).state).toBe(state);
  });

  test("who must do something is told what", () => {
    expect(judge(evidence({ owner: OWNER, rendered: ABSENT }))).toEqual({
      state: "dropped",
      message: "TrinoCluster t accepted it and rendered something else: ConfigMap c has nothing of it",
      todo: "its operator knows no such setting: docs/check.md",
    });
  });
});

test.each([
  ["8h", "8.00h", true],
  ["90s", "1.50m", true],
  ["100s", "1.67m", true],
  ["90s", "2m", false],
  ["1MB", "1048576B", true],
  ["TASK", "task", true],
  ["1GB", "1g", false],
  ["/a", "/A", false],
  ["600MB", "601MB", false],
])("%s and %s: %s", (a, b, expected) => {
  expect(isSameValue(a, b)).toBe(expected);
});
