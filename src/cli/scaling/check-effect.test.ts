import { expect, test } from "vitest";
import type { EffectReport, EffectRow } from "../../model/effect.ts";
import { anInstance, aPool, FakeControlPlane, type FakeState } from "../../server/testing/fake-control-plane.ts";
import { runCli } from "../testing/run-cli.ts";

const ROW: EffectRow = {
  ...{ instance: "lake-a", pod: "lake-a-c-0", kind: "config", role: "coordinator", file: "config.properties", name: "retry-policy" },
  hops: [
    { hop: "declared", value: "TASK", where: "the Pool's blueprint" },
    { hop: "rendered", value: "TASK", where: "ConfigMap lake-a-etc" },
    { hop: "delivered", value: null, where: "files in pods are not read here" },
    { hop: "effective", value: "TASK", where: "as the engine took it" },
  ],
  ...{ state: "effective", message: "the process has it", todo: null },
};
const STALE: EffectRow = { ...ROW, name: "query.max-memory", state: "stale", message: "the file changed later", todo: "restart it" };
const report = (...rows: EffectRow[]): EffectReport => ({ rows, notes: [] });
const fakeWith = (state: Partial<FakeState>) =>
  new FakeControlPlane({
    preflight: [{ site: "local", check: "signal", state: "ok", message: "its size follows nothing", todo: null }],
    ...state,
  });

test("preflight and effect are one table; what is not effective is exit code 4 (T1)", async () => {
  expect(await runCli(["check", "lake"], { fake: fakeWith({ effects: [report(ROW, STALE)] }) })).toEqual({
    code: 4,
    err: "",
    out: [
      "pool default/lake",
      "PHASE      WHERE       CHECK                               STATE    FOUND",
      "preflight  local       signal                              ok       its size follows nothing",
      "effect     lake-a-c-0  config.properties query.max-memory  stale    the file changed later; restart it",
      "effect     lake-a      all                                 1/2      effective",
      "1 of 2 settings is not effective: nothing relies on what is not",
      "",
    ].join("\n"),
  });
});

test("with -o wide each key is told with each hop", async () => {
  const { code, out } = await runCli(["check", "lake", "-o", "wide"], { fake: fakeWith({ effects: [report(ROW)] }) });
  expect(code).toBe(0);
  expect(out.split("\n").slice(3)).toEqual([
    "effect     lake-a-c-0  config.properties retry-policy  effective  the process has it",
    "                         declared                                 TASK  (the Pool's blueprint)",
    "                         rendered                                 TASK  (ConfigMap lake-a-etc)",
    "                         delivered                                -  (files in pods are not read here)",
    "                         effective                                TASK  (as the engine took it)",
    "nothing stands in the way",
    "",
  ]);
});

test("as JSON all of it is told", async () => {
  const { code, out } = await runCli(["check", "lake", "-o", "json"], { fake: fakeWith({ effects: [report(ROW, STALE)] }) });
  expect([code, JSON.parse(out).items[0].effect]).toEqual([4, report(ROW, STALE)]);
});

test("a refusal of the preflight counts before what is not effective", async () => {
  const preflight = [{ site: "local", check: "signal" as const, state: "refused" as const, message: "no", todo: null }];
  expect((await runCli(["check", "lake"], { fake: fakeWith({ preflight, effects: [report(STALE)] }) })).code).toBe(3);
});

test("an owner that is paused is told and held, also when all is as declared (T18)", async () => {
  const notes = [{ instance: "lake-a", owner: "TrinoCluster lake-a", message: "TrinoCluster lake-a is paused", todo: "resume it" }];
  const { code, out } = await runCli(["check", "lake"], { fake: fakeWith({ effects: [{ rows: [ROW], notes }] }) });
  expect(code).toBe(4);
  expect(out).toContain("effect     lake-a  owner   held     TrinoCluster lake-a is paused; resume it");
});

test("--restart drains what is stale as an operator would, and checks again (T15)", async () => {
  const fake = fakeWith({ effects: [report(ROW, STALE), report(ROW, { ...STALE, state: "effective" })] });
  fake.state.pools = [aPool({ pool: "default/lake", serving: 1, desired: 1 })];
  fake.state.instances = [anInstance("lake-a", { pool: "default/lake", phase: "sealed" })];
  const { code, err } = await runCli(["check", "lake", "--restart"], { fake });
  expect([code, err, fake.calls.map(({ call }) => call)]).toEqual([0, "lake-a will make way: stale\n", ["drain"]]);
});

test("only what runs can be restarted", async () => {
  expect((await runCli(["check", "-f", "pool.yaml", "--restart"])).code).toBe(2);
});
