import { expect, test } from "vitest";
import { stringify } from "yaml";
import { systemClock } from "../../kernel/system.ts";
import { runCli } from "../testing/run-cli.ts";

const SPEC = {
  where: { coordinator: { url: "http://127.0.0.1:1" }, workers: { count: 2 } },
  kill: { command: ["./kill-worker", "$(worker.nodeId)"] },
  exchange: { location: "/exchange" },
};

function documentOf(spec: object, rest: object = {}): string {
  return stringify({ apiVersion: "relevo.dev/v1alpha1", kind: "Gate", metadata: { name: "fte" }, spec, ...rest });
}

const run = (text: string, ...args: readonly string[]) =>
  runCli(["gate", "run", "-f", "gate.yaml", ...args], { files: { "gate.yaml": text } });

test("two variables are invalid before anybody is asked: exit code 3 (T10)", async () => {
  const { code, out } = await run(
    documentOf({ ...SPEC, control: { session: { retry_policy: "NONE", spill_enabled: "true" } } }),
    "-o",
    "json",
  );
  const report = JSON.parse(out) as { readonly verdict: string; readonly reasons: readonly unknown[] };
  expect([code, report.verdict, report.reasons]).toEqual([
    3,
    "invalid",
    [
      {
        code: "not_one_variable",
        sentence:
          "the two runs must differ in exactly one variable, and differ in 2: retry_policy (TASK → NONE), spill_enabled (unset → true)",
      },
    ],
  ]);
});

test("an exception runs nothing, says who and why, and is no pass: exit code 4", async () => {
  const args = ["--exception", "the release is today", "--follow-up", "run it on Monday"];
  const { code, out } = await run(documentOf(SPEC), ...args);
  expect(code).toBe(4);
  expect(out).toContain("# Gate fte: exception");
  expect(out).toContain("ann goes on without this gate: the release is today; still to be done: run it on Monday");
  expect(out.trimEnd().endsWith("verdict: exception")).toBe(true);
});

test.each([
  [["--exception", "today"], "exception_incomplete"],
  [["--follow-up", "run it"], "follow_up_without_exception"],
])("%j is not enough for an exception (K10)", async (args, code) => {
  const ran = await run(documentOf(SPEC), ...args);
  expect([ran.code, ran.err.includes(code)]).toEqual([2, true]);
});

test("an engine that nobody can reach is an error with its name, not a verdict", async () => {
  const statements = [{ sql: "SELECT 1", expect: { rows: [[1]] } }];
  const files = { "gate.yaml": documentOf({ ...SPEC, statements }) };
  const { code, out, err } = await runCli(["gate", "run", "-f", "gate.yaml"], { files, clock: systemClock });
  expect([code, out]).toEqual([1, ""]);
  expect(err).toContain("instance_unreachable");
});

test.each([
  ["another kind", documentOf(SPEC, { kind: "Pool" }), "gate.yaml:1:1: this is no Gate"],
  ["nowhere", documentOf({ ...SPEC, where: {} }), "gate.yaml:6:10: spec.where: name either coordinator or pool"],
  [
    "no workers",
    documentOf({ ...SPEC, where: { coordinator: { url: "http://c:8080" } } }),
    "spec.where: say in workers.count how many workers are declared",
  ],
  ["two ways to kill", documentOf({ ...SPEC, kill: { pod: {}, command: ["x"] } }), "spec.kill: name either pod or command"],
  ["no exchange", documentOf({ where: SPEC.where, kill: SPEC.kill }), "spec.exchange is missing"],
  ["a field that is none", documentOf({ ...SPEC, statement: [] }), "spec.statement is no field"],
  [
    "a window that is none",
    documentOf({ ...SPEC, windows: { open: "soon" } }),
    'spec.windows.open is not valid; found: "soon"; allowed: a duration such as 90s',
  ],
])("a document with %s is told with its place", async (_name, text, sentence) => {
  const { code, err } = await run(text);
  expect(code).toBe(2);
  expect(err).toContain(sentence);
  expect(err).toContain("nothing was run");
});

test("an exchange that cannot be listed from here is refused", async () => {
  const { code, err } = await run(documentOf({ ...SPEC, exchange: { location: "hdfs://namenode/exchange" } }));
  expect([code, err.includes("exchange_unsupported")]).toEqual([2, true]);
});
