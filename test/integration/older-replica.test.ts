/** A pool is not activated while a replica of an older version lives, and one that is active stays so (D17). Level: simulated. */
import { afterEach, expect, test } from "vitest";
import { type Member, type Members, olderReplica, onlyMember, otherVersions } from "../../src/control/members.ts";
import { assigneeOf } from "../../src/control/ownership.ts";
import { POOLS } from "../../src/kube/resources.ts";
import { Harness, ordersPool } from "./harness.ts";

const SELF = "new";
/** A name that leaves the pool to the new one. */
const OTHER =
  Array.from({ length: 50 }, (_, index) => `old-${index}`).find((id) => assigneeOf("default/orders", [SELF, id]) === SELF) ?? "";

let harness: Harness;
afterEach(() => harness?.close());

function membersWith(others: readonly Member[]): Members & { become(others: readonly Member[]): void } {
  let live = others;
  const listeners = new Set<() => void>();
  return {
    ...onlyMember(SELF),
    version: "0.2.0",
    live: () => [{ id: SELF, api: null, version: "0.2.0" }, ...live],
    onChange(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    become(next) {
      live = next;
      for (const listener of listeners) listener();
    },
  };
}

const protectedPods = async (): Promise<readonly boolean[]> =>
  (await harness.controlPlane.protection("default/orders")).map(({ isMarked }) => isMarked);

test("while an older replica lives a pool in mode Act is only observed, with the reason; when it is gone the pool is activated; and it stays so", async () => {
  const members = membersWith([{ id: OTHER, api: null, version: "0.1.0" }]);
  harness = await Harness.start({ members });
  await harness.serve(ordersPool({ desired: 2 }));
  await harness.pass(20_000);
  expect(await harness.reasons()).toContain("older_replica");
  expect(await protectedPods()).toEqual([false, false]);

  members.become([]);
  await harness.until("its pods are protected", async () => (await protectedPods()).every(Boolean));
  expect(await harness.reasons()).not.toContain("older_replica");

  // A roll-back: what is active is not left alone with its notices.
  members.become([{ id: OTHER, api: null, version: "0.1.0" }]);
  await harness.pass(10_000);
  expect(await harness.reasons()).not.toContain("older_replica");
  const { status } = await harness.cluster.api.get({ type: POOLS, namespace: "default", name: "orders" });
  expect(status).toMatchObject({ mode: "Act" });
});

test("a replica that says no version is older; one of the same or a newer version, or of a program that compares nothing, is not", () => {
  const of = (version?: string) => membersWith([{ id: "b", api: null, ...(version === undefined ? {} : { version }) }]);
  expect([undefined, "0.1.9", "0.2.0-rc.1", "0.2.0", "0.10.0"].map((version) => olderReplica(of(version)))).toEqual([
    "b (of no known version)",
    "b (0.1.9)",
    "b (0.2.0-rc.1)",
    undefined,
    undefined,
  ]);
  expect([otherVersions(of("0.2.0")), otherVersions(of("0.10.0"))]).toEqual([[], ["b (0.10.0)"]]);
  expect(olderReplica(onlyMember("a"))).toBeUndefined();
});
