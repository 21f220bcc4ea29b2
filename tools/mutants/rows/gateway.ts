/** Faults of the gateway. */
import { type Mutant, plannedIn, seeds } from "../mutant.ts";

export const GATEWAY: readonly Mutant[] = [
  {
    name: "traffic-before-a-check",
    rule: "I11: traffic implies a passed health check",
    file: "src/gateway/balancer.ts",
    find: 'member.health === "passing"',
    replace: 'member.health !== "failing"',
    shownBy: seeds("node_drift"),
  },
  {
    name: "traffic-to-the-draining",
    rule: "I16: a drain ends once its work is done",
    file: "src/gateway/balancer.ts",
    find: 'member.state === "serving" &&',
    replace: 'member.state !== "sealed" &&',
    shownBy: seeds("node_drift"),
  },
  {
    name: "an-end-is-not-counted",
    rule: "I14: accepted = completed + in flight + queued + rejected + cut",
    file: "src/gateway/ledger.ts",
    find: "    counts[outcome] += 1;",
    replace: '    counts[outcome] += code === "connection_reset" ? 0 : 1;',
    shownBy: seeds("process_crash"),
  },
  {
    name: "sessions-are-not-counted",
    rule: "D5: a confirmed seal implies that no gateway replica holds anything",
    file: "src/gateway/ledger.ts",
    find: "    member.load.sessions += 1;",
    replace: "    member.load.sessions = Math.max(1, member.load.sessions);",
    shownBy: seeds("node_drift"),
  },
  {
    name: "a-waiting-request-is-lost",
    rule: "I14: accepted = completed + in flight + queued + rejected + cut",
    file: "src/gateway/ledger.ts",
    find: "    obligation.ledger.counts.inFlight -= 1;\n    obligation.ledger.counts.queued += 1;",
    replace: "    obligation.ledger.counts.inFlight -= 1;",
    shownBy: seeds("node_death"),
  },
  {
    name: "membership-applied-backwards",
    rule: "I2/gateway: a gateway replica applies no older membership",
    file: "src/gateway/membership.ts",
    find: "    if (applied !== undefined && order < 0) {",
    replace: "    if (applied !== undefined && order < -9) {",
    shownBy: plannedIn(
      "spacious",
      30_000,
      { atMs: 500, fault: { kind: "two_controllers", pausedMs: 15_000, bothMs: 8_000, strays: 0.1 } },
      { atMs: 1_500, fault: { kind: "operator_drain", pick: 0.1 } },
      { atMs: 3_000, fault: { kind: "operator_drain", pick: 0.9 } },
    ),
  },
];
