import { expect, test } from "vitest";
import { aPool, FakeControlPlane } from "../server/testing/fake-control-plane.ts";
import { RelevoError } from "../kernel/errors.ts";
import { tellError } from "./exit.ts";
import { runCli } from "./testing/run-cli.ts";

const NEVER: typeof fetch = () => Promise.reject(new Error("nothing is called"));

test.each([
  ["check", "../nodes"],
  ["plan", "a/b/c"],
  ["get", "pool", "Orders"],
  ["get", "events", "--pool", "a?x"],
  ["drain", ".."],
])("a name that is none is a mistake of usage, and nothing is called: %s %s", async (...words) => {
  const { code, err, out } = await runCli([...words, "-o", "json"], { fetch: NEVER });
  expect([code, out, (JSON.parse(err) as { error: { code: string } }).error.code]).toEqual([2, "", "name_invalid"]);
});

test.each([
  [["get", "scale", "--pool", "nope"], "There is no pool default/nope."],
  [["get", "events", "--pool", "nope"], "There is no pool default/nope."],
  [["get", "instances", "--pool", "nope"], "There is no pool default/nope."],
  [["get", "scale", "nope"], "There is no scale nope."],
  [["get", "pool", "nope"], "There is no pool default/nope."],
  [["promote", "--done", "nope"], "There is no exception nope."],
])("what does not exist is told, and fails: %j", async (words, sentence) => {
  const { code, err, out } = await runCli([...words, "-o", "json"], { fake: new FakeControlPlane({ pools: [aPool()] }) });
  expect([code, out, JSON.parse(err)]).toMatchObject([1, "", { error: { code: "not_found", message: sentence } }]);
});

test.each(["", "two\nlines", "esc\u001b[2J", "x".repeat(254)])("a token for no name is not made: %j", async (name) => {
  const { code, err, out } = await runCli(["token", "create", "--name", name, "--role", "viewer", "-o", "json"]);
  expect([code, out, (JSON.parse(err) as { error: { code: string } }).error.code]).toEqual([2, "", "name_invalid"]);
});

test("what a sentence holds of others' words does not reach the terminal as a command to it", () => {
  let told = "";
  const print = { err: (text: string) => void (told += text) };
  tellError(new RelevoError("query_failed", "PostgreSQL says: \u001b[2Jgone\u009b1m."), print, {});
  tellError(new Error("\u001b]0;title\u0007"), print, { debug: true });
  expect(told).not.toMatch(/(?![\t\n])\p{Cc}/u);
  expect(told).toContain("relevo: PostgreSQL says: \ufffd[2Jgone\ufffd1m (query_failed)");
});
