/** Faults of writer leases: who may write, and where results land. */
import { type Mutant, plannedIn, seeds } from "../mutant.ts";

export const WRITERS: readonly Mutant[] = [
  {
    name: "fence-without-a-tombstone",
    rule: "I2: a tombstoned epoch never regains acceptance",
    file: "src/store/workloads.ts",
    find: "        minAcceptedEpoch: next,",
    replace: "        minAcceptedEpoch: writer,",
    shownBy: seeds("writer_isolated", "node_drift"),
  },
  {
    name: "tombstone-lowered",
    rule: "I2: a tombstone never falls",
    file: "src/store/workloads.ts",
    find: "        minAcceptedEpoch: next,",
    replace: "        minAcceptedEpoch: to === null ? writer : next,",
    shownBy: seeds("writer_isolated", "node_death"),
  },
  {
    name: "the-same-epoch-for-the-next-writer",
    rule: "I1: at most one accepted writer, only at the current epoch",
    file: "src/store/workloads.ts",
    find: "  return epoch(Math.max(own, era), counter + 1);",
    replace: "  return epoch(Math.max(own, era), Math.max(1, counter));",
    shownBy: seeds("writer_isolated", "node_drift"),
  },
  {
    name: "lease-passed-before-the-seal",
    rule: "I1: the lease leaves its holder only when that one is over",
    file: "src/plan/writer.ts",
    find: "&& !ended.has(holder.instance))\n      keep(",
    replace: "&& !ended.has(holder.instance) && next.length === 0)\n      keep(",
    shownBy: seeds("node_drift", "operator_drain"),
  },
  {
    name: "a-landing-takes-anything",
    rule: "I1: a result of an older epoch does not land",
    file: "src/sdk/landing.ts",
    find: "if (highest !== null && compareEpochs(epoch, highest) < 0) throw",
    replace: "if (highest !== null && compareEpochs(epoch, highest) < -9) throw",
    shownBy: seeds("writer_isolated"),
  },
  {
    name: "a-holder-never-stops-itself",
    rule: "I1/stop: a holder that could not renew its lease writes nothing after it",
    file: "src/sdk/lease.ts",
    find: '    if (this.#state === "held" && this.#clock.monotonic() >= this.#until) this.#lapse();',
    replace: '    if (this.#state === "held" && this.#clock.monotonic() >= this.#until + 1e9) this.#lapse();',
    shownBy: plannedIn("leased", 20_000, { atMs: 500, fault: { kind: "writer_isolated", pick: 0.1, forMs: 15_000, defies: false } }),
  },
  {
    name: "traffic-before-the-fence",
    rule: "I1/fence: nobody takes traffic in the place of a lost writer before that one is fenced",
    file: "src/plan/writer.ts",
    find: '  return reason("waiting_for_fence", { holder: holder.instance, ordinal });',
    replace: "  return undefined;",
    also: [
      {
        file: "src/store/pool-transaction.ts",
        find: '    if (to === "admitted") await this.#requireNoLostWriter(record);\n',
        replace: "",
      },
    ],
    shownBy: plannedIn(
      "slow_successors",
      25_000,
      { atMs: 500, fault: { kind: "operator_drain", pick: 0 } },
      { atMs: 700, fault: { kind: "operator_drain", pick: 0.4 } },
      { atMs: 900, fault: { kind: "operator_drain", pick: 0.9 } },
      { atMs: 2_000, fault: { kind: "process_pause", pick: 0.1, forMs: 20_000 } },
      { atMs: 3_000, fault: { kind: "store_busy", upToMs: 900, forMs: 18_000 } },
    ),
  },
];
