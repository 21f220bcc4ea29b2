import { expect, test } from "vitest";
import type { SignalSpec } from "../model/demand.ts";
import { type Connections, findSignal } from "./availability.ts";
import type { Connection } from "./connections.ts";
import type { DemandAdapter } from "./port.ts";

const queue: DemandAdapter<"queue"> = {
  kind: "queue",
  needs: { infrastructure: "relevo queue", permissions: [] },
  flowOf: ({ queue: name }) => `queue/${name}`,
  open: () => {
    throw new Error("nobody opens it here");
  },
};
const metric: DemandAdapter<"external-metric"> = {
  kind: "external-metric",
  needs: { infrastructure: "an adapter of external.metrics.k8s.io", permissions: [] },
  flowOf: ({ metric: name }) => name,
  open: () => {
    throw new Error("nobody opens it here");
  },
};
const MAIN: Connection = { name: "main", kind: "queue", url: "http://127.0.0.1:7091", token: "secret" };
const SIGNAL: SignalSpec = { kind: "queue", connection: "main", queue: "captures" };

function missing(more: Partial<Connection> | undefined, signal: SignalSpec = SIGNAL, sites = ["north"]): string | undefined {
  const connections: Connections = {
    find: (name) => (more !== undefined && name === "main" ? ({ ...MAIN, ...more } as Connection) : undefined),
  };
  const found = findSignal(signal, { namespace: "shop", sites }, connections, { queue, "external-metric": metric });
  return "missing" in found ? found.missing : undefined;
}

test("a signal whose infrastructure is absent is refused by the name of what is missing (K2)", () => {
  expect(missing({})).toBeUndefined();
  expect(missing(undefined)).toBe("no connection main is configured (relevo controller --connections): relevo queue");
  expect(missing({ kind: "redis", url: "redis://a" } as Partial<Connection>)).toBe(
    "connection main is of kind redis, and a queue signal needs queue",
  );
  expect(missing({ namespaces: ["billing"] })).toBe("connection main is not for namespace shop");
  expect(missing({ namespaces: ["billing", "shop"] })).toBeUndefined();
  expect(missing({ sites: ["south"] }, SIGNAL, ["north"])).toBe("connection main (relevo queue) does not exist at site north");
  expect(missing({ sites: ["north", "south"] }, SIGNAL, ["north"])).toBeUndefined();
  expect(missing({}, { kind: "kafka", connection: "main", topic: "t", group: "g" })).toBe("this controller reads no signal of kind kafka");
});

test("what is read through the API server needs no connection", () => {
  expect(missing(undefined, { kind: "external-metric", metric: "jobs", selector: {} })).toBeUndefined();
});
