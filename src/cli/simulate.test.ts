/** `relevo simulate`: what it prints, how it ends, what it says of mistakes. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { renderPool } from "../server/render.ts";
import { aPool } from "../server/testing/fake-control-plane.ts";
import { renderDocument } from "./output.ts";
import { readScenario } from "./scenario-file.ts";
import { runCli } from "./testing/run-cli.ts";

const ROOT = join(import.meta.dirname, "../..");
const scenario = (name: string): string => readFileSync(join(ROOT, "scenarios", `${name}.yaml`), "utf8");

const SMALL = `name: small
fleet:
  sites:
    - { name: home, provider: aws, latency: 2ms, bandwidth: 12.5G, lands: { perSecond: 1 }, configured: { perSecond: 1, burst: 1 } }
    - { name: away, provider: gcp, latency: 12ms, bandwidth: 12.5G, lands: { perSecond: 5 }, configured: { perSecond: 4, burst: 4 } }
  supplies:
    - { site: away, zone: z, type: big, kind: standby, class: quotes, count: 20 }
  classes:
    - name: quotes
      priority: critical
      count: 20
      runsOn: { site: home, zones: [a], type: big }
      state: { size: 50G, changes: 20M, bandwidth: 1.25G }
      boot: 3s
      warmUp: 4s
      requests: { perSecond: 20, inFlight: 4ms }
  notices: { waves: [{ at: 0s, over: 5s, share: 1 }] }
  measureFor: 6m
`;

const FIGURES = [
  "instances",
  "evacuated",
  "within90s",
  "byClass",
  "unsavable",
  "bound",
  "ratioToBound",
  "availability",
  "addedMs",
  "over50Ms",
  "lost",
];

test("a single storm as JSON is one document with the figures and the same figures of each baseline", async () => {
  const { code, out, err } = await runCli(["simulate", "-f", "s.yaml", "-o", "json"], { files: { "s.yaml": SMALL } });
  const document = JSON.parse(out) as Record<string, unknown> & { readonly baselines: Record<string, Record<string, unknown>> };
  expect(Object.keys(document)).toEqual([...FIGURES, "baselines"]);
  expect(Object.keys(document.baselines)).toEqual(["budgets", "snapshots", "fifo", "herd"]);
  for (const baseline of Object.values(document.baselines)) expect(Object.keys(baseline)).toEqual(FIGURES);
  expect(document).toMatchObject({ instances: 20, evacuated: 20, within90s: 20, lost: 0, bound: 20, ratioToBound: 1 });
  expect(code).toBe(0);
  // First in, first out does as well with so much room, and it says so.
  expect(err).toContain("relevo: seed 1 shows nothing against fifo");
});

test("many seeds as JSON: each one's figures, the level of the claim, baselines only when asked for", async () => {
  const { code, out } = await runCli(["simulate", "-f", "s.yaml", "--seeds", "1..3", "-o", "json"], { files: { "s.yaml": SMALL } });
  const document = JSON.parse(out) as { readonly runs: readonly Record<string, unknown>[] };
  expect(document).toMatchObject({ scenario: "small", level: "simulated", seeds: "1..3", violations: [] });
  expect(document.runs.map((run) => Object.keys(run))).toEqual(Array(3).fill(["seed", ...FIGURES]));
  expect(code).toBe(0);
});

test("as a table: approaches, classes, the time line", async () => {
  const { code, out } = await runCli(["simulate", "-f", "s.yaml"], { files: { "s.yaml": SMALL } });
  expect(out).toMatch(/^small, seed 1, simulated\n\nAPPROACH {3}INSTANCES/);
  expect(out).toMatch(/relevo {5}20 {9}20 /);
  expect(out).toMatch(/critical {2}20 /);
  expect(out).toMatch(/AT +NOTICED +SERVING +AWAY\n0 s/);
  expect(code).toBe(0);
});

test("a pool as `relevo get pools -o yaml` prints it: what became of it, its losses by class, and its time line", async () => {
  const { code, out, err } = await runCli(["simulate", "-f", "-", "--seeds", "3", "-o", "json"], { stdin: scenario("my-pools") });
  expect(err).toContain("what is printed of a pool has neither blueprint nor limits (default/orders)");
  const document = JSON.parse(out) as { readonly timeline: { readonly lines: readonly { readonly sentence: string }[] } };
  expect(document).toMatchObject({
    scenario: "my-pools",
    level: "simulated",
    seeds: "3..3",
    converged: 1,
    failed: [],
    violations: [],
    pools: [{ pool: "default/orders", losses: { voluntary: {}, deadline: {}, forced: {} } }],
  });
  expect(document.timeline.lines[0]?.sentence).toMatch(/^orders-\w+ is made$/);
  expect(code).toBe(0);
}, 60_000);

test("what `relevo get pools -o yaml` prints is a scenario as it is, and as a table it says what became of each request", async () => {
  const { document } = aPool();
  const pool = aPool({ document: { ...document, spec: { ...document.spec, priority: "batch", standby: { count: 1 } } } });
  // As the command renders it, without its server: what a socket does afterwards would meet the guards of the simulation.
  const printed = renderDocument({ items: [renderPool(pool)] }, "yaml") ?? "";

  const read = readScenario("stdin", printed);
  const { code, out } = await runCli(["simulate", "-f", "-"], { stdin: printed });

  expect(read).toMatchObject({ form: "pools", name: "scenario", scenario: { pools: [{ key: "default/orders" }] } });
  const [taken] = read.form === "pools" ? read.scenario.pools : [];
  expect(taken?.document["spec"]).toMatchObject({ priority: "batch", standby: { count: 1 } });
  expect(out).toMatch(
    /^scenario, seed 1, simulated\n\ncame through\nfrom the end of the faults until all was as it should be: \d+\.\d s\n/,
  );
  const [, sent, completed, rejected, cut, open] = /default\/orders +(\d+) +(\d+) +(\d+) +(\d+) +(\d+) /.exec(out) ?? [];
  expect(Number(sent)).toBe(Number(completed) + Number(rejected) + Number(cut) + Number(open));
  expect(code).toBe(0);
}, 60_000);

test("a Pool, and a value of a wrong type, are told in words of the file", async () => {
  const pool = await runCli(["simulate", "-f", "p.yaml"], { files: { "p.yaml": "apiVersion: relevo.dev/v1alpha1\nkind: Pool\n" } });
  expect(pool.err).toContain(
    'p.yaml:1:1: this is a Pool, not a scenario; found: "kind: Pool"; allowed: name, and pools with it as an entry, or fleet',
  );
  const typed = await runCli(["simulate", "-f", "s.yaml"], { files: { "s.yaml": SMALL.replace("name: small", "name: 7") } });
  expect(typed.err).toContain("s.yaml:1:7: name is not valid; found: 7; allowed: text\n");
  expect([pool.code, typed.code]).toEqual([2, 2]);
});

test("each mistake in the file is told with its line, the field, what was found and what is allowed", async () => {
  const wrong = SMALL.replace("priority: critical", "priority: critcal")
    .replace("boot: 3s", "boots: 3s")
    .replace("site: away", "site: nowhere");
  const { code, out, err } = await runCli(["simulate", "-f", "s.yaml"], { files: { "s.yaml": wrong } });
  expect(out).toBe("");
  expect(err.split("\n")).toEqual([
    `s.yaml:10:17: fleet.classes[0].priority is not valid; found: "critcal"; allowed: critical, standard, batch; did you mean critical?`,
    `s.yaml:9:7: fleet.classes[0].boot is missing; allowed: a duration such as 90s, 2m or 250ms; add fleet.classes[0].boot`,
    `s.yaml:14:7: fleet.classes[0].boots is no field; found: "boots"; allowed: name, priority, count, runsOn, latencyLimit, state, boot, warmUp, requests; did you mean boot?`,
    "relevo: 3 mistakes: nothing was simulated (document_invalid)",
    "",
  ]);
  expect(code).toBe(2);
});

test("names that lead nowhere, and forms that do not mix, are mistakes too", async () => {
  const nowhere = await runCli(["simulate", "-f", "s.yaml"], { files: { "s.yaml": SMALL.replace("site: away", "site: nowhere") } });
  expect(nowhere.err).toContain(`s.yaml:7:15: fleet.supplies[0].site: is none of home, away; found: "nowhere"`);
  const mixed = await runCli(["simulate", "-f", "s.yaml"], { files: { "s.yaml": `${SMALL}gateways: 2\n` } });
  expect(mixed.err).toContain("gateways: belongs to pools, not to a fleet");
  const neither = await runCli(["simulate", "-f", "s.yaml"], { files: { "s.yaml": "name: none\n" } });
  expect(neither.err).toContain("holds either pools or a fleet");
  expect([nowhere.code, mixed.code, neither.code]).toEqual([2, 2, 2]);
});

test("a fault of a timeline has the parameters of its kind", async () => {
  const file = `${scenario("controller-outage")}  - { at: 5s, kind: node_death, returnAfterMs: 3s }\n  - { at: 5s, kind: api_errors, share: 3 }\n  - { at: 5s, kind: node_deth }\n`;
  const { err, code } = await runCli(["simulate", "-f", "s.yaml"], { files: { "s.yaml": file } });
  expect(err).toContain('timeline[8].kind is not valid; found: "node_deth"');
  const two = await runCli(["simulate", "-f", "s.yaml"], { files: { "s.yaml": file.replace("node_deth", "node_death") } });
  expect(two.err).toContain(
    `timeline[6].returnAfterMs is no field; found: "returnAfterMs"; allowed: pick, returnsAfterMs, sameUid; did you mean returnsAfterMs?`,
  );
  expect(two.err).toContain("timeline[7].share is not valid; found: 3; allowed: a number from 0 to 1");
  expect([code, two.code]).toEqual([2, 2]);
});

test("wrong options are usage errors", async () => {
  const files = { "s.yaml": SMALL };
  const seeds = await runCli(["simulate", "-f", "s.yaml", "--seeds", "5..1"], { files });
  expect(seeds.err).toBe("relevo: --seeds is not valid (seeds_invalid); found: 5..1; allowed: A or A..B, whole numbers, such as 1..1000\n");
  const absent = await runCli(["simulate", "-f", "none.yaml"]);
  expect(absent.err).toContain("none.yaml cannot be read (file_unreadable); found: ENOENT");
  const pools = await runCli(["simulate", "-f", "-", "--baselines"], { stdin: scenario("my-pools") });
  expect(pools.err).toContain("Baselines are of fleets");
  expect([seeds.code, absent.code, pools.code]).toEqual([2, 2, 2]);
});
