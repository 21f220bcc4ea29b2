/** What may go wrong and what must hold, as tables for docs/simulation.md: `npm run simulate:tables` writes them, a test compares. */
import { FAULT_KINDS, type FaultKind } from "./faults.ts";
import { allCheckers } from "./invariants/index.ts";
import { AT_THE_END, PENDING } from "./invariants/pending.ts";

/** One sentence for each: a kind without one does not compile. */
export const FAULT_MEANING: Readonly<Record<FaultKind, string>> = {
  node_drift: "a node's image is no longer the wanted one; sometimes it is again",
  node_deletion: "somebody deletes a NodeClaim",
  node_death: "a machine ends without a word; sometimes it comes back, as the same node or as another",
  node_frozen: "a machine hears and answers nothing for a while, everything on it runs",
  spot_notice: "the cloud takes a machine and says so in time or late, once or several times",
  unknown_machine_notice: "a warning about a machine that nobody has",
  malformed_notice: "a message that is no notice",
  boot_failure: "the next containers never become ready",
  process_crash: "an instance's process ends",
  process_sick: "a process says that it is not well, and serves",
  api_errors: "the API server answers 500",
  lost_replies: "a call has its effect and its answer is lost",
  conflicts: "writes meet 409",
  driver_errors: "calls of instances fail before or after their effect",
  watch_break: "all watches end, break, or are told 410",
  controller_crash: "the controller dies at its n-th port call, before or after the effect",
  store_failing: "the store cannot be read or written",
  deposed: "somebody else claims a pool for a moment",
  gateway_silent: "nothing goes through between a gateway replica and the controller",
  gateway_restart: "a gateway replica dies, another takes its place",
  mode_off: "the pool's flag is off for a while",
  resize: "the pool is to be smaller or larger for a while",
  watch_lag: "what is watched is heard late",
  pod_deletion: "somebody deletes a pod",
  operator_drain: "an operator asks for a drain",
  freeze: "an operator freezes the pool",
  foreign_cordon: "somebody else cordons a node",
  notice_early: "a warning comes minutes before the machine goes",
  notice_lost: "a machine is taken and its warning never comes",
  notice_reordered: "all messages about one machine come in any order, and again",
  notice_other_cluster: "a warning for a machine of another account",
  notice_two_deadlines: "two messages name different ends of one machine",
  notice_cancelled: "a maintenance is announced and taken back",
  capacity_exhausted: "a machine is lost, and the cloud launches nothing in some zones: no capacity, or no quota",
  api_timeouts: "calls of the API server are not answered; half of them had their effect",
  watch_gap: "nothing watched is heard for a while; then it goes on, or is too old (410)",
  store_busy: "each call of the store takes long, and some are refused",
  store_rewound: "an old backup of the store is restored; an operator recovers it some time later",
  store_lost_replies: "a commit happens and its caller hears that it failed",
  prober_cut: "the controller reaches no instance, everybody else does: all checks fail at once",
  controller_pause: "the controller stands still, as after SIGSTOP",
  two_controllers:
    "a controller stands still, another takes over, the first goes on with what it believed; sometimes a gateway replica reaches that one again",
  replica_gone: "one of several controllers ends in good order, dies, or stands still (not in the standard mix)",
  second_controller: "two controllers run and act at once, then one of them ends",
  clock_jump: "the wall clock of the controller's or the gateways' machine is set, forward or back, for good or for a while",
  gateway_pause: "a gateway replica stands still",
  gateway_unreaching: "a gateway replica reaches no instance",
  gateway_returns: "a gateway replica is cut off until it is given up, and returns with an old generation",
  process_pause: "an instance's process stands still",
  process_lies: "an instance's check passes, and it can serve nobody",
  writer_isolated: "a writer is cut off and its results still land; most of them ignore that their lease is over, and come back",
  endless_work: "clients begin streams that they never end",
  jobs_hang: "jobs that are taken do nothing for ever: their slots are stuck until they are reaped (not in the standard mix)",
  demand_lies: "a pool's signal answers what is no demand, another flow's, or nothing (not in the standard mix)",
  pool_recreated: "a pool is deleted with `deletion: drain`, and made again when it is gone",
};

export function faultTable(): string {
  return table(
    ["kind", "what goes wrong"],
    FAULT_KINDS.map((kind) => [`\`${kind}\``, FAULT_MEANING[kind]]),
  );
}

export function invariantTable(): string {
  const checked = allCheckers().map(({ id, rule, watches }) => [id, rule, watches.join(", ")]);
  const last = Object.entries(AT_THE_END).map(([id, rule]) => [id, rule, "the end of the run"]);
  return table(["id", "what must hold", "watches"], [...checked, ...last].toSorted(byId));
}

export function pendingTable(): string {
  return table(["id", "what it says, and what it waits for"], Object.entries(PENDING).toSorted(byId));
}

/** I2 before I10, and those before the requirements. */
function byId([a = ""]: readonly string[], [b = ""]: readonly string[]): number {
  return rankOf(a) - rankOf(b) || (a < b ? -1 : a > b ? 1 : 0);
}

function rankOf(id: string): number {
  const number = /^I(\d+)/.exec(id)?.[1];
  return number === undefined ? 1_000 : Number(number);
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(" | ")} |`;
  return [line(head), line(head.map(() => "---")), ...rows.map(line)].join("\n");
}

/** Between `<!-- NAME -->` and `<!-- /NAME -->`. */
export const TABLES: Readonly<Record<string, () => string>> = { faults: faultTable, invariants: invariantTable, pending: pendingTable };

/** The document with its tables as they are to be. */
export function withTables(text: string): string {
  let written = text;
  for (const [name, make] of Object.entries(TABLES)) {
    const [begin, end] = [`<!-- ${name} -->\n`, `\n<!-- /${name} -->`];
    const from = written.indexOf(begin);
    const to = written.indexOf(end);
    if (from === -1 || to === -1) continue;
    written = `${written.slice(0, from + begin.length)}\n${make()}\n${written.slice(to)}`;
  }
  return written;
}
