/** The store's contract: instances, their phases, trust and incarnations, the route's generation. */
import { expect } from "vitest";
import { NO_ORDINAL } from "../../src/model/instance.ts";
import { mayMove, mayTrust, PHASES, TRUSTS, type Phase } from "../../src/model/phase.ts";
import type { Change } from "../../src/store/port.ts";
import {
  claimed,
  create,
  incarnation,
  instanceIn,
  instanceOf,
  move,
  NOON,
  picture,
  POOL,
  refused,
  walk,
  WAYS,
  type StoreTest,
} from "./store-fixtures.ts";

const LEAD = { apiVersion: "v1", kind: "Pod", namespace: "shop", name: "orders-1", uid: "uid-1" };

export function storeInstancesContract(it: StoreTest): void {
  it("a standby is taken once: by compare-and-set on its phase and purpose, and its time in the phase begins anew", async (store) => {
    const owner = await claimed(store);
    const draft = { ordinal: NO_ORDINAL, purpose: "standby" } as const;
    await store.commit(owner, [create("s-1", draft), ...walk("s-1", WAYS.standby), create("s-2", draft)], NOON);
    const take = (instance: string, replaces: string): Change => ({ kind: "take_standby", instance, replaces, ordinal: 4 });

    const { generation } = await store.commit(owner, [take("s-1", "i-0")], NOON + 5);

    expect(await instanceOf(store, "s-1")).toMatchObject({
      purpose: "replace",
      replaces: "i-0",
      ordinal: 4,
      phase: "standby",
      phaseSince: NOON + 5,
    });
    expect((await store.readPool(POOL))?.generation).toBe(generation);
    await refused(store.commit(owner, [take("s-1", "i-9")], NOON + 6), "store_conflict");
    await refused(store.commit(owner, [take("s-2", "i-0")], NOON + 6), "store_conflict");
    expect(await instanceOf(store, "s-1")).toMatchObject({ replaces: "i-0" });
  });

  it("a new instance is pending, unproven and whole", async (store) => {
    const owner = await claimed(store);

    await store.commit(owner, [create("i-1", { ordinal: 3, purpose: "replace", replaces: "i-0", blueprintHash: "b7" })], NOON);

    expect((await store.readPool(POOL))?.instances).toEqual([
      {
        id: "i-1",
        pool: POOL,
        ordinal: 3,
        purpose: "replace",
        replaces: "i-0",
        phase: "pending",
        phaseSince: NOON,
        createdAt: NOON,
        trust: "ok",
        incarnation: {
          number: 0,
          podName: null,
          podUid: null,
          containerId: null,
          bootId: null,
          nodeName: null,
          nodeUid: null,
          host: null,
          port: null,
        },
        blueprintHash: "b7",
        objects: [],
        admittedGeneration: null,
        drainGeneration: null,
        drainLoss: null,
        drainSince: null,
        drainDeadline: null,
        seal: null,
        failure: null,
        failedAt: null,
      },
    ]);
  });

  it("an id is used once", async (store) => {
    const owner = await claimed(store);
    await store.commit(owner, [create("i-1")], NOON);
    await refused(store.commit(owner, [create("i-1")], NOON), "store_conflict");
  });

  it("a blueprint is stored once per hash and never changes", async (store) => {
    const owner = await claimed(store);
    await store.commit(owner, [create("i-1", { blueprintHash: "b1", blueprint: { objects: [{ kind: "Pod" }] } })], NOON);
    await store.commit(owner, [create("i-2", { blueprintHash: "b1", blueprint: { objects: ["other"] } })], NOON);

    expect(await store.getBlueprint("b1")).toEqual({ objects: [{ kind: "Pod" }] });
    expect(await store.getBlueprint("b2")).toBeUndefined();
  });

  it("a phase moves along the table of phases and in no other way", async (store) => {
    const owner = await claimed(store);
    for (const from of PHASES) {
      for (const to of PHASES) {
        const id = `i-${from}-${to}`;
        await store.commit(owner, instanceIn(from, id), NOON);
        const moved = store.commit(owner, [move(id, from, to)], NOON + 5);
        if (mayMove(from, to)) await moved;
        else await refused(moved, "store_conflict");
        expect(await instanceOf(store, id)).toMatchObject(
          mayMove(from, to) ? { phase: to, phaseSince: NOON + 5 } : { phase: from, phaseSince: NOON },
        );
      }
    }
  });

  it("a move is refused when the phase is not the one that the caller saw", async (store) => {
    const owner = await claimed(store);
    await store.commit(owner, instanceIn("creating", "i-1"), NOON);

    await expect(store.commit(owner, [move("i-1", "pending", "creating")], NOON)).rejects.toMatchObject({
      code: "store_conflict",
      class: "conflict",
      found: "creating",
      allowed: "pending",
    });
    await refused(
      store.commit(owner, [{ kind: "update_instance", instance: "i-1", phase: "pending", set: { failure: "x" } }], NOON),
      "store_conflict",
    );
    await refused(store.commit(owner, [move("i-2", "pending", "creating")], NOON), "store_conflict");
  });

  it("a move that names an incarnation is refused in another", async (store) => {
    const owner = await claimed(store);
    await store.commit(owner, instanceIn("creating", "i-1"), NOON);
    await store.commit(owner, [{ kind: "renew_incarnation", instance: "i-1", after: 0, incarnation: incarnation(1) }], NOON);
    const toPreparing = (number: number): Change => ({
      kind: "move_instance",
      instance: "i-1",
      incarnation: number,
      from: "creating",
      to: "preparing",
    });

    await refused(store.commit(owner, [toPreparing(0)], NOON), "store_conflict");
    await refused(store.commit(owner, [toPreparing(2)], NOON), "store_conflict");
    await store.commit(owner, [toPreparing(1)], NOON);
    expect((await instanceOf(store, "i-1")).phase).toBe("preparing");
  });

  it("facts that are given change, with a move or without; the others stay", async (store) => {
    const owner = await claimed(store);
    await store.commit(owner, instanceIn("creating", "i-1"), NOON);
    await store.commit(owner, [{ kind: "renew_incarnation", instance: "i-1", after: 0, incarnation: incarnation(1) }], NOON);

    await store.commit(
      owner,
      [{ kind: "move_instance", instance: "i-1", from: "creating", to: "preparing", set: { objects: [LEAD] } }],
      NOON,
    );
    await store.commit(owner, [{ kind: "update_instance", instance: "i-1", phase: "preparing", set: { bootId: "boot-x" } }], NOON + 1);
    await store.commit(
      owner,
      [
        {
          kind: "move_instance",
          instance: "i-1",
          from: "preparing",
          to: "draining",
          set: { drainLoss: "deadline", drainDeadline: NOON + 9, bootId: null },
        },
      ],
      NOON + 2,
    );
    const before = (await store.readPool(POOL))?.generation;
    await store.commit(owner, [{ kind: "update_instance", instance: "i-1", phase: "draining", set: { drainDeadline: null } }], NOON + 3);
    expect((await store.readPool(POOL))?.generation, "the gateways must hear of another deadline").not.toBe(before);
    await store.commit(
      owner,
      [{ kind: "move_instance", instance: "i-1", from: "draining", to: "sealed", set: { seal: "assumed" } }],
      NOON + 4,
    );

    expect(await instanceOf(store, "i-1")).toMatchObject({
      phase: "sealed",
      phaseSince: NOON + 4,
      objects: [LEAD],
      incarnation: { ...incarnation(1), bootId: null },
      drainLoss: "deadline",
      drainSince: NOON + 2,
      drainDeadline: null,
      seal: "assumed",
      failure: null,
    });
  });

  it("a failed candidate tells when and why, also after it is deleted; the last hundred are shown, newest last", async (store) => {
    const owner = await claimed(store);
    for (let number = 0; number < 102; number++) {
      const id = `i-${number}`;
      const failed = { kind: "move_instance", instance: id, from: "pending", to: "failed", set: { failure: `f-${number}` } } as const;
      await store.commit(owner, [create(id, { replaces: "i-x" }), failed], NOON + number);
      if (number === 50) await store.commit(owner, walk(id, ["retiring", "retired", "deleted"], "failed"), NOON + number);
    }

    const failures = (await store.readPool(POOL))?.failures ?? [];

    expect(failures).toEqual(
      Array.from({ length: 100 }, (_, index) => ({
        instance: `i-${index + 2}`,
        at: NOON + index + 2,
        failure: `f-${index + 2}`,
        replaces: "i-x",
        purpose: "fill",
      })),
    );
    expect(await instanceOf(store, "i-7")).toMatchObject({ phase: "failed", failure: "f-7", failedAt: NOON + 7 });
  });

  it("a new incarnation follows the one that the caller saw, and is trusted", async (store) => {
    const owner = await claimed(store);
    await store.commit(owner, instanceIn("creating", "i-1"), NOON);
    await store.commit(
      owner,
      [
        { kind: "renew_incarnation", instance: "i-1", after: 0, incarnation: incarnation(1) },
        { kind: "set_trust", instance: "i-1", incarnation: 1, from: "ok", to: "fenced" },
      ],
      NOON,
    );
    const before = await picture(store);

    for (const [after, number] of [
      [0, 1],
      [2, 3],
      [1, 3],
    ] as const)
      await refused(
        store.commit(owner, [{ kind: "renew_incarnation", instance: "i-1", after, incarnation: incarnation(number) }], NOON),
        "store_conflict",
      );
    expect(await picture(store)).toEqual(before);

    await store.commit(owner, [{ kind: "renew_incarnation", instance: "i-1", after: 1, incarnation: incarnation(2) }], NOON);
    expect(await instanceOf(store, "i-1")).toMatchObject({ incarnation: incarnation(2), trust: "ok", phase: "creating", phaseSince: NOON });
  });

  it("trust changes along its table, from what the caller saw, in the incarnation that it saw", async (store) => {
    const owner = await claimed(store);
    for (const from of TRUSTS) {
      for (const to of TRUSTS) {
        const id = `i-${from}-${to}`;
        await store.commit(owner, [create(id)], NOON);
        if (from !== "ok") await store.commit(owner, [{ kind: "set_trust", instance: id, incarnation: 0, from: "ok", to: from }], NOON);
        await refused(store.commit(owner, [{ kind: "set_trust", instance: id, incarnation: 1, from, to }], NOON), "store_conflict");
        const changed = store.commit(owner, [{ kind: "set_trust", instance: id, incarnation: 0, from, to }], NOON);
        if (mayTrust(from, to)) await changed;
        else await refused(changed, "store_conflict");
        expect((await instanceOf(store, id)).trust).toBe(mayTrust(from, to) ? to : from);
      }
    }
    await store.commit(owner, [create("i-seen")], NOON);
    await refused(
      store.commit(owner, [{ kind: "set_trust", instance: "i-seen", incarnation: 0, from: "suspect", to: "fenced" }], NOON),
      "store_conflict",
    );
  });

  const raising: readonly (readonly [Phase, Phase, boolean])[] = [
    ["pending", "creating", false],
    ["preparing", "validating", false],
    ["validating", "standby", false],
    ["standby", "admitted", true],
    ["validating", "admitted", true],
    ["admitted", "serving", false],
    ["admitted", "preparing", true],
    ["serving", "preparing", true],
    ["serving", "draining", true],
    ["admitted", "draining", true],
    ["preparing", "draining", true],
    ["draining", "sealed", true],
    ["sealed", "retiring", false],
    ["retired", "deleted", false],
    ["preparing", "failed", false],
  ];
  for (const [from, to, raises] of raising) {
    it(`the generation ${raises ? "rises with" : "is left alone by"} a move from ${from} to ${to}`, async (store) => {
      const owner = await claimed(store);
      const before = await store.commit(owner, instanceIn(from, "i-1"), NOON);
      const after = await store.commit(owner, [move("i-1", from, to)], NOON + 1);

      expect(Number(after.generation.slice(2)) - Number(before.generation.slice(2))).toBe(raises ? 1 : 0);
      const record = await instanceOf(store, "i-1");
      if (to === "admitted") expect(record.admittedGeneration).toBe(after.generation);
      if (to === "draining") expect(record).toMatchObject({ drainGeneration: after.generation, drainSince: NOON + 1 });
    });
  }

  for (const [phase, raises] of [
    ["preparing", false],
    ["standby", false],
    ["admitted", true],
    ["serving", true],
    ["draining", true],
    ["sealed", false],
  ] as const) {
    it(`the generation ${raises ? "rises with" : "is left alone by"} a new incarnation of an instance that is ${phase}`, async (store) => {
      const owner = await claimed(store);
      const before = await store.commit(owner, instanceIn(phase, "i-1"), NOON);
      const after = await store.commit(
        owner,
        [{ kind: "renew_incarnation", instance: "i-1", after: 0, incarnation: incarnation(1) }],
        NOON,
      );
      expect(Number(after.generation.slice(2)) - Number(before.generation.slice(2))).toBe(raises ? 1 : 0);
    });
  }

  it("one commit raises the generation once, and all its members bear the same", async (store) => {
    const owner = await claimed(store);
    await store.commit(owner, [...instanceIn("validating", "i-1"), ...instanceIn("serving", "i-2")], NOON);
    const { generation } = await store.commit(owner, [move("i-1", "validating", "admitted"), move("i-2", "serving", "draining")], NOON);

    expect(generation).toBe("0.2");
    expect((await instanceOf(store, "i-1")).admittedGeneration).toBe("0.2");
    expect(await instanceOf(store, "i-2")).toMatchObject({ admittedGeneration: "0.1", drainGeneration: "0.2" });
  });

  it("nothing but moves and incarnations raises the generation", async (store) => {
    const owner = await claimed(store);
    const { generation } = await store.commit(owner, instanceIn("serving", "i-1"), NOON);
    await store.claim("shop/other", "controller-a", NOON);

    const after = await store.commit(
      owner,
      [
        { kind: "update_instance", instance: "i-1", phase: "serving", set: { objects: [LEAD] } },
        { kind: "set_trust", instance: "i-1", incarnation: 0, from: "ok", to: "suspect" },
        { kind: "count_loss", instance: "i-1", loss: "forced", obligations: 1, seal: "forced" },
        create("i-2"),
      ],
      NOON,
    );

    expect(after.generation).toBe(generation);
    expect((await store.readPool("shop/other"))?.generation).toBe("0.0");
  });
}
