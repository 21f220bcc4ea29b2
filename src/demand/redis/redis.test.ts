/** Answers that no good Redis gives, and errors as it words them. */
import { expect, test } from "vitest";
import { judgeReading, troubleOfError } from "../validity.ts";
import { RedisLink } from "./link.ts";
import { readingOf } from "./list-adapter.ts";
import { readDemand } from "./stream-adapter.ts";

const STREAM = { kind: "redis-stream", connection: "r", stream: "s", group: "g" } as const;
const LIST = { kind: "redis-list", connection: "r", list: "l" } as const;
const TIME = ["1800000000", "123456"];
const NOW = 1_800_000_000_123;
const never = new AbortController().signal;

/** The answers in the order of the calls. */
async function streamOf(...answers: readonly (readonly unknown[])[]): Promise<unknown> {
  const left = [...answers];
  try {
    const reading = await readDemand(STREAM, { together: async () => left.shift() ?? [] }, never);
    const judged = judgeReading(reading, { flow: "redis/s/g", maxAgeMs: 60_000, former: null, at: 0 });
    return "valid" in judged ? judged.valid.reading : judged.trouble.code;
  } catch (error) {
    return troubleOfError(error).code;
  }
}

const group = (more: Readonly<Record<string, unknown>> = {}) =>
  Object.entries({ name: "g", consumers: 1, pending: 2, "last-delivered-id": "1799999999000-3", lag: 1, ...more }).flat();

test("the age is by Redis's own clock, whatever ours says", async () => {
  const entries = [["1799999990123-0", ["url", "x"]]];
  expect(await streamOf([TIME, [group()]], [entries])).toEqual({
    backlog: 1,
    inFlight: 2,
    oldestAgeMs: 10_000,
    flow: "redis/s/g",
    valueAt: null,
    sourceNow: NOW,
  });
});

test("an entry of the future is new, not younger than that", async () => {
  expect(await streamOf([TIME, [group()]], [[["1900000000000-0", []]]])).toMatchObject({ oldestAgeMs: 0 });
});

test.each([
  ["no groups", [TIME, []], "missing"],
  ["the group of another service", [TIME, [group({ name: "sibling" })]], "missing"],
  ["no list of groups", [TIME, "OK"], "type_changed"],
  ["groups that are none", [TIME, [null, 7, "g"]], "missing"],
  ["no time", ["OK", [group()]], "type_changed"],
  ["a time that is none", [["soon", "x"], [group()]], "type_changed"],
  ["no place in the stream", [TIME, [group({ "last-delivered-id": null })]], "type_changed"],
  ["a lag below zero", [TIME, [group({ lag: -1 })]], "negative"],
  ["a lag of text", [TIME, [group({ lag: "1" })]], "not_a_number"],
  ["no number of pending ones", [TIME, [group({ pending: undefined })]], "not_a_number"],
] as const)("%s: no demand (K11)", async (_what, answer, code) => {
  expect(await streamOf(answer, [[["1799999990123-0", []]]])).toBe(code);
});

test("entries that cannot be read are no empty stream", async () => {
  expect(await streamOf([TIME, [group({ lag: null })]], ["OK"])).toBe("type_changed");
});

test.each([
  ["null", null, "not_a_number"],
  ["text", "3", "not_a_number"],
  ["less than nothing", -3, "negative"],
])("a list as long as %s: no demand (K11)", (_what, length, code) => {
  const judged = judgeReading(readingOf(LIST, [TIME, length]), { flow: null, maxAgeMs: 1, former: null, at: 0 });
  expect("trouble" in judged && judged.trouble.code).toBe(code);
});

test.each([
  ["NOAUTH Authentication required.", "credentials_refused"],
  ["WRONGPASS invalid username-password pair or user is disabled.", "credentials_refused"],
  ["ERR AUTH <password> called without any password configured for the default user.", "credentials_refused"],
  ["NOPERM this user has no permissions to run the 'llen' command", "credentials_refused"],
  ["WRONGTYPE Operation against a key holding the wrong kind of value", "type_changed"],
  ["ERR no such key", "missing"],
  ["LOADING Redis is loading the dataset in memory", "unreachable"],
  ["MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.", "unreachable"],
  ["MOVED 3999 127.0.0.1:6381", "unreachable"],
])("%s", async (message, code) => {
  const link = new RedisLink({ name: "r", kind: "redis", url: "redis://x" }, async () => ({
    isReady: true,
    together: () => Promise.reject(new Error(message)),
    destroy: () => undefined,
  }));
  await expect(link.together([["LLEN", "l"]], never)).rejects.toMatchObject({ code: `demand_${code}` });
});

test("of many looks at once one makes the connection, and one that broke is made anew", async () => {
  let opened = 0;
  let isReady = true;
  const link = new RedisLink({ name: "r", kind: "redis", url: "redis://x" }, async () => {
    opened++;
    return {
      get isReady() {
        return isReady;
      },
      together: async () => [1],
      destroy: () => undefined,
    };
  });
  await Promise.all([1, 2, 3].map(() => link.together([["LLEN", "l"]], never)));
  expect(opened).toBe(1);
  isReady = false;
  await link.together([["LLEN", "l"]], never);
  expect(opened).toBe(2);
});
