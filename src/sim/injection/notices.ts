/** Notices: in time, early, late, lost, twice, out of order, of others, contradicting each other, and no notices at all. */
import { formatInstant, type Instant } from "../../kernel/clock.ts";
import { rebalanceRecommendation, spotInterruptionWarning, stateChange } from "../../notices/eventbridge/compose.ts";
import type { NoticeKind } from "../faults.ts";
import type { Handlers, Injection } from "./injection.ts";
import { pickNode } from "./nodes.ts";

type NoticeFault =
  | "spot_notice"
  | "unknown_machine_notice"
  | "malformed_notice"
  | "notice_early"
  | "notice_lost"
  | "notice_reordered"
  | "notice_other_cluster"
  | "notice_two_deadlines"
  | "notice_cancelled";

/** After the machine was taken its objects go; and a little more. */
const AFTERWARDS_MS = 2_000;
const BETWEEN_COPIES_MS = 300;

export const NOTICE_FAULTS: Handlers<NoticeFault> = {
  spot_notice({ pick, delayMs, copies }, injection) {
    const { clock, scenario } = injection.world;
    const machine = interrupt(injection, pick, scenario.leadMs);
    const body = spotInterruptionWarning(event(injection, machine));
    injection.lasts(clock.now() + delayMs + AFTERWARDS_MS);
    for (let copy = 0; copy < copies; copy++) clock.after(delayMs + copy * BETWEEN_COPIES_MS, () => injection.post(body));
    return true;
  },

  unknown_machine_notice(_, injection) {
    injection.post(spotInterruptionWarning(event(injection, { machineId: "i-00000000000000000" })));
    return true;
  },

  notice_other_cluster(_, injection) {
    const machine = { machineId: "i-0fedcba9876543210", region: "ap-south-1", account: "999999999999" };
    injection.post(spotInterruptionWarning(event(injection, machine)));
    return true;
  },

  malformed_notice({ variant }, injection) {
    injection.post(MALFORMED[variant] ?? "");
    return true;
  },

  notice_early({ pick, leadMs }, injection) {
    const machine = interrupt(injection, pick, leadMs);
    injection.post(maintenance(injection, machine, injection.world.clock.now() + leadMs));
    return true;
  },

  notice_lost({ pick }, injection) {
    interrupt(injection, pick, injection.world.scenario.leadMs);
    return true;
  },

  notice_reordered({ pick, order, copies }, injection) {
    const { clock, scenario } = injection.world;
    const machine = interrupt(injection, pick, scenario.leadMs);
    const bodies = order.map((kind) => COMPOSE[kind](injection, machine));
    for (let copy = 0; copy < copies; copy++)
      for (const [index, body] of bodies.entries())
        clock.after((copy * bodies.length + index) * BETWEEN_COPIES_MS, () => injection.post(body));
    return true;
  },

  notice_two_deadlines({ pick, apartMs, laterFirst }, injection) {
    const { clock, scenario } = injection.world;
    const machine = interrupt(injection, pick, scenario.leadMs);
    const ends = [clock.now() + scenario.leadMs, clock.now() + scenario.leadMs + apartMs];
    for (const [index, end] of (laterFirst ? ends.toReversed() : ends).entries())
      clock.after(index * BETWEEN_COPIES_MS, () => injection.post(maintenance(injection, machine, end)));
    return true;
  },

  notice_cancelled({ pick, afterMs }, injection) {
    const { clock, scenario, cluster } = injection.world;
    const { name, instanceId } = pickNode(injection.world, pick);
    if (instanceId === undefined || !cluster.provisioner.nodes().some((node) => node.name === name && node.isReady)) return false;
    const machine = { machineId: instanceId };
    const end = clock.now() + scenario.leadMs;
    injection.post(maintenance(injection, machine, end));
    clock.after(afterMs, () => injection.post(maintenance(injection, machine, end, "closed")));
    injection.lasts(clock.now() + afterMs + AFTERWARDS_MS);
    return true;
  },
};

interface MachineName {
  readonly machineId: string;
  readonly region?: string;
  readonly account?: string;
}

/** The cloud takes the machine after `deadlineMs`, whoever is told. */
export function interrupt(injection: Injection, pick: number, deadlineMs: number): MachineName {
  const { cluster, clock } = injection.world;
  const { instanceId, region, account } = cluster.provisioner.interrupt(pickNode(injection.world, pick).name, { deadlineMs });
  injection.lasts(clock.now() + deadlineMs + AFTERWARDS_MS);
  return { machineId: instanceId, region, account };
}

function event(injection: Injection, machine: MachineName): MachineName & { readonly id: string; readonly at: Instant } {
  return { id: injection.noticeId(), at: injection.world.clock.now(), ...machine };
}

const COMPOSE: Readonly<Record<NoticeKind, (injection: Injection, machine: MachineName) => string>> = {
  rebalance: (injection, machine) => rebalanceRecommendation(event(injection, machine)),
  interruption: (injection, machine) => spotInterruptionWarning(event(injection, machine)),
  state_change: (injection, machine) => stateChange(event(injection, machine), "shutting-down"),
};

/** AWS Health: the one notice that names its time itself, and that is taken back. */
function maintenance(injection: Injection, machine: MachineName, at: Instant, statusCode: "upcoming" | "closed" = "upcoming"): string {
  const { clock } = injection.world;
  return JSON.stringify({
    version: "0",
    id: injection.noticeId(),
    "detail-type": "AWS Health Event",
    source: "aws.health",
    account: machine.account ?? "123456789012",
    time: formatInstant(clock.now()),
    region: machine.region ?? "eu-west-1",
    resources: [],
    detail: {
      // The same of what is announced and what is taken back.
      eventArn: `arn:aws:health:eu-west-1::event/EC2/${machine.machineId}/${at}`,
      service: "EC2",
      eventTypeCategory: "scheduledChange",
      statusCode,
      startTime: formatInstant(at),
      affectedEntities: [{ entityValue: machine.machineId }],
    },
  });
}

const MALFORMED = [
  "{ half a",
  JSON.stringify({ id: "x", source: "", "detail-type": "EC2 Spot Instance Interruption Warning", detail: {} }),
  JSON.stringify({ id: "y", source: "aws.ec2", "detail-type": "EC2 Spot Instance Interruption Warning", time: "yesterday", detail: {} }),
  "[]",
];
