import { beforeEach, expect, test } from "vitest";
import { VirtualClock } from "../kernel/virtual-clock.ts";
import type { Store } from "../store/port.ts";
import { openStore } from "../store/store.ts";
import { Claims } from "./claims.ts";
import type { Member, Members } from "./members.ts";
import { assigneeOf } from "./ownership.ts";

const POOL = "shop/orders";
/** Of a and b, the one that the pool is assigned to, and the other one. */
const MINE = assigneeOf(POOL, ["a", "b"]) ?? "";
const OTHER = MINE === "a" ? "b" : "a";

let store: Store;
let clock: VirtualClock;
let live: readonly string[];

class FakeMembers implements Members {
  readonly self: string;
  readonly isShared = true;
  readonly listeners = new Set<() => void>();
  held = true;

  constructor(self: string) {
    this.self = self;
  }

  start = () => Promise.resolve();
  stop = () => Promise.resolve();
  live = (): readonly Member[] => live.map((id) => ({ id, api: `http://${id}` }));
  isHeld = () => this.held;
  onChange(listener: () => void) {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }
}

interface Replica {
  readonly claims: Claims;
  readonly members: FakeMembers;
  readonly refreshes: string[];
}

function replica(id: string, refresh: () => Promise<void> = () => Promise.resolve()): Replica {
  const members = new FakeMembers(id);
  const refreshes: string[] = [];
  const gateways = {
    refresh: async () => {
      refreshes.push((await store.poolEpochs()).get(POOL) ?? "none");
      await refresh();
    },
  };
  return { claims: new Claims({ store, members, gateways, clock, log: () => undefined }), members, refreshes };
}

function membership(replicas: readonly Replica[], ids: readonly string[]): void {
  live = ids;
  for (const { members } of replicas) for (const listener of members.listeners) listener();
}

beforeEach(async () => {
  store = await openStore({ path: ":memory:" });
  clock = new VirtualClock();
  live = ["a", "b"];
});

test("it takes what is assigned to it, and reads the gateway replicas after its claim", async () => {
  const { claims, refreshes } = replica(MINE);
  expect(claims.isMine(POOL)).toBe(true);
  expect(await claims.take(POOL)).toEqual({ pool: POOL, epoch: "0.1" });
  expect(refreshes).toEqual(["0.1"]);
  expect(await claims.take(POOL)).toEqual({ pool: POOL, epoch: "0.1" });
  expect(refreshes.length).toBe(1);
});

test("what is assigned to another one it leaves, and knows whose it is", () => {
  const { claims } = replica(OTHER);
  expect(claims.isMine(POOL)).toBe(false);
  expect(claims.otherOf(POOL)).toEqual({ id: MINE, api: `http://${MINE}` });
});

test("it waits for an owner that lives to let the pool go, and then takes it at once", async () => {
  const [mine, other] = [replica(MINE), replica(OTHER)];
  live = [OTHER];
  await other.claims.take(POOL);
  membership([mine, other], ["a", "b"]);

  expect(await mine.claims.take(POOL)).toBeUndefined();
  expect(other.claims.isMine(POOL)).toBe(false);
  await other.claims.letGo(POOL);
  expect(other.claims.of(POOL)).toBeUndefined();

  expect(await mine.claims.take(POOL)).toEqual({ pool: POOL, epoch: "0.3" });
});

test("an owner that lives and does not let go is waited for three seconds, and then it has no authority any more (I4)", async () => {
  const [mine, other] = [replica(MINE), replica(OTHER)];
  live = [OTHER];
  const old = await other.claims.take(POOL);
  membership([mine, other], ["a", "b"]);

  expect(await mine.claims.take(POOL)).toBeUndefined();
  await clock.advance(2_900);
  expect(await mine.claims.take(POOL)).toBeUndefined();
  await clock.advance(200);
  expect(await mine.claims.take(POOL)).toEqual({ pool: POOL, epoch: "0.2" });
  expect(other.claims.lostTo(await store.poolEpochs())).toEqual([POOL]);
  await expect(store.commit(old ?? { pool: POOL, epoch: "0.0" as never }, [], clock.now())).rejects.toMatchObject({ code: "stale_epoch" });
});

test("what a dead one had is taken at once", async () => {
  const [mine, other] = [replica(MINE), replica(OTHER)];
  live = [OTHER];
  await other.claims.take(POOL);
  membership([mine], [MINE]);
  expect(await mine.claims.take(POOL)).toEqual({ pool: POOL, epoch: "0.2" });
});

test("one that the others cannot see takes nothing, and keeps what it has", async () => {
  const { claims, members } = replica(MINE);
  members.held = false;
  expect(claims.isMine(POOL)).toBe(false);
  expect(await claims.take(POOL)).toBeUndefined();

  members.held = true;
  await claims.take(POOL);
  members.held = false;
  expect(claims.isMine(POOL)).toBe(true);
});

test("while the gateway replicas cannot be read the pool is not ours yet, and is not claimed once more for it", async () => {
  let isAway = true;
  const { claims } = replica(MINE, () => (isAway ? Promise.reject(new Error("away")) : Promise.resolve()));
  await expect(claims.take(POOL)).rejects.toThrow("away");
  expect(claims.of(POOL)).toBeUndefined();
  isAway = false;
  expect(await claims.take(POOL)).toEqual({ pool: POOL, epoch: "0.1" });
});

test("what was claimed and is not ours yet is handed over too: nobody waits for it, and it is never gone on with", async () => {
  const [mine, other] = [replica(MINE, () => Promise.reject(new Error("away"))), replica(OTHER)];
  await expect(mine.claims.take(POOL)).rejects.toThrow("away");
  expect(mine.claims.pools()).toEqual([POOL]);
  membership([mine, other], [OTHER]);
  live = ["a", "b"];
  await mine.claims.letGo(POOL);
  expect((await store.readPool(POOL))?.owner).toBeNull();
  expect(mine.claims.pools()).toEqual([]);
  await store.claim(POOL, OTHER, clock.now());
  expect(await mine.claims.take(POOL)).toBeUndefined();
});

test("after a recovery of the store what was claimed before it is not gone on with", async () => {
  const { claims } = replica(MINE, () => Promise.reject(new Error("away")));
  await expect(claims.take(POOL)).rejects.toThrow("away");
  claims.clear();
  expect(claims.pools()).toEqual([]);
});

test("to let go of what somebody else has taken already takes nothing from him", async () => {
  const [mine, other] = [replica(MINE), replica(OTHER)];
  live = [OTHER];
  await other.claims.take(POOL);
  membership([mine], [MINE]);
  await mine.claims.take(POOL);
  await other.claims.letGo(POOL);
  expect((await store.readPool(POOL))?.owner).toBe(MINE);
});

test("two processes of one name do not tear a pool to and fro", async () => {
  const [one, two] = [replica(MINE), replica(MINE)];
  await one.claims.take(POOL);
  await two.claims.take(POOL);
  one.claims.drop(POOL);
  expect(await one.claims.take(POOL)).toBeUndefined();
  await clock.advance(3_100);
  expect(await one.claims.take(POOL)).toEqual({ pool: POOL, epoch: "0.3" });
});
