import { beforeEach, expect, test } from "vitest";
import { epoch } from "../kernel/epoch.ts";
import { RelevoError } from "../kernel/errors.ts";
import { VirtualClock } from "../kernel/virtual-clock.ts";
import { LeaseTokens } from "../lease/token.ts";
import type { Workload } from "../model/writer.ts";
import { LeaseWatch } from "../observe/lease-watch.ts";
import { type LeaseRenewal, storeUnavailable } from "../store/port.ts";
import { KEPT_TTL_MS, Leases, type LeasesOptions } from "./leases.ts";

const TTL_MS = 9_000;
const OWN: LeaseRenewal = { pool: "default/orders", instance: "orders-1", bootId: "boot-1", epoch: null };
const WORKLOAD: Workload = {
  pool: OWN.pool,
  ordinal: 2,
  writerEpoch: epoch(0, 7),
  minAcceptedEpoch: epoch(0, 7),
  holder: { instance: OWN.instance, incarnation: 1, bootId: OWN.bootId },
  renewals: 1,
  ttlMs: TTL_MS,
};

let clock: VirtualClock;
let watch: LeaseWatch;
let ttl: number | null;
let asked: LeaseRenewal[];
let answer: () => Promise<Workload>;
let leases: Leases;

beforeEach(() => {
  clock = new VirtualClock();
  watch = new LeaseWatch({ clock, onReturn: () => undefined });
  ttl = TTL_MS;
  asked = [];
  answer = async () => WORKLOAD;
  leases = new Leases(options());
});

function options(): LeasesOptions {
  return {
    store: {
      renewLease: async (renewal, ttlMs) => {
        asked.push(renewal);
        return { ...(await answer()), ttlMs };
      },
    },
    clock,
    watch,
    door: { tokens: new LeaseTokens("key of the test"), url: () => "http://127.0.0.1:7070/v1/leases/renew" },
    onAhead: () => undefined,
    ttlOf: () => ttl,
  };
}

const stateNow = (): string => watch.stateOf(OWN.pool, OWN.instance, 1).state;

test("the access of an admission is bound to the process, and leads to this controller", () => {
  const access = leases.accessFor(OWN.pool, OWN.instance, OWN.bootId, TTL_MS);
  expect(access).toEqual({
    url: "http://127.0.0.1:7070/v1/leases/renew",
    token: new LeaseTokens("key of the test").issue(OWN),
    pool: OWN.pool,
    instance: OWN.instance,
    ttlMs: TTL_MS,
  });
});

test("a renewal answers epoch and TTL, and is seen by the judge", async () => {
  watch.observe(OWN.pool, [WORKLOAD], TTL_MS);
  await clock.advance(TTL_MS - 1);
  expect(await leases.renew(OWN)).toEqual({
    pool: OWN.pool,
    ordinal: 2,
    writerEpoch: "0.7",
    ttlMs: TTL_MS,
    proof: new LeaseTokens("key of the test").proofOf({ ...OWN, ordinal: 2, epoch: epoch(0, 7) }),
  });
  await clock.advance(TTL_MS - 1);
  expect(stateNow()).toBe("renewed");
});

test("a pool that has no lease any more lets its holder renew", async () => {
  ttl = null;
  expect(await leases.renew(OWN)).toMatchObject({ ttlMs: KEPT_TTL_MS });
});

test("a renewal that the store could not take is nobody's silence; one that it refused is", async () => {
  const later = { ...WORKLOAD, renewals: 5 };
  watch.observe(OWN.pool, [later], TTL_MS);
  await clock.advance(TTL_MS);
  expect(stateNow()).toBe("late");
  answer = () => Promise.reject(new RelevoError("lease_fenced", "it is fenced"));
  await expect(leases.renew(OWN)).rejects.toMatchObject({ code: "lease_fenced" });
  expect(stateNow()).toBe("late");
  answer = () => Promise.reject(storeUnavailable("the disk is full", undefined));
  await expect(leases.renew(OWN)).rejects.toMatchObject({ code: "store_unavailable" });
  expect(stateNow()).toBe("unproven");
});

test("one that comes with an epoch that the store has not given is told of, and excuses nobody else's silence", async () => {
  const ahead: unknown[] = [];
  leases = new Leases({ ...options(), onAhead: (...claim) => ahead.push(claim) });
  watch.observe(OWN.pool, [WORKLOAD], TTL_MS);
  await clock.advance(TTL_MS);
  answer = () => Promise.reject(new RelevoError("store_rewound", "it was rewound", { class: "retryable" }));
  const given = { ...OWN, instance: "orders-9", epoch: epoch(0, 9), ordinal: 2 };
  const proof = new LeaseTokens("key of the test").proofOf(given);
  await expect(leases.renew({ ...given, proof })).rejects.toMatchObject({ code: "store_rewound" });
  expect([ahead, stateNow()]).toEqual([[[OWN.pool, "orders-9", "0.9"]], "late"]);
});

test("an instance that makes an epoch up is no witness: it cannot hold its pool", async () => {
  const ahead: unknown[] = [];
  leases = new Leases({ ...options(), onAhead: (...claim) => ahead.push(claim) });
  answer = () => Promise.reject(new RelevoError("store_rewound", "it was rewound", { class: "retryable" }));
  const tokens = new LeaseTokens("key of the test");
  const given = { ...OWN, epoch: epoch(0, 7), ordinal: 2 };
  const proof = tokens.proofOf(given);
  const lies = [
    { ...given, epoch: epoch(999_999, 1) },
    { ...given, epoch: epoch(999_999, 1), proof: "" },
    { ...given, epoch: epoch(999_999, 1), proof },
    { ...given, epoch: epoch(999_999, 1), proof: tokens.issue(OWN) },
    { ...given, ordinal: 3, proof },
    { ...given, ordinal: undefined, proof },
    { ...given, instance: "orders-9", proof },
    { ...given, bootId: "boot-2", proof },
    { ...given, pool: "default/other", proof },
    { ...given, proof: new LeaseTokens("another key").proofOf(given) },
  ];
  for (const lie of lies) await expect(leases.renew(lie)).rejects.toMatchObject({ code: "lease_epoch_unproven", class: "retryable" });
  expect(ahead).toEqual([]);
});

test("while a renewal waits for the store its holder is not late", async () => {
  watch.observe(OWN.pool, [WORKLOAD], TTL_MS);
  const waiting = Promise.withResolvers<Workload>();
  answer = () => waiting.promise;
  const renewed = leases.renew(OWN);
  await clock.advance(3 * TTL_MS);
  expect(stateNow()).toBe("unproven");
  waiting.resolve({ ...WORKLOAD, renewals: 2 });
  await renewed;
  expect(stateNow()).toBe("renewed");
});

test("one process that asks without end is bounded, each by itself, and the store is not asked", async () => {
  const results = await Promise.allSettled(Array.from({ length: 30 }, () => leases.renew(OWN)));
  expect(results.filter(({ status }) => status === "fulfilled").length).toBe(20);
  expect(results.at(-1)).toMatchObject({ reason: { code: "lease_too_often", class: "retryable" } });
  expect(asked.length).toBe(20);
  await leases.renew({ ...OWN, bootId: "boot-2" });

  await clock.advance(1_000);
  const later = await Promise.allSettled(Array.from({ length: 30 }, () => leases.renew(OWN)));
  expect(later.filter(({ status }) => status === "fulfilled").length).toBe(10);
  await clock.advance(60_000);
  await leases.renew(OWN);
});

test("who asks twice as often as it may gets through half of the time, not never", async () => {
  await Promise.allSettled(Array.from({ length: 20 }, () => leases.renew(OWN)));
  const results: string[] = [];
  for (let call = 0; call < 40; call++) {
    await clock.advance(50);
    results.push(
      await leases.renew(OWN).then(
        () => "taken",
        (error: RelevoError) => error.code,
      ),
    );
  }
  expect(results.filter((result) => result === "taken").length).toBe(20);
});
