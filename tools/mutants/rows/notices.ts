/** Faults of how notices are understood and correlated. */
import { type Mutant, notices } from "../mutant.ts";

export const NOTICES: readonly Mutant[] = [
  {
    name: "notice-without-its-machine",
    rule: "correlation 1: a machine is known by its node's providerID",
    file: "src/observe/correlate.ts",
    find: "    if (machine !== undefined) uids.set(",
    replace: '    if (machine === "") uids.set(',
    shownBy: notices,
  },
  {
    name: "notice-of-a-stranger-means-all",
    rule: "correlation 3: a notice for a machine that nobody has condemns nothing",
    file: "src/observe/correlate.ts",
    find: "uidsByMachine.get(machine) ?? []);\n    const outcome",
    replace: "uidsByMachine.get(machine) ?? [...uidsByMachine.values()].flat());\n    const outcome",
    shownBy: notices,
  },
  {
    name: "notice-latest-deadline",
    rule: "correlation 4: of several deadlines the earliest holds",
    file: "src/observe/correlate.ts",
    find: "  return (a ?? Number.POSITIVE_INFINITY) - (b ?? Number.POSITIVE_INFINITY);",
    replace: "  return (b ?? Number.NEGATIVE_INFINITY) - (a ?? Number.NEGATIVE_INFINITY);",
    shownBy: notices,
  },
  {
    name: "withdrawal-unheard",
    rule: "correlation 6: a withdrawal ends what its source said before",
    file: "src/observe/correlate.ts",
    find: "notice.receivedAt <= at;",
    replace: "notice.receivedAt < at - 3_600_000;",
    shownBy: notices,
  },
  {
    name: "notice-acknowledged-unwritten",
    rule: "notices: what was received is written down before it is acknowledged",
    file: "src/notices/receive.ts",
    find: "const isNew = await store.saveNotice(record);",
    replace: "const isNew = true;",
    shownBy: notices,
  },
];
