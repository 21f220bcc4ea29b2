import { expect, test } from "vitest";
import type { KubeObject } from "../../kube/api.ts";
import { age, cellOf } from "./cells.ts";

const NOW = Date.UTC(2030, 0, 1);
const object = (body: object): KubeObject =>
  ({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "p", uid: "u", resourceVersion: "1", creationTimestamp: "2030-01-01T00:00:00Z" },
    ...body,
  }) as KubeObject;
const seconds = (count: number): string => new Date(NOW - count * 1_000).toISOString();

test("ages are written as kubectl writes them", () => {
  const written = [0, 119, 120, 185, 600, 10_799, 10_800, 28_799, 28_800, 172_799, 172_800, 8_640_000].map((count) =>
    age(seconds(count), NOW),
  );

  expect(written).toEqual(["0s", "119s", "2m", "3m5s", "10m", "179m", "3h", "7h59m", "8h", "47h", "2d", "100d"]);
  expect([age("no time", NOW), age(seconds(-5), NOW)]).toEqual(["<unknown>", "0s"]);
});

test("a pod's status is the reason that matters most", () => {
  const waiting = { name: "main", state: { waiting: { reason: "CrashLoopBackOff" } } };
  const ended = { name: "main", state: { terminated: { exitCode: 3 } } };
  const killed = { name: "main", state: { terminated: { exitCode: 137, signal: 9 } } };
  const statuses = [
    object({ status: { phase: "Pending" } }),
    object({ status: { phase: "Running", containerStatuses: [waiting] } }),
    object({ status: { phase: "Failed", containerStatuses: [ended] } }),
    object({ status: { phase: "Failed", containerStatuses: [killed] } }),
    object({ status: { phase: "Failed", reason: "Evicted" } }),
  ].map((pod) => cellOf(pod, "=pod-status", NOW));

  expect(statuses).toEqual(["Pending", "CrashLoopBackOff", "ExitCode:3", "Signal:9", "Evicted"]);
});

test("restarts name how long ago the last was", () => {
  const status = { restartCount: 3, lastState: { terminated: { finishedAt: seconds(30) } } };
  expect(cellOf(object({ status: { containerStatuses: [status] } }), "=pod-restarts", NOW)).toBe("3 (30s ago)");
  expect(cellOf(object({}), "=pod-restarts", NOW)).toBe("0");
});

test("the columns of a custom kind follow their JSONPath", () => {
  const pool = object({
    spec: { list: [{ a: 1 }, { a: 2 }] },
    status: { conditions: [{ type: "Ready", status: "True" }] },
    metadata: { labels: { "a.b/c": "x" } },
  });
  const cells = [
    ".spec.list[1].a",
    '.status.conditions[?(@.type=="Ready")].status',
    ".metadata.labels.a\\.b/c",
    ".spec.nothing",
    ".spec.list",
  ].map((path) => cellOf(pool, `=path:${path}`, NOW));

  expect(cells).toEqual([2, "True", "x", "<none>", '[{"a":1},{"a":2}]']);
});
