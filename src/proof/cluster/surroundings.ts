/** What Relevo stands on: the store, the API server's clock, the other replicas. */
import { parseInstant } from "../../kernel/clock.ts";
import { EVENTS } from "../../kube/resources.ts";
import { bad, type Finding, ok } from "../../model/finding.ts";
import type { StoreDescription } from "../../store/port.ts";
import type { ClusterFacts } from "./facts.ts";

export async function checkStoreKind({ store, isShared }: ClusterFacts): Promise<readonly Finding[]> {
  const described = await store.describeStore();
  const name = `${described.kind === "sqlite" ? "SQLite" : "PostgreSQL"} ${described.version}, schema ${described.schema}`;
  if (described.kind === "sqlite" && isShared)
    return [bad("store kind", "refused", `${name}: a file serves one controller only`, "move to PostgreSQL: docs/store.md")];
  return [durability(name, described)];
}

function durability(name: string, { kind, synchronous }: StoreDescription): Finding {
  const check = "store kind";
  switch (synchronous) {
    case "memory":
      return bad(check, "warning", `${name}, in memory: nothing of it outlives the controller`, "give --store a path or a database");
    case "none":
      return bad(
        check,
        "refused",
        `${name}: fsync is off, so an answered commit may be lost with its machine`,
        "switch fsync on: a store that forgets was rewound",
      );
    case "disk":
      if (kind === "sqlite") return ok(check, `${name}, on this machine's disk`);
      return bad(
        check,
        "warning",
        `${name}, without a synchronous standby: a fail-over to another server loses the last commits, and then everything is held as store_rewound`,
        "set synchronous_standby_names and synchronous_commit = on, or know npx relevo store recover (docs/operations.md)",
      );
    case "standby":
      return ok(check, `${name}, with a synchronous standby`);
    case "standby_missing":
      return bad(
        check,
        "warning",
        `${name}: a synchronous standby is wanted and none is connected, so commits wait`,
        "bring the standby back, or take it out of synchronous_standby_names",
      );
    case "unknown":
      return bad(check, "warning", `${name}: whether a standby confirms commits may not be seen`, "grant pg_monitor to its role");
    default:
      return synchronous satisfies never;
  }
}

/** More than this apart, ages and deadlines that are compared mislead. The server's stamps are whole seconds. */
const OFFSET_MS = 2_000;

/** The server's time is told by an object that it only pretends to make. */
export async function checkServerClock({ kube, clock, ownNamespace }: ClusterFacts): Promise<readonly Finding[]> {
  if (kube.rehearse === undefined) return [];
  const namespace = ownNamespace ?? "default";
  const name = "relevo-clock";
  const about = { apiVersion: "v1", kind: "Namespace", name: namespace, namespace };
  const before = clock.now();
  const made = await kube.rehearse(
    "create",
    { type: EVENTS, namespace, name },
    {
      apiVersion: "v1",
      kind: "Event",
      metadata: { name, namespace },
      involvedObject: about,
      reason: "Clock",
      type: "Normal",
      message: "never made",
    },
  );
  const after = clock.now();
  const there = parseInstant(made.metadata.creationTimestamp ?? "");
  if (there === null || there === undefined) return [];
  const offset = Math.round((there + 500 - (before + after) / 2) / 1_000) * 1_000;
  if (Math.abs(offset) <= OFFSET_MS + (after - before))
    return [ok("server clock", "the API server's and the controller's agree within its stamps' second")];
  return [
    bad(
      "server clock",
      "warning",
      `the API server's differs from the controller's by about ${offset / 1_000} s`,
      "synchronise the clocks: deadlines of nodes are read as this controller's time",
    ),
  ];
}

export async function checkVersions(facts: ClusterFacts): Promise<readonly Finding[]> {
  const others = facts.otherVersions();
  if (others.length === 0) return [ok("versions", "all live replicas are of one version")];
  return [
    bad(
      "versions",
      "warning",
      `other replicas are of another version: ${others.join(", ")}`,
      "finish the roll-out: meanwhile no pool is newly activated (older_replica)",
    ),
  ];
}
