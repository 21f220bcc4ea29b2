/** KEDA's calls as KEDA makes them, over real gRPC on a loopback address. Level: real processes' protocol, in one process. */
import { type ClientReadableStream, credentials, makeGenericClientConstructor, Metadata, type ServiceError, status } from "@grpc/grpc-js";
import { afterEach, describe, expect, test } from "vitest";
import { systemClock } from "../../kernel/system.ts";
import { externalScalerService, type IsActiveResponse } from "./contract.ts";
import { type KedaScaler, startKedaScaler, STREAMS_PER_POOL_MAX } from "./server.ts";

type Size = number | null | undefined | Error;

class Sizes {
  readonly sizes = new Map<string, Size>();
  readonly #listeners = new Set<(pool: string) => void>();

  async sizeOf(pool: string): Promise<number | null | undefined> {
    const size = this.sizes.get(pool);
    if (size instanceof Error) throw size;
    return size;
  }

  onChange(listener: (pool: string) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  set(pool: string, size: Size): void {
    this.sizes.set(pool, size);
    for (const listener of this.#listeners) listener(pool);
  }
}

const Client = makeGenericClientConstructor(externalScalerService(), "externalscaler.ExternalScaler");
type Call = (request: unknown, metadata: Metadata, callback: (error: ServiceError | null, answer: unknown) => void) => void;

let scaler: KedaScaler | undefined;
let client: InstanceType<typeof Client> | undefined;
afterEach(async () => {
  client?.close();
  await scaler?.close();
});

async function start(tokens: readonly string[] = []): Promise<Sizes> {
  const sizes = new Sizes();
  scaler = await startKedaScaler({ host: "127.0.0.1", port: 0, tokens, sizes, clock: systemClock, log: () => undefined });
  client = new Client(scaler.address, credentials.createInsecure());
  return sizes;
}

const ref = (
  scalerMetadata: Readonly<Record<string, string>> = { pool: "shop/capture", scalerAddress: "relevo:6000" },
  namespace = "shop",
) => ({
  name: "capture",
  namespace,
  scalerMetadata,
});

function ask(method: string, request: unknown, metadata = new Metadata()): Promise<unknown> {
  const call = (client as unknown as Record<string, Call>)[method];
  return new Promise((resolve) => {
    call?.call(client, request, metadata, (error, answer) => resolve(error === null ? answer : (status[error.code] ?? error.code)));
  });
}
const metrics = (request: unknown = ref()) => ask("GetMetrics", { scaledObjectRef: request, metricName: "relevo-shop-capture" });

function listen(request: unknown = ref()): { readonly told: (boolean | string)[]; cancel(): void } {
  const open = (client as unknown as { StreamIsActive(request: unknown): ClientReadableStream<IsActiveResponse> }).StreamIsActive(request);
  const told: (boolean | string)[] = [];
  open.on("data", ({ result }: IsActiveResponse) => told.push(result));
  open.on("error", (error) => told.push(status[(error as ServiceError).code] ?? "?"));
  return { told, cancel: () => open.cancel() };
}

async function until(holds: () => boolean): Promise<void> {
  const end = systemClock.monotonic() + 5_000;
  while (!holds()) {
    if (systemClock.monotonic() > end) throw new Error("not within 5 s");
    await systemClock.sleep(5);
  }
}

describe("an existing KEDA", () => {
  test("is told the size that was decided as a metric whose target is 1 (K11)", async () => {
    const sizes = await start();
    sizes.set("shop/capture", 7);
    expect([await ask("IsActive", ref()), await ask("GetMetricSpec", ref()), await metrics()]).toEqual([
      { result: true },
      { metricSpecs: [{ metricName: "relevo-shop-capture", targetSize: 1, targetSizeFloat: 1 }] },
      { metricValues: [{ metricName: "relevo-shop-capture", metricValue: 7, metricValueFloat: 7 }] },
    ]);
    sizes.set("shop/capture", 0);
    expect([await ask("IsActive", ref()), await metrics()]).toEqual([
      { result: false },
      { metricValues: [{ metricName: "relevo-shop-capture", metricValue: 0, metricValueFloat: 0 }] },
    ]);
  });

  test("is pushed a change as it comes, and the same twice not at all (K11)", async () => {
    const sizes = await start();
    sizes.set("shop/capture", 0);
    const stream = listen();
    await until(() => stream.told.length === 1);
    for (const size of [3, 9, 0, 0, 2]) {
      sizes.set("shop/capture", size);
      await metrics();
    }
    await until(() => stream.told.length === 4);
    expect(stream.told).toEqual([false, true, false, true]);
    stream.cancel();
  });

  test("gets an error and never a zero while nothing is known; and what was decided last while nobody can say (K11)", async () => {
    const sizes = await start();
    sizes.set("shop/capture", null);
    expect([await ask("IsActive", ref()), await metrics()]).toEqual(["UNAVAILABLE", "UNAVAILABLE"]);
    const stream = listen();
    sizes.set("shop/capture", 5);
    await until(() => stream.told.length === 1);
    sizes.set("shop/capture", new Error("the store is away"));
    expect([await ask("IsActive", ref()), await metrics(), stream.told]).toEqual([
      { result: true },
      { metricValues: [{ metricName: "relevo-shop-capture", metricValue: 5, metricValueFloat: 5 }] },
      [true],
    ]);
    for (const odd of [Number.NaN, -1, Number.POSITIVE_INFINITY, 1.5]) {
      sizes.set("shop/capture", odd);
      expect(await metrics()).toBe("UNAVAILABLE");
    }
  });

  test("a pool that is not there, or is of another namespace, is not found; one that goes ends its streams", async () => {
    const sizes = await start();
    sizes.set("shop/capture", 1);
    sizes.set("bank/capture", 1);
    const stream = listen();
    await until(() => stream.told.length === 1);
    sizes.set("shop/capture", undefined);
    await until(() => stream.told.length === 2);
    expect([
      stream.told,
      await ask("IsActive", ref({ pool: "shop/other" })),
      await ask("IsActive", ref({ pool: "bank/capture" })),
      await metrics(ref({ pool: "bank/capture" })),
      await ask("GetMetricSpec", ref({ pool: "bank/capture" })),
    ]).toEqual([[true, "NOT_FOUND"], "NOT_FOUND", "NOT_FOUND", "NOT_FOUND", "NOT_FOUND"]);
  });
});

test.each([
  ["none at all", {}],
  ["no namespace", { pool: "capture" }],
  ["a path", { pool: "../shop/capture" }],
  ["a line break", { pool: "shop/capture\nx" }],
  ["a very long name", { pool: `shop/${"a".repeat(10_000)}` }],
  ["names of the language's own", { __proto__: "x", constructor: "y", toString: "z" }],
])("metadata that names no pool is refused: %s", async (_what, metadata) => {
  const sizes = await start();
  sizes.set("shop/capture", 1);
  expect(await ask("IsActive", ref(metadata as Record<string, string>))).toBe("INVALID_ARGUMENT");
});

test("a request without a reference, and one that is too long, are refused", async () => {
  const sizes = await start();
  sizes.set("shop/capture", 1);
  expect([
    await ask("GetMetrics", { metricName: "x" }),
    await ask("IsActive", ref({ pool: "shop/capture", more: "x".repeat(100_000) })),
    await ask("IsActive", ref()),
  ]).toEqual(["INVALID_ARGUMENT", "RESOURCE_EXHAUSTED", { result: true }]);
});

test("of one pool no more streams are open at once than are allowed, and one that ends makes room", async () => {
  const sizes = await start();
  sizes.set("shop/capture", 1);
  const streams = Array.from({ length: STREAMS_PER_POOL_MAX }, () => listen());
  await until(() => streams.every(({ told }) => told.length === 1));
  const beyond = listen();
  await until(() => beyond.told.length === 1);
  expect(beyond.told).toEqual(["RESOURCE_EXHAUSTED"]);
  streams[0]?.cancel();
  let told: (boolean | string)[] = [];
  await until(() => {
    if (told.length === 0 || told[0] === "RESOURCE_EXHAUSTED") ({ told } = listen());
    return told[0] === true;
  });
  for (const { cancel } of streams) cancel();
});

test("where tokens are asked for, the trigger's metadata or the call carries one", async () => {
  const sizes = await start(["s3cret-of-keda-1"]);
  sizes.set("shop/capture", 1);
  const bearer = new Metadata();
  bearer.set("authorization", "Bearer s3cret-of-keda-1");
  expect([
    await ask("IsActive", ref()),
    await ask("IsActive", ref({ pool: "shop/capture", token: "guess" })),
    await ask("IsActive", ref({ pool: "shop/capture", token: "s3cret-of-keda-1" })),
    await ask("IsActive", ref(), bearer),
  ]).toEqual(["UNAUTHENTICATED", "UNAUTHENTICATED", { result: true }, { result: true }]);
});

test("without TLS it listens on no address of the network", async () => {
  const options = { port: 0, sizes: new Sizes(), clock: systemClock, log: () => undefined };
  await expect(startKedaScaler({ ...options, host: "0.0.0.0" })).rejects.toMatchObject({ code: "keda_scaler_insecure" });
});
