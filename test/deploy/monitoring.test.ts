/** What the alert rules and the dashboard ask for is what /metrics has, and each rule is tested both ways. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { z } from "zod";
import { REASONS } from "../../src/model/reasons.ts";
import { createMetrics } from "../../src/server/metrics.ts";

const folder = join(import.meta.dirname, "..", "..", "deploy", "monitoring");
const read = (name: string): unknown => parse(readFileSync(join(folder, name), "utf8"));

const { groups } = z
  .object({ groups: z.array(z.object({ rules: z.array(z.object({ alert: z.string(), expr: z.string() })) })) })
  .parse(read("alerts.yaml"));
const rules = groups.flatMap((group) => group.rules);
const { tests } = z
  .object({
    tests: z.array(z.object({ alert_rule_test: z.array(z.object({ alertname: z.string(), exp_alerts: z.array(z.unknown()) })) })),
  })
  .parse(read("alerts.test.yaml"));
const dashboard = z
  .object({ panels: z.array(z.object({ title: z.string(), targets: z.array(z.object({ expr: z.string() })) })) })
  .parse(read("dashboard.json"));
const queries = [...rules.map(({ expr }) => expr), ...dashboard.panels.flatMap(({ targets }) => targets.map(({ expr }) => expr))];

interface Known {
  readonly name: string;
  readonly labels: readonly string[];
}

function exposed(): ReadonlyMap<string, Known> {
  const metrics = createMetrics().registry.getMetricsAsArray() as unknown as readonly (Known & {
    readonly type: string;
    readonly labelNames: readonly string[];
  })[];
  return new Map(
    metrics.flatMap(({ name, labelNames, type }) => {
      const names = type === "histogram" ? [`${name}_bucket`, `${name}_sum`, `${name}_count`] : [name];
      return names.map((each) => [each, { name: each, labels: [...labelNames, ...(type === "histogram" ? ["le"] : [])] }] as const);
    }),
  );
}

test("each metric that a rule or the dashboard names is exposed, with the labels that it is grouped and chosen by", () => {
  const known = exposed();
  const wrong = queries.flatMap((query) => {
    const names = query.match(/\brelevo_\w+/g) ?? [];
    const labels = new Set(names.flatMap((name) => known.get(name)?.labels ?? []));
    const asked = [
      ...[...query.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, list]) => (list ?? "").split(",").map((label) => label.trim())),
      ...[...query.matchAll(/([a-z_]+)\s*=~?"/g)].map(([, label]) => label ?? ""),
    ];
    return [
      ...names.filter((name) => !known.has(name)),
      ...asked.filter((label) => !labels.has(label)).map((label) => `${label} in ${query}`),
    ];
  });
  expect(wrong).toEqual([]);
  expect(queries.every((query) => query.includes("relevo_"))).toBe(true);
});

test("each code of a reason that a rule names is in the registry", () => {
  const codes = queries.flatMap((query) => [...query.matchAll(/\bcode=~?"([^"]*)"/g)].flatMap(([, list]) => (list ?? "").split("|")));
  expect(codes.length).toBeGreaterThan(3);
  expect(codes.filter((code) => !(code in REASONS))).toEqual([]);
});

test("each rule has a case that fires and one that does not", () => {
  const cases = tests.flatMap((each) => each.alert_rule_test);
  for (const { alert } of rules) {
    const own = cases.filter(({ alertname }) => alertname === alert);
    expect([alert, own.some(({ exp_alerts }) => exp_alerts.length > 0), own.some(({ exp_alerts }) => exp_alerts.length === 0)]).toEqual([
      alert,
      true,
      true,
    ]);
  }
});
