import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as fc from "fast-check";
import { expect, onTestFinished, test } from "vitest";
import type { HttpCall } from "./http.ts";
import { LocalInstances } from "./instances.ts";

const signal = new AbortController().signal;

function pod(change: { readonly meta?: object; readonly spec?: object; readonly status?: object } = {}): object {
  return {
    metadata: { name: "orders-1-abc", uid: "uid-1", labels: { "relevo.dev/instance": "orders-1" }, ...change.meta },
    spec: {
      containers: [{ name: "main", env: [{ name: "PORT", value: "8080" }], ports: [{ containerPort: 9090 }, { containerPort: 8080 }] }],
      ...change.spec,
    },
    status: { phase: "Running", podIP: "10.0.0.7", ...change.status },
  };
}
const list = (...items: unknown[]): string => JSON.stringify({ kind: "PodList", items });
const ORDERS_1 = { instance: "orders-1", podUid: "uid-1", host: "10.0.0.7", ports: [8080, 9090] };

function inFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "relevo-agent-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return join(folder, "instances.json");
}

function aList(answer: () => { readonly status: number; readonly text: string }, file?: string) {
  const calls: HttpCall[] = [];
  const troubles: string[] = [];
  const instances = new LocalInstances({
    http: async (call) => {
      calls.push(call);
      return { ...answer(), headers: {} };
    },
    node: "node-1",
    pods: { baseUrl: "https://10.0.0.1:443", token: () => "secret", ca: undefined },
    file,
    onTrouble: (sentence) => troubles.push(sentence),
  });
  return { instances, calls, troubles };
}

test("the pods of this node that are instances are asked for, and nothing else", async () => {
  const { instances, calls } = aList(() => ({ status: 200, text: list(pod()) }));
  await instances.refresh(signal);
  expect(instances.known).toEqual([ORDERS_1]);
  expect([calls[0]?.url, calls[0]?.headers?.["authorization"]]).toEqual([
    "https://10.0.0.1:443/api/v1/pods?fieldSelector=spec.nodeName%3Dnode-1&labelSelector=relevo.dev%2Finstance&resourceVersion=0",
    "Bearer secret",
  ]);
});

test.each([
  ["does not run yet", pod({ status: { phase: "Pending" } })],
  ["has no address", pod({ status: { podIP: undefined } })],
  ["is unlabelled", pod({ meta: { labels: {} } })],
  ["names no port", pod({ spec: { containers: [{ name: "main" }] } })],
  ["is null", null],
  ["is no object", 7],
])("a pod that %s cannot be told anything, and its node is not known to be empty for that", async (_, odd) => {
  const { instances } = aList(() => ({ status: 200, text: list(odd) }));
  await instances.refresh(signal);
  expect([instances.known, instances.isKnownEmpty]).toEqual([[], false]);
});

test("pods that have ended are none", async () => {
  const { instances } = aList(() => ({
    status: 200,
    text: list(pod({ status: { phase: "Succeeded" } }), pod({ status: { phase: "Failed" } })),
  }));
  await instances.refresh(signal);
  expect([instances.known, instances.isKnownEmpty]).toEqual([[], true]);
});

test("a token that cannot be read is told as any other trouble with the list", async () => {
  const troubles: string[] = [];
  const token = (): string => {
    throw new Error("no such file");
  };
  const instances = new LocalInstances({
    http: () => Promise.reject(new Error("not asked")),
    node: "node-1",
    pods: { baseUrl: "https://10.0.0.1:443", token, ca: undefined },
    file: undefined,
    onTrouble: (_sentence, error) => troubles.push(String(error)),
  });
  await instances.refresh(signal);
  expect([troubles, instances.isKnownEmpty]).toEqual([["Error: no such file"], false]);
});

test("while the API server is away the instances of the last look count, also for an agent that starts anew; empty is not taken for known", async () => {
  const file = inFolder();
  const first = aList(() => ({ status: 200, text: list(pod()) }), file);
  await first.instances.refresh(signal);
  const away = aList(() => {
    throw new Error("connection refused");
  }, file);
  await away.instances.refresh(signal);
  expect([away.instances.known, away.instances.isKnownEmpty, away.troubles]).toEqual([
    [ORDERS_1],
    false,
    ["the instances on this node cannot be listed; those of the last look count"],
  ]);
  const never = aList(() => ({ status: 403, text: "{}" }));
  await never.instances.refresh(signal);
  expect([never.instances.known, never.instances.isKnownEmpty]).toEqual([[], false]);
});

test("a node without instances is known to be empty only while the last look said so", async () => {
  let isAway = false;
  const { instances } = aList(() => (isAway ? { status: 503, text: "" } : { status: 200, text: list() }));
  await instances.refresh(signal);
  expect(instances.isKnownEmpty).toBe(true);
  isAway = true;
  await instances.refresh(signal);
  expect(instances.isKnownEmpty).toBe(false);
});

test("a file that holds anything else is no obstacle, and is written only when something changed", async () => {
  const file = inFolder();
  writeFileSync(file, '[{"instance":7},{"instance":"orders-1","podUid":"u","host":"h","ports":["x"]}]');
  const { instances } = aList(() => ({ status: 200, text: list(pod()) }), file);
  expect(instances.known).toEqual([]);
  await instances.refresh(signal);
  expect(JSON.parse(readFileSync(file, "utf8"))).toEqual([ORDERS_1]);
  writeFileSync(file, "{");
  expect(aList(() => ({ status: 200, text: list() }), file).instances.known).toEqual([]);
});

test("whatever the API server answers, the agent goes on", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.oneof(
        fc.string(),
        fc.json(),
        fc.json().map((text) => `{"items":[${text}]}`),
      ),
      async (text) => {
        const { instances } = aList(() => ({ status: 200, text }));
        await instances.refresh(signal);
        expect(Array.isArray(instances.known)).toBe(true);
      },
    ),
  );
});
