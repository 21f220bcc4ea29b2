import { expect, test } from "vitest";
import type { PreflightRow } from "../../model/preflight.ts";
import { FakeControlPlane, type FakeState, NOON } from "../../server/testing/fake-control-plane.ts";
import { runCli } from "../testing/run-cli.ts";

const row = (site: string, check: PreflightRow["check"], state: PreflightRow["state"], message: string, todo: string | null = null) => ({
  ...{ site, check, state, message, todo },
});
const with_ = (state: Partial<FakeState>) => new FakeControlPlane(state);

test("the preflight of a pool is one table for all its sites, and a refusal is exit code 3 (K2, K8)", async () => {
  const fake = with_({
    preflight: [
      row("east", "signal", "ok", "prometheus through metrics"),
      row("west", "credentials", "refused", "the source refuses the credentials", "give it another"),
      row("north", "signal", "refused", "connection metrics does not exist at site north", "take it out"),
    ],
  });
  expect(await runCli(["check", "capture"], { fake })).toEqual({
    code: 3,
    err: "",
    out: [
      "pool default/capture",
      "SITE   CHECK        STATE    FOUND",
      "east   signal       ok       prometheus through metrics",
      "west   credentials  refused  the source refuses the credentials; give it another",
      "north  signal       refused  connection metrics does not exist at site north; take it out",
      "2 checks refuse: leave the size to who has it now",
      "",
    ].join("\n"),
  });
});

test("a document is checked before it is applied", async () => {
  const text = [
    "apiVersion: relevo.dev/v1alpha1",
    "kind: Pool",
    "metadata: { name: capture }",
    "spec:",
    "  driver: worker",
    "  size: { desired: 1 }",
    "  blueprint: { objects: [{ apiVersion: apps/v1, kind: Deployment, metadata: { name: $(relevo.instance) } }] }",
  ].join("\n");
  const fake = with_({ preflight: [row("local", "signal", "ok", "fine")] });
  const { code, out } = await runCli(["check", "-f", "pool.yaml", "-n", "shop"], { fake, files: { "pool.yaml": text } });
  expect([code, out.split("\n")[0], fake.calls]).toEqual([0, "pool shop/capture", []]);
});

test("either a name or a document is to be checked", async () => {
  expect((await runCli(["check"])).err).toContain("(subject_not_asked)");
  expect((await runCli(["check"])).code).toBe(2);
});

const OPEN = {
  ...{ id: "exception-1", pool: "default/capture", what: "scaler", gate: "verify scaling", why: "an incident", by: "ann", at: NOON },
  followUps: [
    { what: "run the gate", doneAt: NOON },
    { what: "write it down", doneAt: null },
  ],
};

test("what goes ahead of its gate is recorded as an exception, which is no pass: exit code 4 (K10)", async () => {
  const fake = with_({});
  const args = ["promote", "capture", "--before", "verify scaling", "--why", "an incident", "--follow-up", "run the gate"];
  const { code, out } = await runCli(args, { fake });
  expect(code).toBe(4);
  expect(out).toContain(
    "exception exception-1: pool default/capture (pool default/capture) went ahead of verify scaling, by ann: an incident\n  1. open: run the gate\n",
  );
  expect(fake.calls).toEqual([
    {
      call: "recordException",
      with: {
        pool: "default/capture",
        draft: { what: "pool default/capture", gate: "verify scaling", why: "an incident", followUps: ["run the gate"] },
        by: "ann",
      },
    },
  ]);
  expect((await runCli(["promote", "capture", "--before", "gate"], { fake })).err).toContain("(promotion_incomplete)");
});

test("only what is open of it is finished, and doctor shows it until then", async () => {
  const fake = with_({ exceptions: [OPEN] });
  await runCli(["promote", "--done", "exception-1"], { fake });
  expect(fake.calls).toEqual([{ call: "finishFollowUp", with: { exception: "exception-1", index: 1 } }]);
  const { out } = await runCli(["doctor"], { fake });
  expect(out).toContain(
    "held     gates: scaler (pool default/capture) went ahead of verify scaling on 2030-01-01T12:00:00.000Z; still to be done: write it down; do it, then npx relevo promote --done exception-1",
  );
  expect((await runCli(["promote", "--done", "nothing"], { fake })).err).toContain("(not_found)");
});

test("of recording an exception and of finishing one nothing is passed over in silence", async () => {
  const fake = with_({ exceptions: [OPEN] });
  const recording = ["--before", "gate", "--why", "w", "--follow-up", "f"];
  const mixed = await runCli(["promote", "capture", ...recording, "--done", "exception-1"], { fake });
  const item = await runCli(["promote", "capture", ...recording, "--item", "2"], { fake });
  expect([mixed.code, item.code, fake.calls]).toEqual([2, 2, []]);
  expect(mixed.err).toContain("found: --before, --why, --follow-up beside --done");
  expect(item.err).toContain("found: --item without --done");
});

test("what an operator notes cannot hold what a terminal obeys", async () => {
  const fake = with_({});
  const { code, err } = await runCli(["promote", "capture", "--before", "a\u001b[31mred", "--why", "w", "--follow-up", "f"], { fake });
  expect([code, fake.calls]).toEqual([2, []]);
  expect(err).not.toContain("\u001b");
});

test.each([["loadtest"], ["verify", "scaling"]])("where no report can be written nothing is put in: %s %s", async (...command) => {
  const words = [...command.filter((word) => word !== undefined), "capture", "--connections", "connections.yaml"];
  for (const report of ["nowhere/report.json", "."]) {
    const { code, err } = await runCli([...words, "--report", report], { fake: with_({}) });
    expect([code, err.includes(`relevo: ${report} cannot be written (report_unwritable)`)]).toEqual([2, true]);
  }
});
