/**
 * What notices must lead to, by a model of its own: a seed draws messages about our machines and those of others, in any order, some twice, some taken back; they
 * go through parser, store and correlation; and each of our nodes must have just the finding that was announced for it last, by the earliest deadline.
 */
import { formatInstant, type Instant } from "../../src/kernel/clock.ts";
import { VirtualClock } from "../../src/kernel/virtual-clock.ts";
import { spotInterruptionWarning } from "../../src/notices/eventbridge/compose.ts";
import { eventBridgeSource } from "../../src/notices/eventbridge/parse.ts";
import { receiveNotice } from "../../src/notices/receive.ts";
import { correlate } from "../../src/observe/correlate.ts";
import { seededIds, seededRandom } from "../../src/sim/seeded.ts";
import { openStore } from "../../src/store/store.ts";
import type { Finding } from "./stages.ts";

const NOON = Date.UTC(2030, 0, 1, 12);
const SPOT_LEAD_MS = 120_000;
/** The first of them are ours. */
const MACHINES = ["i-0000001", "i-0000002", "i-0000003", "i-0000009"];
const OURS = MACHINES.slice(0, 3);
const MESSAGES_MAX = 8;

/** The first node of which something else is found than was announced; undefined: none. */
export async function checkNotices(seed: number): Promise<Finding | undefined> {
  const random = seededRandom(seed, "notices");
  const ids = seededIds(random);
  const between = (least: number, most: number): number => least + Math.floor(random.next() * (most - least + 1));
  const clock = new VirtualClock(NOON);
  const store = await openStore({ path: ":memory:" });
  const spot = new Map<string, Instant>();
  const maintenance = new Map<string, Instant>();
  try {
    for (let left = between(1, MESSAGES_MAX); left > 0; left--) {
      await clock.advance(between(1, 5) * 1_000);
      const machine = MACHINES[between(0, MACHINES.length - 1)] ?? "";
      const at = clock.now();
      const message = random.next();
      const deadline = at + between(30, 300) * 1_000;
      let body: string;
      if (message < 0.4) {
        spot.set(machine, Math.min(spot.get(machine) ?? Number.POSITIVE_INFINITY, at + SPOT_LEAD_MS));
        body = spotInterruptionWarning({ id: ids.next("event"), at, machineId: machine });
      } else if (message < 0.75) {
        maintenance.set(machine, Math.min(maintenance.get(machine) ?? Number.POSITIVE_INFINITY, deadline));
        body = scheduledChange(ids.next("event"), { machine, at, deadline, statusCode: "upcoming" });
      } else {
        maintenance.delete(machine);
        body = scheduledChange(ids.next("event"), { machine, at, deadline, statusCode: "closed" });
      }
      const copies = random.next() < 0.3 ? 2 : 1;
      for (let copy = 0; copy < copies; copy++)
        await receiveNotice(eventBridgeSource, { body, headers: {} }, { store, clock, ids, spotLeadMs: SPOT_LEAD_MS });
    }
    const { findings } = correlate({
      notices: await store.openNotices(NOON),
      nodes: OURS.map((machine) => ({ metadata: { uid: machine }, spec: { providerID: `aws:///eu-west-1a/${machine}` } })),
      nodesComplete: true,
      departedMachines: new Set(),
      now: clock.now(),
    });
    for (const machine of OURS) {
      const ends = [spot.get(machine), maintenance.get(machine)].filter((end) => end !== undefined);
      const wanted = ends.length === 0 ? null : Math.min(...ends);
      const found = findings.get(machine)?.find(({ loss }) => loss === "deadline")?.deadline ?? null;
      if (found !== wanted) return { id: "notices/finding", sentence: `${machine}: announced ${told(wanted)}, found ${told(found)}` };
    }
    return undefined;
  } finally {
    await store.close();
  }
}

function told(at: Instant | null): string {
  return at === null ? "nothing" : formatInstant(at);
}

function scheduledChange(
  id: string,
  {
    machine,
    at,
    deadline,
    statusCode,
  }: { readonly machine: string; readonly at: Instant; readonly deadline: Instant; readonly statusCode: string },
): string {
  return JSON.stringify({
    version: "0",
    id,
    "detail-type": "AWS Health Event",
    source: "aws.health",
    account: "123456789012",
    time: formatInstant(at),
    region: "eu-west-1",
    resources: [],
    detail: {
      eventArn: `arn:aws:health:eu-west-1::event/EC2/${machine}`,
      service: "EC2",
      eventTypeCategory: "scheduledChange",
      statusCode,
      startTime: formatInstant(deadline),
      affectedEntities: [{ entityValue: machine }],
    },
  });
}
