/** Storms in small: what the model must show, and that its checks can fail. */
import { execFileSync } from "node:child_process";
import { describe, expect, test } from "vitest";
import type { EvacuationPolicy } from "../../plan/evacuation/policy.ts";
import { planEvacuation } from "../../plan/evacuation/schedule.ts";
import type { Grant } from "../../plan/evacuation/types.ts";
import { runStorm } from "./approaches.ts";
import { herd } from "./policies.ts";
import { fleetSchema } from "./fleet.ts";
import { aFleet, onDemand, standby, written } from "./testing/fleets.ts";

const CLASSES = [
  { name: "quotes", priority: "critical", count: 10 },
  { name: "risk", priority: "standard", count: 10 },
  { name: "backtests", priority: "batch", count: 10 },
];

const starts = (log: readonly string[]): readonly string[] => log.filter((line) => line.includes(" goes to "));

describe("a storm", () => {
  test("is the same run for the same fleet, seed and approach, in another process too, and another one for another seed", async () => {
    const [one, again, other] = [
      await runStorm(aFleet(), 1, "relevo"),
      await runStorm(aFleet(), 1, "relevo"),
      await runStorm(aFleet(), 2, "relevo"),
    ];
    expect(again.hash).toBe(one.hash);
    expect(again.figures).toEqual(one.figures);
    expect(other.hash).not.toBe(one.hash);
    const script = `
      import { runStorm } from ${JSON.stringify(new URL("./approaches.ts", import.meta.url).href)};
      import { aFleet } from ${JSON.stringify(new URL("./testing/fleets.ts", import.meta.url).href)};
      console.log((await runStorm(aFleet(), 1, "relevo")).hash);`;
    const elsewhere = execFileSync(process.execPath, ["--no-warnings", "--input-type=module", "--eval", script], { encoding: "utf8" });
    expect(elsewhere.trim()).toBe(one.hash);
  });

  test("in which supply allows all: all are evacuated in time, and nothing acknowledged is lost (S7, S9)", async () => {
    const { figures, violations } = await runStorm(aFleet({ classes: CLASSES }), 1, "relevo");
    expect(violations).toEqual([]);
    expect(figures).toMatchObject({
      instances: 30,
      evacuated: 30,
      within90s: 30,
      unsavable: 0,
      bound: 30,
      ratioToBound: 1,
      availability: 1,
      lost: 0,
    });
    expect(figures.addedMs.mean).toBeGreaterThan(5); // the new place is 10 ms farther
    expect(figures.addedMs.mean).toBeLessThan(45);
  });

  test("with half of the supply exactly the right half survives, the others are told early (S12)", async () => {
    const supplies = CLASSES.map(({ name }) => standby(name, 5));
    const { figures, violations } = await runStorm(aFleet({ classes: CLASSES, supplies }), 1, "relevo");
    expect(violations).toEqual([]);
    const { critical, standard, batch } = figures.byClass;
    expect(figures).toMatchObject({ evacuated: 15, unsavable: 15, bound: 15, ratioToBound: 1 });
    // A critical one takes the room of a batch standby; one of batch that was noticed before anybody else may have had a place already.
    expect(critical).toMatchObject({ instances: 10, evacuated: 10, unsavable: 0, lost: 0 });
    expect(standard?.evacuated).toBeGreaterThanOrEqual(4);
    expect(batch?.evacuated).toBeLessThanOrEqual(1);
  });

  test("one notice at 119 s and 50 duplicates of it are one evacuation", async () => {
    const notices = { duplicates: { share: 1, copies: 50, within: "1s" } };
    const fleet = aFleet({
      classes: [{ name: "quotes", priority: "critical", count: 1 }],
      waves: [{ at: "119s", over: "0s", share: 1 }],
      notices,
    });
    const { figures, log } = await runStorm(fleet, 1, "relevo");
    expect(starts(log).length).toBe(1);
    expect(log.filter((line) => line.includes("is noticed")).length).toBe(1);
    expect(figures).toMatchObject({ instances: 1, evacuated: 1, within90s: 1, lost: 0 });
  });

  test("a machine that goes without a notice is a forced loss: fenced, served elsewhere, what its last checkpoint missed is counted as lost", async () => {
    const { figures, log, violations } = await runStorm(aFleet({ notices: { lost: 1 } }), 1, "relevo");
    expect(violations).toEqual([]);
    expect(figures).toMatchObject({ evacuated: 0, within90s: 10, bound: 0, ratioToBound: 1 });
    expect(figures.lost).toBeGreaterThan(0);
    expect(figures.availability).toBeLessThan(1);
    expect(log.filter((line) => line.includes("is fenced")).length).toBe(10);
  });

  test("standby whose check fails gets no traffic: the next candidate does (S4, I11)", async () => {
    const supplies = [standby("quotes", 10, { checkFails: 1 }), onDemand(10)];
    const { figures, log, violations } = await runStorm(aFleet({ supplies }), 1, "relevo");
    expect(violations).toEqual([]);
    expect(starts(log).every((line) => line.endsWith("goes to away/y/big"))).toBe(true);
    expect(figures).toMatchObject({ evacuated: 10, lost: 0 });
  });

  test("standby that only turns out not to pass: nothing is shifted to it, and another place is found", async () => {
    const supplies = [standby("quotes", 10, { checkFails: 0.6 }), onDemand(20)];
    const { figures, log, violations } = await runStorm(aFleet({ supplies }), 3, "relevo");
    expect(violations).toEqual([]);
    expect(log.some((line) => line.endsWith("check_failed"))).toBe(true);
    expect(figures).toMatchObject({ evacuated: 10, lost: 0, availability: 1 });
  });

  test("results of machines that live on cut off are rejected once the workload was fenced or passed on (I1, I2)", async () => {
    const { staleResults, violations } = await runStorm(aFleet({ notices: { lingering: { share: 1, for: "10s" } } }), 1, "relevo");
    expect(violations).toEqual([]);
    expect(staleResults).toBeGreaterThan(0);
  });

  test("of standby at 20, 80 and 140 ms the nearest is taken first, the one beyond the limit only when nothing nearer is left, and it is counted (S5)", async () => {
    const at = (name: string, latency: string): object => ({
      name,
      provider: "aws",
      latency,
      bandwidth: "12.5G",
      lands: { perSecond: 20 },
      configured: { perSecond: 20, burst: 20 },
    });
    const fleet = fleetSchema.parse({
      ...written(),
      sites: [at("home", "2ms"), at("near", "20ms"), at("mid", "80ms"), at("far", "140ms")],
      supplies: ["near", "mid", "far"].map((site) => ({ ...standby("quotes", 4), site })),
    });
    const { log, breaches, figures, violations } = await runStorm(fleet, 1, "relevo");
    expect(violations).toEqual([]);
    const sites = ["near", "mid", "far"].map((site) => starts(log).filter((line) => line.includes(` goes to ${site}/`)).length);
    expect(sites).toEqual([4, 4, 2]);
    expect(breaches).toBe(2);
    expect(figures).toMatchObject({ evacuated: 10, lost: 0 });
    expect(figures.over50Ms).toBeGreaterThan(0);
  });

  test("5,000 notices on a standby of 800: never one place too many, critical first (I12, I13)", async () => {
    const classes = [
      { name: "quotes", priority: "critical", count: 600 },
      { name: "risk", priority: "standard", count: 1_400 },
      { name: "backtests", priority: "batch", count: 3_000 },
    ];
    const supplies = [standby("quotes", 300), standby("risk", 300), standby("backtests", 200)];
    const fleet = aFleet({
      classes,
      supplies,
      lands: 100,
      burst: 50,
      bandwidth: "500G",
      lead: "40s",
      measureFor: "45s",
      requestsPerSecond: 2,
      waves: [{ at: "0s", over: "0s", share: 1 }],
    });
    const { figures, violations } = await runStorm(fleet, 1, "relevo");
    expect(violations).toEqual([]);
    expect(figures.evacuated).toBe(800);
    expect(figures.bound).toBe(800);
    // Some of lower classes were noticed up to a second earlier.
    expect(figures.byClass.critical?.evacuated).toBeGreaterThan(500);
    expect(figures.byClass.batch?.evacuated).toBeLessThan(150);
  }, 60_000);

  test("replacements keep away from where capacity is dying, once that shows (S2)", async () => {
    const classes = [{ name: "quotes", priority: "critical", count: 40 }];
    const dying = { site: "home", zone: "a", type: "big", kind: "on_demand", count: 100, launchFails: 0.9 };
    const supplies = [dying, onDemand(40)];
    const { log, figures, violations } = await runStorm(
      aFleet({ classes, supplies, waves: [{ at: "0s", over: "20s", share: 1 }] }),
      1,
      "relevo",
    );
    expect(violations).toEqual([]);
    const there = starts(log).map((line) => line.endsWith("goes to home/a/big"));
    expect(there.slice(0, 10)).toContain(true); // it is the nearest
    expect(there.slice(-20)).not.toContain(true);
    expect(figures.evacuated).toBe(40);
  });

  test("an unpaced herd overruns the site: fewer are saved than by the schedule (S12)", async () => {
    const fleet = aFleet({
      classes: [{ name: "quotes", priority: "critical", count: 200 }],
      lands: 4,
      lead: "60s",
      waves: [{ at: "0s", over: "1s", share: 1 }],
    });
    const relevo = await runStorm(fleet, 1, "relevo");
    const unpaced = await runStorm(fleet, 1, "herd");
    expect(relevo.violations).toEqual([]);
    expect(unpaced.figures.evacuated).toBeLessThan(relevo.figures.evacuated);
    expect(relevo.figures.evacuated).toBeLessThanOrEqual(relevo.figures.bound);
    expect(relevo.figures.ratioToBound).toBeGreaterThanOrEqual(0.8);
  });
});

describe("what a storm is told by", () => {
  test("a site lands no more than it lands, however quick one warms up: nobody does better than the bound", async () => {
    for (const approach of ["relevo", "herd", "budgets"] as const) {
      const { figures } = await runStorm(aFleet({ lands: 0.1, burst: 20, warmUp: "0s", lead: "30s" }), 1, approach);
      expect(figures.bound).toBeLessThan(10);
      expect(figures.evacuated).toBeLessThanOrEqual(figures.bound);
    }
  });

  test("who was told to be unsavable stays that when its machine is gone and a late place is found", async () => {
    const fleet = aFleet({ supplies: [onDemand(10)], lead: "20s", lands: 0.4, burst: 1 });
    const { figures, log } = await runStorm(fleet, 1, "relevo");
    expect(log.filter((line) => line.includes("cannot be saved in time")).length).toBeGreaterThanOrEqual(10);
    expect(figures).toMatchObject({ evacuated: 0, within90s: 10, unsavable: 10 });
  });

  test.each([
    ["two supplies of one kind at one spot", { supplies: [onDemand(5), onDemand(1)] }, "supplies.1"],
    [
      "a node that starts later at the earliest than at the latest",
      { supplies: [onDemand(5, { nodeStart: ["30s", "15s"] })] },
      "supplies.0.nodeStart",
    ],
    ["a site that nothing gets into", { bandwidth: "0" }, "sites.0.bandwidth"],
    ["a storm of no time", { measureFor: "0s" }, "measureFor"],
  ])("%s is refused", (_, given, path) => {
    expect(fleetSchema.safeParse(written(given)).error?.issues.map((issue) => issue.path.join("."))).toContain(path);
  });

  test("evictions that are tried again without a pause are refused", () => {
    const { error } = fleetSchema.safeParse({ ...written(), baselines: { evictionRetry: "0s" } });
    expect(error?.issues.map((issue) => issue.path.join("."))).toEqual(["baselines.evictionRetry"]);
  });
});

describe("the checks of a storm can fail", () => {
  const judged = async (policy: EvacuationPolicy, fleet = aFleet({ classes: CLASSES, lands: 2, burst: 2 })): Promise<readonly string[]> => {
    const { violations } = await runStorm(fleet, 1, "relevo", policy);
    return [...new Set(violations.map(({ id }) => id))];
  };

  test("I12: starts that the bucket does not allow", async () => {
    expect(await judged(herd)).toContain("I12");
  });

  test("I12: more places than there are", async () => {
    const generous: EvacuationPolicy = (input) =>
      planEvacuation({ ...input, supplies: input.supplies.map((supply) => ({ ...supply, free: supply.free + 5 })) });
    expect(await judged(generous, aFleet({ supplies: [standby("quotes", 4)], lands: 50, burst: 50 }))).toEqual(["I12"]);
  });

  test("I13: a lower class before a higher one that waits", async () => {
    const inverted: EvacuationPolicy = (input) => {
      const swap = { critical: "batch", standard: "standard", batch: "critical" } as const;
      return planEvacuation({ ...input, evacuees: input.evacuees.map((each) => ({ ...each, priority: swap[each.priority] })) });
    };
    const supplies = [onDemand(30)];
    expect(await judged(inverted, aFleet({ classes: CLASSES, supplies, lands: 2, burst: 2 }))).toEqual(["I13"]);
  });

  test("I13: a place for a lower class while a higher one is told that there is none", async () => {
    const forgetful: EvacuationPolicy = (input) => {
      const others = planEvacuation({ ...input, evacuees: input.evacuees.filter(({ priority }) => priority !== "critical") });
      const none = input.evacuees.flatMap(({ id, priority }): Grant[] =>
        priority === "critical"
          ? [{ kind: "unsavable", evacuee: id, why: "supply", missing: "a place", late: null, reservedUntil: null }]
          : [],
      );
      return { ...others, grants: [...none, ...others.grants] };
    };
    for (const supplies of [[onDemand(30)], [standby("backtests", 10)]])
      expect(await judged(forgetful, aFleet({ classes: CLASSES, supplies, lands: 50, burst: 50 }))).toEqual(["I13"]);
  });
});
