/** What is written on a Pool: when, and what of it is told as an Event. */
import { beforeEach, expect, test } from "vitest";
import { poolOf, serving } from "../../test/builders/pool.ts";
import { directKubeApi } from "../embedded/store/direct-api.ts";
import { storeForTest } from "../embedded/store/store-for-test.ts";
import { VirtualClock } from "../kernel/virtual-clock.ts";
import { type KubeApi, KubeApiError } from "../kube/api.ts";
import { EVENTS, NAMESPACES, POOLS } from "../kube/resources.ts";
import { reason } from "../model/reasons.ts";
import type { Plan } from "../plan/decision.ts";
import type { Pass } from "./pass.ts";
import { parsePool, type PoolEntry } from "./pool-informer.ts";
import { PoolWriter } from "./pool-writer.ts";

const POOL = {
  apiVersion: "relevo.dev/v1alpha1",
  kind: "Pool",
  metadata: { name: "orders", namespace: "default" },
  spec: {
    driver: "service",
    size: { desired: 1 },
    blueprint: { objects: [{ apiVersion: "apps/v1", kind: "Deployment", metadata: { name: "$(relevo.instance)" } }] },
  },
};

let clock: VirtualClock;
let kube: KubeApi;
let statusWrites: number;
/** Undefined while all is well. */
let fault: KubeApiError | undefined;
let log: string[];
let writer: PoolWriter;
let entry: PoolEntry;

beforeEach(async () => {
  clock = new VirtualClock();
  const inner = directKubeApi(storeForTest({ clock }));
  await inner.create(NAMESPACES, { apiVersion: "v1", kind: "Namespace", metadata: { name: "default" } }).catch(() => undefined);
  [statusWrites, fault, log] = [0, undefined, []];
  const failing = async <T>(call: () => Promise<T>): Promise<T> => {
    if (fault) throw fault;
    return call();
  };
  kube = {
    ...inner,
    patch: (ref, body) => failing(() => inner.patch(ref, body)),
    create: (type, object, options) => failing(() => inner.create(type, object, options)),
    patchStatus: (ref, body) => {
      statusWrites += 1;
      return failing(() => inner.patchStatus(ref, body));
    },
  };
  writer = new PoolWriter(kube, clock, (level, message) => log.push(`${level} ${message}`));
  entry = parsed(await inner.create(POOLS, POOL, { namespace: "default" }));
});

function parsed(object: Parameters<typeof parsePool>[0]): PoolEntry {
  const found = parsePool(object);
  if (!found.ok) throw new Error(found.problem);
  return found.value;
}

function passOf(serves: boolean, holds: Plan["holds"] = []): Pass {
  return {
    snapshot: poolOf({ desired: 1 }, serves ? [serving()] : []),
    plan: { decisions: [], holds, nextLookAt: null, recommendation: null },
    at: clock.now(),
  };
}

const HELD: Plan["holds"] = [{ kind: "hold", subject: "", reason: reason("brake", { suspect: 3, total: 4, site: "local", window: "1m" }) }];

async function eventsTold(): Promise<readonly unknown[]> {
  const { items } = await kube.list(EVENTS, { namespace: "default" });
  return items.map(({ type, reason: why }) => `${String(type)} ${String(why)}`);
}

test("a change of Ready or Held is an Event, the first look of a controller is none", async () => {
  for (const pass of [passOf(false), passOf(true), passOf(true, HELD), passOf(true), passOf(false)]) {
    writer.report(entry, pass);
    await clock.advance(10_000);
  }
  expect(await eventsTold()).toEqual(["Normal AsDesired", "Warning Brake", "Normal NothingHeld", "Warning BelowDesired"]);
});

test("phase, reason and message are those of the condition that decides", async () => {
  writer.report(entry, passOf(true, HELD));
  await clock.advance(10);
  expect((await kube.get({ type: POOLS, namespace: "default", name: "orders" }))["status"]).toMatchObject({
    phase: "Held",
    reason: "Brake",
    message:
      "3 of 4 instances of local became suspect within 1m without a notice: the observer is suspected first; held until a second witness confirms",
  });
});

test("a status that may not be written is tried at most once in five seconds, however often the pool is looked at", async () => {
  fault = new KubeApiError({ code: 403, reason: "Forbidden" }, "test");
  for (let look = 0; look < 100; look++) {
    writer.report(entry, passOf(look % 2 === 0));
    await clock.advance(100);
  }
  expect(statusWrites).toBeLessThanOrEqual(3);
  fault = undefined;
  await clock.advance(5_000);
  writer.report(entry, passOf(true));
  await clock.advance(5_000);
  expect((await kube.get({ type: POOLS, namespace: "default", name: "orders" }))["status"]).toMatchObject({ phase: "Serving" });
});

/** Each write waits until it is let through. */
function slowServer(): (() => void)[] {
  const waiting: (() => void)[] = [];
  const write = kube.patchStatus;
  kube.patchStatus = async (ref, body) => {
    await new Promise<void>((resolve) => waiting.push(resolve));
    return await write(ref, body);
  };
  return waiting;
}

const phaseSeen = async (): Promise<unknown> =>
  ((await kube.get({ type: POOLS, namespace: "default", name: "orders" }))["status"] as { phase?: string } | undefined)?.phase;

test("a write that is slow is not overtaken: what is told last is what stays", async () => {
  const waiting = slowServer();
  writer.report(entry, passOf(false));
  await clock.advance(10);
  writer.report(entry, passOf(true, HELD));
  await clock.advance(10);
  writer.report(entry, passOf(true));
  await clock.advance(10);
  expect(waiting.length).toBe(1);
  for (let look = 0; look < 3; look++) {
    waiting.splice(0).forEach((letThrough) => letThrough());
    await clock.advance(6_000);
  }
  expect([await phaseSeen(), statusWrites]).toEqual(["Serving", 2]);
});

test("what was so for a moment only, and is not written yet, is not written later", async () => {
  const pass = passOf(true);
  writer.report(entry, pass);
  await clock.advance(10);
  writer.report({ ...entry, generation: 7 }, pass);
  writer.report(entry, pass);
  await clock.advance(10_000);
  expect(statusWrites).toBe(1);
});

test("nothing is written on a pool that was forgotten, nor kept of it", async () => {
  const waiting = slowServer();
  writer.report(entry, passOf(false));
  await clock.advance(10);
  writer.report(entry, passOf(true));
  await clock.advance(10);
  writer.forget(entry.key);
  waiting.splice(0).forEach((letThrough) => letThrough());
  await clock.advance(10_000);
  expect([waiting.length, await phaseSeen()]).toEqual([0, "Below"]);
});

test("a finalizer that is refused is told by the server's words and tried again after a while", async () => {
  fault = new KubeApiError({ code: 403, reason: "Forbidden", message: "no" }, "test");
  expect([await writer.keep(entry), await writer.keep(entry)]).toEqual(["no", "no"]);
  fault = undefined;
  expect(await writer.keep(entry)).toBe("no");
  await clock.advance(30_000);
  expect(await writer.keep(entry)).toBe(null);
});

test("that Events may not be sent is said once", async () => {
  fault = new KubeApiError({ code: 403, reason: "Forbidden" }, "test");
  for (let count = 0; count < 5; count++) writer.tell(entry, "InstanceServing", "one serves");
  await clock.advance(1_000);
  expect(log.map((line) => line.split(" ")[0])).toEqual(["warn", "debug", "debug", "debug", "debug"]);
});
