import * as fc from "fast-check";
import { expect, test } from "vitest";
import type { NodeFinding } from "../plan/snapshot.ts";
import type { NoticeRecord } from "../store/port.ts";
import { type Correlation, type CorrelationInput, correlate, mergeFindings, type NodeIdentity } from "./correlate.ts";

const NOW = Date.UTC(2030, 0, 1, 12);
const MINUTE = 60_000;

function notice(id: string, over: Partial<NoticeRecord> = {}): NoticeRecord {
  return {
    id,
    source: "eventbridge",
    dedupeKey: `key-${id}`,
    receivedAt: NOW,
    body: "{}",
    outcome: "received",
    machineIds: ["i-a"],
    deadline: NOW + 2 * MINUTE,
    reason: "spot_interruption",
    ...over,
  };
}

const node = (uid: string, providerID: string): NodeIdentity => ({ metadata: { uid }, spec: { providerID } });
const NODE_A = node("uid-a", "aws:///zone-1/i-a");
const NODE_B = node("uid-b", "aws:///zone-2/i-b");

function look(input: Partial<CorrelationInput>): {
  readonly findings: unknown;
  readonly settlements: Correlation["settlements"];
  readonly nextLookAt: number | null;
} {
  const { findings, settlements, nextLookAt } = correlate({
    notices: [],
    nodes: [NODE_A, NODE_B],
    nodesComplete: true,
    departedMachines: new Set(),
    now: NOW,
    ...input,
  });
  return { findings: Object.fromEntries(findings), settlements, nextLookAt };
}

/** When a warning that nothing came of is over. */
const PASSED_AT = NOW + 7 * MINUTE;
const WARNED: NodeFinding = { reason: "spot_interruption", loss: "deadline", deadline: NOW + 2 * MINUTE, noticeId: "n1" };

test("a notice means the node whose providerID ends in its machine", () => {
  expect(look({ notices: [notice("n1")] })).toEqual({
    findings: { "uid-a": [WARNED] },
    settlements: [{ noticeId: "n1", outcome: "machine_found" }],
    nextLookAt: PASSED_AT,
  });
});

test("a notice whose machine is here stays open and says nothing new", () => {
  expect(look({ notices: [notice("n1", { outcome: "machine_found", receivedAt: NOW - 60 * MINUTE })] })).toEqual({
    findings: { "uid-a": [WARNED] },
    settlements: [],
    nextLookAt: PASSED_AT,
  });
});

test("what was announced and did not come is over five minutes after its time: its node can be used again", () => {
  const spared = notice("n1", { outcome: "machine_found", receivedAt: NOW - 10 * MINUTE, deadline: NOW - 5 * MINUTE + 1 });
  expect(look({ notices: [spared] }).nextLookAt).toBe(NOW + 1);
  expect(look({ notices: [spared] }).settlements).toEqual([]);
  expect(look({ notices: [{ ...spared, deadline: NOW - 5 * MINUTE }] })).toEqual({
    findings: {},
    settlements: [{ noticeId: "n1", outcome: "passed" }],
    nextLookAt: null,
  });
});

test("a notice for an unknown machine waits, and is matched when the node registers", () => {
  const unknown = notice("n1", { machineIds: ["i-c"], receivedAt: NOW - MINUTE });
  expect(look({ notices: [unknown] })).toEqual({
    findings: {},
    settlements: [{ noticeId: "n1", outcome: "unknown_machine" }],
    nextLookAt: NOW + 4 * MINUTE,
  });
  const waiting = { ...unknown, outcome: "unknown_machine" };
  expect(look({ notices: [waiting] })).toEqual({ findings: {}, settlements: [], nextLookAt: NOW + 4 * MINUTE });
  expect(look({ notices: [waiting], nodes: [NODE_A, node("uid-c", "aws:///zone-1/i-c")] })).toEqual({
    findings: { "uid-c": [WARNED] },
    settlements: [{ noticeId: "n1", outcome: "machine_found" }],
    nextLookAt: PASSED_AT,
  });
});

test("a notice for another cluster's node ends after a bounded time", () => {
  const old = notice("n1", { machineIds: ["i-far"], receivedAt: NOW - 5 * MINUTE, outcome: "unknown_machine" });
  expect(look({ notices: [old] })).toEqual({ findings: {}, settlements: [{ noticeId: "n1", outcome: "other_cluster" }], nextLookAt: null });
});

test("a notice for a node that is already gone ends at once", () => {
  expect(look({ notices: [notice("n1", { machineIds: ["i-c"] })], departedMachines: new Set(["i-c"]) })).toEqual({
    findings: {},
    settlements: [{ noticeId: "n1", outcome: "node_gone" }],
    nextLookAt: null,
  });
});

test("a notice whose node was here and went is ended as matched, but not before the node could have registered again", () => {
  const found = notice("n1", { outcome: "machine_found", receivedAt: NOW - MINUTE });
  expect(look({ notices: [found], nodes: [NODE_B] })).toEqual({ findings: {}, settlements: [], nextLookAt: NOW + 4 * MINUTE });
  expect(look({ notices: [found], nodes: [NODE_B, node("uid-a-again", "aws:///zone-1/i-a")] }).findings).toEqual({
    "uid-a-again": [WARNED],
  });
  expect(look({ notices: [found], nodes: [NODE_B], now: NOW + 4 * MINUTE })).toEqual({
    findings: {},
    settlements: [{ noticeId: "n1", outcome: "matched" }],
    nextLookAt: null,
  });
});

test("while the nodes are not all known, what is seen counts and what is not seen says nothing (D9)", () => {
  const notices = [
    notice("n1"),
    notice("n2", { machineIds: ["i-b"], outcome: "machine_found" }),
    notice("n3", { machineIds: ["i-c"], receivedAt: NOW - 60 * MINUTE }),
  ];
  expect(look({ notices, nodes: [NODE_A], nodesComplete: false })).toEqual({
    findings: { "uid-a": [WARNED] },
    settlements: [{ noticeId: "n1", outcome: "machine_found" }],
    nextLookAt: NOW + 1_000,
  });
});

test("a node with an empty providerID matches nothing, whatever its name", () => {
  const nodes = [node("uid-a", ""), node("i-a", "")];
  expect(look({ notices: [notice("n1"), notice("n2", { machineIds: [""], dedupeKey: "other" })], nodes }).findings).toEqual({});
});

test("a node that was replaced under the same name has another machine, and an old notice does not mean it", () => {
  const nodes = [node("uid-a2", "aws:///zone-1/i-new")];
  expect(look({ notices: [notice("n1", { outcome: "machine_found" })], nodes }).findings).toEqual({});
});

test("the same notice delivered twice is one, and the later one is a duplicate", () => {
  const notices = [notice("n2", { dedupeKey: "k", receivedAt: NOW }), notice("n1", { dedupeKey: "k", receivedAt: NOW - 1 })];
  expect(look({ notices })).toEqual({
    findings: { "uid-a": [WARNED] },
    settlements: [
      { noticeId: "n1", outcome: "machine_found" },
      { noticeId: "n2", outcome: "duplicate" },
    ],
    nextLookAt: PASSED_AT,
  });
});

test("two sources for one loss are one finding, with the earliest deadline", () => {
  const notices = [
    notice("n1", { deadline: NOW + 90_000 }),
    notice("n2", { source: "sqs", deadline: NOW + 60_000, reason: "instance_state_change" }),
    notice("n3", { deadline: null }),
  ];
  expect(look({ notices }).findings).toEqual({
    "uid-a": [{ reason: "instance_state_change", loss: "deadline", deadline: NOW + 60_000, noticeId: "n2" }],
  });
});

test("classes of loss are kept apart: a recommendation does not hide a warning", () => {
  const notices = [notice("n1"), notice("n2", { reason: "node_rebalance", deadline: null })];
  expect(look({ notices }).findings).toEqual({
    "uid-a": [{ reason: "node_rebalance", loss: "voluntary", deadline: null, noticeId: "n2" }, WARNED],
  });
});

test("two entities in one event mean two nodes; the notice is open while one of them is here", () => {
  const both = notice("n1", { machineIds: ["i-a", "i-b"] });
  expect(look({ notices: [both] })).toEqual({
    findings: { "uid-a": [WARNED], "uid-b": [WARNED] },
    settlements: [{ noticeId: "n1", outcome: "machine_found" }],
    nextLookAt: PASSED_AT,
  });
  expect(look({ notices: [{ ...both, outcome: "machine_found" }], nodes: [NODE_B] })).toEqual({
    findings: { "uid-b": [WARNED] },
    settlements: [],
    nextLookAt: PASSED_AT,
  });
});

test("a notice without a known reason or without a machine is ignored", () => {
  const notices = [notice("n1", { reason: null }), notice("n2", { reason: "toString" }), notice("n3", { machineIds: [] })];
  expect(look({ notices })).toEqual({
    findings: {},
    settlements: ["n1", "n2", "n3"].map((noticeId) => ({ noticeId, outcome: "ignored" })),
    nextLookAt: null,
  });
});

test("of equal findings the one that a notice proves is kept", () => {
  const bare = { ...WARNED, noticeId: null };
  expect(mergeFindings([bare, WARNED])).toEqual([WARNED]);
});

const aNotice = fc.record({
  id: fc.constantFrom("n1", "n2", "n3", "n4", "n5", "n6"),
  source: fc.constantFrom("eventbridge", "imds"),
  machineIds: fc.subarray(["i-a", "i-b", "i-c", "i-d"]),
  deadline: fc.option(fc.integer({ min: NOW, max: NOW + 3 }), { nil: null }),
  reason: fc.constantFrom("spot_interruption", "instance_state_change", "node_rebalance", "node_lost", null),
  outcome: fc.constantFrom("received", "unknown_machine", "machine_found"),
  receivedAt: fc.constantFrom(NOW, NOW - MINUTE, NOW - 10 * MINUTE),
  dedupeKey: fc.constantFrom("k1", "k2", "k3"),
});
const someNotices = fc.uniqueArray(aNotice, { selector: ({ id }) => id }).map((all) => all.map((each) => notice(each.id, each)));
const someNodes = fc.subarray([NODE_A, NODE_B, node("uid-c", "aws:///zone-1/i-c"), node("uid-c2", "aws:///zone-1/i-c"), node("uid-x", "")]);

test("the result does not depend on the order of notices and nodes, nor on how often one is there (I17)", () => {
  const shuffledWithRepeats = <T>(all: readonly T[]): fc.Arbitrary<T[]> =>
    fc
      .tuple(fc.shuffledSubarray([...all], { minLength: all.length }), fc.subarray([...all]))
      .map(([shuffled, again]) => [...again, ...shuffled]);
  const input = fc.tuple(someNotices, someNodes, fc.subarray(["i-a", "i-d"]), fc.boolean());
  fc.assert(
    fc.property(
      input.chain(([notices, nodes, gone, nodesComplete]) =>
        fc.record({
          notices: fc.constant(notices),
          nodes: fc.constant(nodes),
          departedMachines: fc.constant(new Set(gone)),
          nodesComplete: fc.constant(nodesComplete),
          others: shuffledWithRepeats(notices),
          places: shuffledWithRepeats(nodes),
        }),
      ),
      ({ others, places, ...straight }) => {
        expect(look({ ...straight, notices: others, nodes: places })).toEqual(look(straight));
      },
    ),
    { numRuns: 500 },
  );
});

test("settling what was said, and looking again at the same world, says nothing new", () => {
  fc.assert(
    fc.property(someNotices, someNodes, (notices, nodes) => {
      const first = look({ notices, nodes });
      const settled = notices.map((each) => ({
        ...each,
        outcome: first.settlements.find(({ noticeId }) => noticeId === each.id)?.outcome ?? each.outcome,
      }));
      const open = settled.filter(({ outcome }) => outcome === "unknown_machine" || outcome === "machine_found");
      const second = look({ notices: open, nodes });
      expect(second).toEqual({ findings: first.findings, settlements: [], nextLookAt: first.nextLookAt });
    }),
    { numRuns: 500 },
  );
});
