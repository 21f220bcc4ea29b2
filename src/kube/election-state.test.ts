import * as fc from "fast-check";
import { expect, test } from "vitest";
import {
  type ElectionEvent,
  type ElectionState,
  electionState,
  liveMembers,
  nextSuspicion,
  type SeenLease,
  stepElection,
} from "./election-state.ts";

const leaseOf = (id: string, stamp: string): SeenLease => ({
  name: `relevo-controller-${id}`,
  uid: `uid-${id}`,
  resourceVersion: stamp,
  id,
  api: `http://${id}`,
  stamp,
});

/** Says what happened when, in seconds, and asks who lives. */
class Script {
  state: ElectionState = electionState({ id: "me", api: "http://me" });
  at = 0;

  say(seconds: number, event: ElectionEvent): this {
    this.at = seconds * 1_000;
    this.state = stepElection(this.state, event, this.at);
    return this;
  }

  /** We renew every second, from after `from` up to `to`. */
  renewing(from: number, to: number): this {
    for (let second = from; second <= to; second++) this.say(second, { type: "renewed" });
    return this;
  }

  listed(seconds: number, ...leases: readonly SeenLease[]): this {
    return this.say(seconds, { type: "listed", askedAt: seconds * 1_000, leases });
  }

  seen(seconds: number, lease: SeenLease): this {
    return this.say(seconds, { type: "seen", lease });
  }

  live(): readonly string[] {
    return liveMembers(this.state).map(({ id }) => id);
  }
}

test("nobody is a member before our Lease is there and the others were listed (S1)", () => {
  const script = new Script();
  expect(script.listed(0, leaseOf("b", "1")).live()).toEqual([]);
  expect(script.say(0.1, { type: "renewed" }).live()).toEqual(["b", "me"]);
});

test("who does not renew for the duration is dead by the next list, and alive again with the next renewal", () => {
  const script = new Script().listed(0, leaseOf("b", "1")).renewing(0, 4);
  expect([script.live(), nextSuspicion(script.state)]).toEqual([["b", "me"], 4_000]);
  expect(script.listed(4, leaseOf("b", "1")).live()).toEqual(["me"]);
  expect(script.seen(4.5, leaseOf("b", "2")).live()).toEqual(["b", "me"]);
});

test("time alone declares nobody dead: the watch may be late, and the list shows the renewal", () => {
  const script = new Script().listed(0, leaseOf("b", "1")).renewing(0, 6);
  expect(script.live()).toEqual(["b", "me"]);
  expect(script.listed(6, leaseOf("b", "2")).live()).toEqual(["b", "me"]);
  expect(nextSuspicion(script.state)).toBe(10_000);
});

test("a Lease that is deleted is gone at once; the deletion of an older one of the same name is not", () => {
  const script = new Script().listed(0, leaseOf("b", "1"), leaseOf("c", "1")).renewing(0, 1);
  expect(script.say(1, { type: "left", name: "relevo-controller-b", uid: "older" }).live()).toEqual(["b", "c", "me"]);
  expect(script.say(1, { type: "left", name: "relevo-controller-b", uid: "uid-b" }).live()).toEqual(["c", "me"]);
  expect(script.listed(2).live()).toEqual(["me"]);
});

test("while the API server is away nobody is dead, and after its return everybody has a full duration (S1)", () => {
  const script = new Script().listed(0, leaseOf("b", "1")).renewing(0, 2);
  expect(script.listed(60, leaseOf("b", "1")).live()).toEqual(["b", "me"]); // a list that got through, our renewal did not yet
  expect(script.renewing(61, 64).listed(64.9, leaseOf("b", "1")).live()).toEqual(["b", "me"]);
  expect(script.renewing(65, 65).listed(65, leaseOf("b", "1")).live()).toEqual(["me"]);
});

test("who stood still itself does not judge by the time that it slept", () => {
  const script = new Script().listed(0, leaseOf("b", "1")).renewing(0, 1);
  script.say(30, { type: "renewed" });
  expect(script.listed(30.1, leaseOf("b", "1")).live()).toEqual(["b", "me"]);
});

test("a list that was asked for before somebody's time was up does not judge, however late it arrives", () => {
  const script = new Script().listed(0, leaseOf("b", "1")).renewing(0, 5);
  expect(script.say(5, { type: "listed", askedAt: 3_900, leases: [leaseOf("b", "1")] }).live()).toEqual(["b", "me"]);
});

test("a replica that renews within its duration is never declared dead, whatever outages and pauses there are (S1)", () => {
  const outage = fc.record({ from: fc.integer({ min: 0, max: 600 }), ticks: fc.integer({ min: 0, max: 120 }) });
  fc.assert(
    fc.property(
      fc.array(outage, { maxLength: 4 }),
      fc.array(fc.boolean(), { minLength: 700, maxLength: 700 }),
      fc.integer({ min: 0, max: 9 }),
      (outages, watchWorks, phase) => {
        const script = new Script().listed(0, leaseOf("b", "0")).say(0, { type: "renewed" });
        const isAway = (tick: number): boolean => outages.some(({ from, ticks }) => tick >= from && tick < from + ticks);
        let stamp = 0;
        for (let tick = 1; tick < 700; tick++) {
          if (isAway(tick)) continue;
          if (tick % 10 === phase) {
            stamp = tick;
            if (watchWorks[tick]) script.seen(tick / 10, leaseOf("b", String(stamp)));
          }
          if (tick % 10 === 5) script.say(tick / 10, { type: "renewed" });
          const suspicion = nextSuspicion(script.state);
          if (suspicion !== null && suspicion <= tick * 100) script.listed(tick / 10, leaseOf("b", String(stamp)));
          expect(script.live()).toEqual(["b", "me"]);
        }
      },
    ),
    { numRuns: 100 },
  );
});
