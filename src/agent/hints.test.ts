/** The hints of the agent and instances of the SDK, over real sockets. */
import { expect, onTestFinished, test } from "vitest";
import { systemClock, systemIds } from "../kernel/system.ts";
import { HINT_PREFIX as MODEL_HINT_PREFIX, PROTOCOL_PREFIX } from "../model/protocol.ts";
import { HINT_PREFIX as SDK_HINT_PREFIX } from "../sdk/wire.ts";
import { createInstance, type RelevoInstance } from "../sdk/index.ts";
import { HINT_PREFIX, Hints, PREFIX } from "./hints.ts";
import { httpCaller } from "./http.ts";
import type { LocalInstance } from "./instances.ts";

const signal = new AbortController().signal;

interface Running {
  readonly instance: RelevoInstance;
  readonly local: LocalInstance;
  readonly hooks: string[];
}

async function anInstance({ isAdmitted = true }: { readonly isAdmitted?: boolean } = {}): Promise<Running> {
  const hooks: string[] = [];
  const instance = createInstance({
    handler: (_request, response) => response.end("hello"),
    name: "orders-1",
    env: { HOST: "127.0.0.1", PORT: "0", RELEVO_INSTANCE: "orders-1" },
    onDrain: ({ deadline }) => void hooks.push(`drain ${deadline}`),
    onResume: () => void hooks.push("resume"),
  });
  onTestFinished(() => instance.stop());
  const { port } = await instance.listen();
  if (isAdmitted) await instance.perform("admit", "step-admit", null);
  return { instance, hooks, local: { instance: "orders-1", podUid: "uid-1", host: "127.0.0.1", ports: [1, port] } };
}

function someHints() {
  const told: string[] = [];
  const troubles: string[] = [];
  const hints = new Hints({
    http: httpCaller(systemClock),
    ids: systemIds,
    onTold: ({ instance, call }) => told.push(`${call} ${instance}`),
    onTrouble: (sentence) => troubles.push(sentence),
  });
  return { hints, told, troubles };
}

test("the words that the agent uses are those of the protocol", () => {
  expect([PREFIX, HINT_PREFIX, SDK_HINT_PREFIX]).toEqual([PROTOCOL_PREFIX, MODEL_HINT_PREFIX, MODEL_HINT_PREFIX]);
  expect(systemIds.next(HINT_PREFIX.slice(0, -1)).startsWith(HINT_PREFIX)).toBe(true);
});

test("an admitted instance drains without an end, goes on taking work, and is as before when the hint is taken back", async () => {
  const { instance, local, hooks } = await anInstance();
  const { hints, told } = someHints();
  await hints.give([local], signal);
  await hints.give([local], signal);
  expect([instance.state, instance.deadline, (await fetch(`http://127.0.0.1:${local.ports[1]}/`)).status]).toEqual(["draining", null, 200]);
  await hints.takeBack(signal);
  expect([instance.state, hints.standing, hooks, told]).toEqual([
    "admitted",
    0,
    ["drain null", "resume"],
    ["drain orders-1", "resume orders-1"],
  ]);
});

test("two rounds at the same time tell a process once", async () => {
  const { local, hooks } = await anInstance();
  const { hints, told } = someHints();
  await Promise.all([hints.give([local], signal), hints.give([local], signal)]);
  expect([hooks, told, hints.standing]).toEqual([["drain null"], ["drain orders-1"], 1]);
});

test("a drain that the controller asked for is not taken back with the hint before it", async () => {
  const { instance, local } = await anInstance();
  const { hints } = someHints();
  await hints.give([local], signal);
  await instance.perform("drain", "step-drain", null);
  await hints.takeBack(signal);
  expect([instance.state, hints.standing]).toEqual(["draining", 0]);
});

test("an instance that is not admitted yet is not told: it would refuse its admission", async () => {
  const { instance, local } = await anInstance({ isAdmitted: false });
  const { hints, told } = someHints();
  await hints.give([local], signal);
  expect([instance.state, told]).toEqual(["starting", []]);
});

test("another instance that answers at a remembered address is not told", async () => {
  const { instance, local } = await anInstance();
  const { hints, told } = someHints();
  await hints.give([{ ...local, instance: "orders-2" }], signal);
  expect([instance.state, told]).toEqual(["admitted", []]);
});

test("instances that are gone are no obstacle, and nothing is kept of them", async () => {
  const { local } = await anInstance();
  const { hints, told, troubles } = someHints();
  await hints.give([{ ...local, podUid: "uid-2", ports: [1] }, local], signal);
  expect([told, troubles, hints.standing]).toEqual([["drain orders-1"], [], 1]);
  hints.forgetOthers([]);
  expect(hints.standing).toBe(0);
});
