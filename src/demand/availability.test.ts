import { expect, test } from "vitest";
import type { SignalSpec } from "../model/demand.ts";
import { findSignal } from "./availability.ts";
import { ConnectionFile } from "./connection-file.ts";
import { connectionsSchema } from "./connections.ts";
import { prometheusAdapter } from "./prometheus/adapter.ts";
import { systemClock } from "../kernel/system.ts";

const signal: SignalSpec = { kind: "prometheus", connection: "metrics", query: "backlog", flowLabel: "queue" };
const entry = (more: object) => ({ name: "metrics", kind: "prometheus", url: "http://127.0.0.1:9090", ...more });

function find(sites: readonly string[], all: readonly object[], namespace = "shop") {
  const { connections } = connectionsSchema.parse({ connections: all });
  const file = new ConnectionFile({ read: () => connections, clock: systemClock, log: () => undefined });
  file.stop();
  const found = findSignal(signal, { namespace, sites }, file, { prometheus: prometheusAdapter });
  return "missing" in found ? found.missing.replace(/ \(.*\)/, "") : found.connection;
}

const east = entry({ sites: ["east"] });
const west = entry({ sites: ["west", "north"], url: "http://127.0.0.1:9091", bearerToken: "own" });

test("each site has the connection of its own under the one name (K8)", () => {
  expect(find(["east"], [east, west])).toMatchObject({ url: "http://127.0.0.1:9090" });
  expect(find(["west"], [east, west])).toMatchObject({ url: "http://127.0.0.1:9091", bearerToken: "own" });
});

test("a pool of several sites reads at its first one, and is refused where one of the others has none (K2)", () => {
  expect(find(["north", "east"], [east, west])).toMatchObject({ url: "http://127.0.0.1:9091" });
  expect(find(["east", "south"], [east, west])).toBe("connection metrics does not exist at site south");
});

test("what is missing, of another kind, or not for this namespace is said by name (K2)", () => {
  expect(find(["east"], [])).toBe(`no connection metrics is configured: ${prometheusAdapter.needs.infrastructure}`);
  expect(find(["east"], [{ name: "metrics", kind: "queue", url: "http://127.0.0.1:1", token: "t" }])).toBe(
    "connection metrics is of kind queue, and a prometheus signal needs prometheus",
  );
  expect(find(["east"], [entry({ namespaces: ["other"] })])).toBe("connection metrics is not for namespace shop");
});

test("two connections of one name that share a site are refused: nobody could tell which is meant", () => {
  const isAccepted = (...all: readonly object[]) => connectionsSchema.safeParse({ connections: all }).success;
  expect([isAccepted(east, west), isAccepted(east, east), isAccepted(west, entry({})), isAccepted(entry({}), east)]).toEqual([
    true,
    false,
    false,
    false,
  ]);
});
