import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { compareEpochs, epoch as epochOf } from "../kernel/epoch.ts";
import { RelevoError } from "../kernel/errors.ts";
import { createLanding, createSink, memoryEpochs, type Stamp } from "./index.ts";
import type { SinkWriter } from "./sink.ts";

const stamp = (epoch: string, workload = "default/orders#0"): Stamp => ({ workload, epoch });

async function codeOf(promise: Promise<unknown>): Promise<string> {
  return promise.then(
    () => "done",
    (error: unknown) => (error instanceof RelevoError ? error.code : String(error)),
  );
}

describe("a landing", () => {
  test("takes what is as new as the newest it has seen, and nothing older (I1, I2)", async () => {
    const landing = createLanding(memoryEpochs());
    const written: string[] = [];
    const outcomes: string[] = [];
    for (const epoch of ["1.1", "1.1", "1.3", "1.2", "1.3", "1.10", "1.9", "2.1", "1.11"])
      outcomes.push(await codeOf(landing.land(stamp(epoch), () => void written.push(epoch))));
    expect(outcomes).toEqual(["done", "done", "done", "stale_writer", "done", "done", "stale_writer", "done", "stale_writer"]);
    expect(written).toEqual(["1.1", "1.1", "1.3", "1.3", "1.10", "2.1"]);
  });

  test("that was opened under an epoch takes nothing older, though nothing was written yet", async () => {
    const landing = createLanding(memoryEpochs());
    await landing.land(stamp("1.1"), () => undefined);
    await landing.open(stamp("1.2"));
    expect(await codeOf(landing.land(stamp("1.1"), () => undefined))).toBe("stale_writer");
    expect(await codeOf(landing.open(stamp("1.1")))).toBe("stale_writer");
  });

  test("keeps workloads apart", async () => {
    const landing = createLanding(memoryEpochs());
    await landing.open(stamp("1.9", "default/orders#0"));
    expect(await codeOf(landing.land(stamp("1.1", "default/orders#1"), () => undefined))).toBe("done");
  });

  test("that could not write has not seen the epoch either", async () => {
    const landing = createLanding(memoryEpochs());
    const broken = landing.land(stamp("1.5"), () => Promise.reject(new Error("disk full")));
    await expect(broken).rejects.toThrow("disk full");
    expect(await codeOf(landing.land(stamp("1.4"), () => undefined))).toBe("done");
  });

  test.each(["", "1", "1.x", "one.two", "01.1"])("takes nothing under %j, which is no epoch", async (epoch) => {
    expect(await codeOf(createLanding(memoryEpochs()).land(stamp(epoch), () => undefined))).toBe("stale_writer");
  });

  test("takes nothing when what it keeps cannot be read", async () => {
    const landing = createLanding<undefined>({
      transaction: async (_workload, use) => use({ highest: "?", raise: () => undefined }, undefined),
    });
    expect(await codeOf(landing.land(stamp("9.9"), () => undefined))).toBe("epoch_unreadable");
  });

  test("however writers overlap, what lands never goes back to an older one", async () => {
    const aWrite = fc.record({ counter: fc.integer({ min: 1, max: 5 }), turns: fc.integer({ min: 0, max: 3 }) });
    await fc.assert(
      fc.asyncProperty(fc.array(aWrite, { maxLength: 20 }), async (writes) => {
        const landing = createLanding(memoryEpochs());
        const landed: ReturnType<typeof epochOf>[] = [];
        await Promise.all(
          writes.map(({ counter, turns }) =>
            codeOf(
              landing.land(stamp(`1.${counter}`), async () => {
                for (let turn = 0; turn < turns; turn++) await Promise.resolve();
                landed.push(epochOf(1, counter));
              }),
            ),
          ),
        );
        for (const [index, epoch] of landed.entries()) expect(compareEpochs(epoch, landed[index - 1] ?? epoch)).toBeGreaterThanOrEqual(0);
      }),
    );
  });
});

function writerWith(given: Partial<SinkWriter> & { current?: string | null } = {}) {
  const lost: string[] = [];
  const { current = "1.4", ...rest } = given;
  const writer: SinkWriter = {
    state: "held",
    workload: "default/orders#0",
    reason: null,
    epoch: () => current as ReturnType<typeof epochOf> | null,
    declareLost: (code) => void lost.push(code),
    ...rest,
  };
  return { writer, lost };
}

describe("a sink", () => {
  test("sends each result with the workload and the epoch of its writer", async () => {
    const sent: unknown[] = [];
    const { writer } = writerWith();
    const sink = createSink({ writer, land: async (result: string, by) => void sent.push([result, by]) });
    await sink.write("a");
    expect(sent).toEqual([["a", { workload: "default/orders#0", epoch: "1.4" }]]);
  });

  test.each(["waiting", "lapsed", "lost", "none"] as const)("writes nothing while the lease is %s", async (state) => {
    const sent: unknown[] = [];
    const { writer } = writerWith({ state, current: null });
    const sink = createSink({ writer, land: async (result: string) => void sent.push(result) });
    expect(await codeOf(sink.write("a"))).toBe("writer_lease_missing");
    expect(await codeOf(sink.write("a", stamp("1.4")))).toBe("writer_lease_missing");
    expect(sent).toEqual([]);
  });

  test("of a pool without a lease writes without a stamp only where it was made so", async () => {
    const sent: unknown[] = [];
    const { writer } = writerWith({ state: "none", workload: null, current: null });
    const sink = createSink({ writer, whenUnleased: "allow", land: async (result: string, by) => void sent.push([result, by]) });
    await sink.write("a");
    expect(sent).toEqual([["a", null]]);
    const lapsed = createSink({ ...writerWith({ state: "lapsed", current: null }), whenUnleased: "allow", land: async () => undefined });
    expect(await codeOf(lapsed.write("a"))).toBe("writer_lease_missing");
  });

  test.each(["allow", "refuse"] as const)("brings nothing past a lease that was begun without one (%s)", async (whenUnleased) => {
    const sent: unknown[] = [];
    const { writer } = writerWith();
    const sink = createSink({ writer, whenUnleased, land: async (result: string, by) => void sent.push([result, by]) });
    expect(await codeOf(sink.write("begun before the lease", null))).toBe("writer_lease_missing");
    expect(sent).toEqual([]);
  });

  test("that hears of a newer writer stops its own, and tells the caller", async () => {
    const landing = createLanding(memoryEpochs());
    await landing.open(stamp("1.5"));
    const { writer, lost } = writerWith();
    const sink = createSink({ writer, land: async (_: string, by) => landing.land(by ?? stamp(""), () => undefined) });
    expect(await codeOf(sink.write("late"))).toBe("stale_writer");
    expect(lost).toEqual(["stale_writer"]);
  });

  test("leaves another fault of the landing to the caller", async () => {
    const { writer, lost } = writerWith();
    const sink = createSink({ writer, land: () => Promise.reject(new Error("away")) });
    await expect(sink.write("a")).rejects.toThrow("away");
    expect(lost).toEqual([]);
  });
});
