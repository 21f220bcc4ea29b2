/** What the alert rules and the dashboard ask for is what /metrics has, and each rule is tested both ways. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { z } from "zod";
import { GROWTH_HOLDS } from "../../src/plan/scaling/saturation.ts";
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

test("the dashboard shows of scaling what is wanted, what the slots do, whatever holds growth back, and proven beside configured (K4, K6, K7)", () => {
  const titles = dashboard.panels.map(({ title }) => title);
  expect(titles.slice(titles.indexOf("Scaling"))).toEqual([
    "Scaling",
    "Demand",
    "Age of the oldest that waits",
    "Slots",
    "Held, and why",
    "Desired, proven, configured maximum",
    "Jobs that ended, changes of the size",
  ]);
  const queriesOf = (title: string): string =>
    dashboard.panels
      .find((panel) => panel.title === title)
      ?.targets.map(({ expr }) => expr)
      .join("\n") ?? "";
  expect([...GROWTH_HOLDS, "scale_held_long"].filter((code) => !queriesOf("Held, and why").includes(code))).toEqual([]);
  const names = (title: string) => [...new Set(queriesOf(title).match(/\brelevo_\w+/g))].toSorted();
  expect(names("Desired, proven, configured maximum")).toEqual(["relevo_desired", "relevo_max", "relevo_proven"]);
  expect(names("Held, and why")).toEqual(["relevo_demand_trouble", "relevo_standing_reasons"]);
});

test("no two panels of the dashboard have one id, or lie on each other", () => {
  const { panels } = z
    .object({ panels: z.array(z.object({ id: z.int(), gridPos: z.object({ x: z.int(), y: z.int(), w: z.int(), h: z.int() }) })) })
    .parse(read("dashboard.json"));
  expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
  const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
    Array.from({ length: w * h }, (_, index) => `${x + (index % w)},${y + Math.floor(index / w)}`),
  );
  expect(new Set(cells).size).toBe(cells.length);
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
