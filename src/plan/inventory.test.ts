import { describe, expect, test } from "vitest";
import { epoch } from "../kernel/epoch.ts";
import { instance, node, pod } from "../../test/builders/pool.ts";
import { inventoryOf } from "./inventory.ts";

const WELL = { objects: undefined, owners: undefined };
const NEVER = { admittedGeneration: null };
const ONCE = { admittedGeneration: epoch(0, 3) };

describe("the inventory that a cordon relies on", () => {
  test("is complete while candidates that were never admitted are not made, not seen or wait for a place (D8)", () => {
    const candidates = [
      instance("pending", { id: "a", pods: [], record: NEVER }),
      instance("creating", { id: "b", pods: [], record: NEVER }),
      instance("preparing", { id: "c", pods: [], record: NEVER }),
      instance("preparing", { id: "d", pods: [pod("d-0", node("n1")), pod("d-1", null)], podsWanted: 3, record: NEVER }),
    ];
    expect(inventoryOf(WELL, [instance("serving", { record: ONCE }), ...candidates])).toEqual({ state: "complete" });
  });

  test("is incomplete while a pod of one that was admitted is missing or has no place any more (D9, I6)", () => {
    expect(inventoryOf(WELL, [instance("serving", { id: "a", pods: [], podsWanted: 1, record: ONCE })])).toEqual({
      state: "incomplete",
      missing: "1 pods of a",
    });
    expect(inventoryOf(WELL, [instance("preparing", { pods: [pod("a-0", null)], record: ONCE })])).toEqual({
      state: "incomplete",
      missing: "the node of pod a-0",
    });
  });

  test("is incomplete while a pod has a place on a node that is not seen, also that of a candidate (I6)", () => {
    const placed = pod("a-0", null, { scheduledAt: 1 });
    expect(inventoryOf(WELL, [instance("preparing", { pods: [placed], record: NEVER })])).toEqual({
      state: "incomplete",
      missing: "the node of pod a-0",
    });
  });

  test("does not count what is leaving", () => {
    expect(inventoryOf(WELL, [instance("draining", { pods: [], podsWanted: 1, record: ONCE })])).toEqual({ state: "complete" });
  });

  test("is an error when a look failed, whatever else is seen (D9, I6)", () => {
    const candidate = instance("preparing", { pods: [], record: NEVER });
    expect(inventoryOf({ objects: "pods: timeout", owners: "nodeclaims: forbidden" }, [candidate])).toEqual({
      state: "error",
      error: "pods: timeout",
    });
    expect(inventoryOf({ objects: undefined, owners: "nodeclaims: forbidden" }, [candidate])).toEqual({
      state: "error",
      error: "nodeclaims: forbidden",
      isOfOwnersOnly: true,
    });
  });
});
