import { expect, test } from "vitest";
import { RelevoError } from "../kernel/errors.ts";
import { FakeControlPlane } from "../server/testing/fake-control-plane.ts";
import { runCli } from "./testing/run-cli.ts";

test("an owner is removed by kind, name and UID alone, and who asked goes with it (K3)", async () => {
  const fake = new FakeControlPlane();
  const line = ["adopt", "web", "-n", "shop", "--remove-owner", "HorizontalPodAutoscaler/web", "--uid", "u-7", "--accept-manager", "helm"];
  const { code, out } = await runCli(line, { fake });
  expect({ code, out, calls: fake.calls.filter(({ call }) => call === "adopt") }).toEqual({
    code: 0,
    out: "Deployment/web is shop/web's with its 3 replicas, HorizontalPodAutoscaler/web is removed: nobody else sets them\n",
    calls: [
      {
        call: "adopt",
        with: {
          ...{ pool: "shop/web", by: expect.any(String) as string, acceptManagers: ["helm"], dryRun: false },
          removeOwner: { kind: "HorizontalPodAutoscaler", name: "web", uid: "u-7" },
        },
      },
    ],
  });
});

test("what would be done, and giving it back", async () => {
  const fake = new FakeControlPlane();
  expect(await runCli(["adopt", "web", "--dry-run"], { fake })).toMatchObject({
    code: 0,
    out: "Deployment/web would be default/web's with its 3 replicas\n",
  });
  expect(await runCli(["adopt", "web", "--release"], { fake })).toMatchObject({
    code: 0,
    out: "Deployment/web is nobody's: it keeps its 3 replicas, and default/web only says what it would do\n",
  });
  expect(fake.calls.map(({ call }) => call).filter((call) => call !== "readiness")).toEqual(["adopt", "releaseTarget"]);
});

test("another owner that was not named is a refusal that names it (K3)", async () => {
  const failure = new RelevoError("adopt_other_owners", "Deployment/web has an owner already", {
    class: "conflict",
    found: "HorizontalPodAutoscaler/web (UID u-7) keeps it between 2 and 9 by metrics of its own",
    todo: "relevo adopt shop/web --remove-owner HorizontalPodAutoscaler/web --uid u-7",
  });
  const { code, err } = await runCli(["adopt", "web", "-n", "shop"], { fake: new FakeControlPlane({ failure }) });
  expect(code).toBe(3);
  expect(err).toContain("HorizontalPodAutoscaler/web (UID u-7)");
  expect(err).toContain("--remove-owner HorizontalPodAutoscaler/web --uid u-7");
});

test.each([
  [["--remove-owner", "HorizontalPodAutoscaler/web"]],
  [["--uid", "u-7"]],
  [["--remove-owner", "web", "--uid", "u-7"]],
  [["--remove-owner", "a/b/c", "--uid", "u-7"]],
  [["--release", "--dry-run"]],
])("half of a command asks nobody anything: %s", async (options) => {
  const fake = new FakeControlPlane();
  const { code } = await runCli(["adopt", "web", ...options], { fake });
  expect({ code, calls: fake.calls }).toEqual({ code: 2, calls: [] });
});
