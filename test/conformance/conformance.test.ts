/** The embedded cluster, held to what a real API server (kube-apiserver 1.35) answered to every case. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { Recording } from "./case.ts";
import { CASES } from "./cases/all.ts";
import { DEVIATIONS } from "./deviations.ts";
import { startEmbedded } from "./embedded.ts";
import { judge, summaryOf } from "./judge.ts";
import { runAll } from "./run-all.ts";
import { trafficLine } from "./traffic.ts";

const jsonOf = <T>(name: string): T => JSON.parse(readFileSync(join(import.meta.dirname, name), "utf8")) as T;
const recorded = jsonOf<Recording>("recorded.json");

test("the embedded cluster answers as a real API server does, but for what is listed with its reason", { timeout: 60_000 }, async () => {
  const embedded = await startEmbedded();
  const answers = await runAll({ url: embedded.url }).finally(() => embedded.close());
  const judgement = judge(recorded, JSON.parse(JSON.stringify(answers)) as Recording);
  const summary = summaryOf(judgement);

  expect([judgement.unexplained, judgement.stale]).toEqual([[], []]);
  const document = readFileSync(join(import.meta.dirname, "../../docs/conformance.md"), "utf8");
  expect(document).toContain(summary);
  for (const { reason } of DEVIATIONS) expect(document).toContain(reason);
});

test("every verb on every kind that the product and the usual kubectl commands were seen to use has a case", () => {
  const { product, kubectl } = jsonOf<{ readonly product: readonly string[]; readonly kubectl: readonly string[] }>("traffic.json");
  const shown = new Set(
    CASES.flatMap(({ steps }) => steps)
      .flatMap((step) => ("watch" in step ? [{ call: `GET ${step.watch}`, type: undefined }, ...(step.during ?? [])] : [step]))
      .flatMap(({ call, type }) => {
        const [method = "", path = ""] = call.split(" ");
        return verbAndKind(trafficLine(method, path, type, undefined) ?? "");
      }),
  );
  const missing = [...new Set([...product, ...kubectl].map(verbAndKind))].filter((each) => !shown.has(each));

  expect(missing.toSorted()).toEqual(NOT_RUN.toSorted());
});

/** `list v1 pods table limit` → `list v1 pods`. */
const verbAndKind = (line: string): string => line.split(" ").slice(0, 3).join(" ");

/** Logs need kubelets; there is no definition of Sites yet. */
const NOT_RUN: readonly string[] = ["get v1 pods/log", "list relevo.dev/v1alpha1 sites"];
