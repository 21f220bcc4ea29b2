/** What an operator and a probe are told while something is wrong (D12). Level: simulated. */
import { afterEach, expect, test } from "vitest";
import { storeUnavailable } from "../../src/store/port.ts";
import { Harness } from "./harness.ts";
import { intercept } from "./intercept.ts";

let harness: Harness;
afterEach(() => harness.close());

test("a store that can be read but takes nothing is told by the readiness, with what to do, until it takes something again", async () => {
  let isFull = false;
  harness = await Harness.start({
    store: (store) =>
      intercept(store, ({ name }, go) =>
        isFull && name === "commit" ? Promise.reject(storeUnavailable("the disk is full", undefined)) : go(),
      ),
  });
  const [victim] = await harness.serve();
  const ready = async () =>
    (await harness.http.inject({ url: "/readyz" })).json() as {
      readonly ready: boolean;
      readonly checks: readonly { readonly name: string; readonly message: string }[];
    };
  expect(await ready()).toMatchObject({ ready: true });

  isFull = true;
  await harness.drift(victim?.incarnation.nodeName ?? "");
  await harness.until("it is not ready", async () => !(await ready()).ready);
  expect((await ready()).checks.find(({ name }) => name === "pools")?.message).toContain("the disk is full (store_unavailable)");

  isFull = false;
  await harness.until("it is ready", async () => (await ready()).ready);
});
