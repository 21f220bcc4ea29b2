import { describe, expect, test } from "vitest";
import { reactionsTo, risesWhileStuck } from "./watch.ts";

const sample = (at: number, busy: number, stuck: number) => ({ at, workers: 2, busy, stuck });

describe("what is seen of workers", () => {
  test("a rise counts when slots are stuck before and after it, and not when they became free meanwhile", () => {
    const changes = [
      { at: 0, replicas: 2 },
      { at: 150, replicas: 3 },
      { at: 350, replicas: 5 },
      { at: 550, replicas: 4 },
      { at: 650, replicas: 6 },
    ];
    const samples = [sample(100, 4, 4), sample(200, 4, 3), sample(300, 4, 1), sample(400, 4, 0), sample(500, 4, 4), sample(600, 4, 4)];
    expect(risesWhileStuck(changes, samples, 0.2)).toBe(1);
  });

  test("as many as are allowed to be stuck hold nothing back", () => {
    const changes = [
      { at: 0, replicas: 2 },
      { at: 150, replicas: 3 },
    ];
    expect(risesWhileStuck(changes, [sample(100, 10, 2), sample(200, 10, 2)], 0.2)).toBe(0);
  });

  test("a reaction is the time to the first rise after the demand", () => {
    const changes = [
      { at: 50, replicas: 2 },
      { at: 1_300, replicas: 3 },
      { at: 4_000, replicas: 2 },
      { at: 5_400, replicas: 6 },
    ];
    expect(reactionsTo([1_000, 5_000, 6_000], changes)).toEqual([300, 400, null]);
  });
});
