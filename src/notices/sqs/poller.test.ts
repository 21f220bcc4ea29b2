import { expect, test } from "vitest";
import { RelevoError } from "../../kernel/errors.ts";
import { VirtualClock } from "../../kernel/virtual-clock.ts";
import type { NoticeRecord } from "../../store/port.ts";
import { spotInterruptionWarning, stateChange } from "../eventbridge/compose.ts";
import { subjectOf } from "../notice.ts";
import { receiveNotice } from "../receive.ts";
import { QueuePoller, type NoticeKeeper, type PollerOptions } from "./poller.ts";
import type { NoticeQueue, QueueMessage, ReceiveOptions } from "./queue.ts";

/** A queue as SQS documents it, under a virtual clock. */
class FakeQueue implements NoticeQueue {
  readonly name = "https://queue.example/1/notices";
  readonly dead: string[] = [];
  readonly deleted: string[] = [];
  readonly #clock: VirtualClock;
  readonly #maxReceiveCount: number;
  #stored: { id: string; body: string; count: number; visibleAt: number; receipt: number }[] = [];
  #receipts = 0;
  #chance = 1;

  constructor(clock: VirtualClock, maxReceiveCount = 1_000) {
    this.#clock = clock;
    this.#maxReceiveCount = maxReceiveCount;
  }

  send(...bodies: readonly string[]): void {
    for (const body of bodies) this.#stored.push({ id: `m-${++this.#receipts}`, body, count: 0, visibleAt: 0, receipt: 0 });
  }

  counts = (): readonly number[] => this.#stored.map(({ count }) => count);

  async receive({ max, waitSeconds, visibilitySeconds }: ReceiveOptions, signal: AbortSignal): Promise<readonly QueueMessage[]> {
    const until = this.#clock.now() + waitSeconds * 1_000;
    for (;;) {
      const found = this.#take(max, visibilitySeconds);
      if (found.length > 0 || this.#clock.now() >= until) return found;
      // Whoever waits may be the next: the service promises no order among those who ask.
      this.#chance = (this.#chance * 1_103_515_245 + 12_345) % 2_147_483_648;
      await this.#clock.sleep(20 + (this.#chance % 160), signal);
    }
  }

  #take(max: number, visibilitySeconds: number): readonly QueueMessage[] {
    const now = this.#clock.now();
    const due = this.#stored.filter(({ visibleAt }) => visibleAt <= now);
    const over = due.filter(({ count }) => count >= this.#maxReceiveCount);
    this.dead.push(...over.map(({ id }) => id));
    this.#stored = this.#stored.filter((each) => !over.includes(each));
    return due
      .filter((each) => !over.includes(each))
      .slice(0, max)
      .map((each) => {
        each.count++;
        each.visibleAt = now + visibilitySeconds * 1_000;
        each.receipt = ++this.#receipts;
        return { id: each.id, body: each.body, receipt: String(each.receipt), receiveCount: each.count };
      });
  }

  async delete(messages: readonly QueueMessage[]): Promise<readonly string[]> {
    for (const { id } of messages) this.deleted.push(id);
    this.#stored = this.#stored.filter(({ id }) => !messages.some((message) => message.id === id));
    return [];
  }

  async setVisibility(messages: readonly QueueMessage[], seconds: number): Promise<void> {
    for (const each of this.#stored)
      if (messages.some(({ receipt }) => receipt === String(each.receipt))) each.visibleAt = this.#clock.now() + seconds * 1_000;
  }

  close(): void {}
}

interface Cluster extends NoticeKeeper {
  readonly saved: NoticeRecord[];
  isAway: boolean;
  /** What the store will never take. */
  refuses: string | null;
  saveMs: number;
}

/** Keeps notices as the store does: each once. */
function cluster(clock: VirtualClock, name: string, machines: readonly string[]): Cluster {
  let ids = 0;
  const save = async (notice: NoticeRecord): Promise<boolean> => {
    if (self.saveMs > 0) await clock.sleep(self.saveMs);
    if (self.isAway) throw new RelevoError("store_unavailable", "the store is away", { class: "retryable" });
    if (self.refuses !== null && notice.body.includes(self.refuses)) throw new TypeError("a fault of ours");
    if (self.saved.some(({ source, dedupeKey }) => source === notice.source && dedupeKey === notice.dedupeKey)) return false;
    self.saved.push(notice);
    return true;
  };
  const parts = { store: { saveNotice: save }, clock, ids: { next: () => `${name}-${++ids}` } };
  const self: Cluster = {
    saved: [],
    isAway: false,
    refuses: null,
    saveMs: 0,
    take: (source, message) => receiveNotice(source, message, parts),
    keepMalformed: async (source, key, body) => {
      await save({
        id: `${name}-${++ids}`,
        source: source.name,
        dedupeKey: `malformed ${key}`,
        receivedAt: clock.now(),
        body,
        outcome: "malformed",
        machineIds: [],
        deadline: null,
        reason: null,
      });
    },
    knows: (machine) => machines.includes(machine),
    knowsSubject: (notice) =>
      self.saved.some((each) => subjectOf(each) === subjectOf(notice) && each.machineIds.some((machine) => machines.includes(machine))),
  };
  return self;
}

function setUp({
  maxReceiveCount,
  machines = ["i-0000001"],
}: {
  readonly maxReceiveCount?: number;
  readonly machines?: readonly string[];
} = {}) {
  const clock = new VirtualClock();
  const queue = new FakeQueue(clock, maxReceiveCount);
  const ours = cluster(clock, "ours", machines);
  const troubles: string[] = [];
  let heard = 0;
  const poller = (keeper: NoticeKeeper, options: Partial<PollerOptions> = {}): QueuePoller =>
    new QueuePoller({
      queue,
      keeper,
      clock,
      random: { next: () => 0.5 },
      onHeard: () => heard++,
      onTrouble: (trouble) => troubles.push(trouble),
      log: () => {},
      ...options,
    });
  return { clock, queue, ours, troubles, poller, heard: () => heard };
}

const spot = (id: string, machineId = "i-0000001"): string => spotInterruptionWarning({ id, at: Date.UTC(2030, 0, 1), machineId });
const outcomes = ({ saved }: Cluster): readonly string[] => saved.map(({ dedupeKey, outcome }) => `${dedupeKey} ${outcome}`);

test("a message is deleted after it is durable, and only then (S1)", async () => {
  const { clock, queue, ours, poller } = setUp();
  ours.saveMs = 1_000;
  queue.send(spot("e1"));
  poller(ours).start();
  await clock.advance(900);
  expect([ours.saved.length, queue.deleted.length]).toEqual([0, 0]);
  await clock.advance(400);
  expect([outcomes(ours), queue.deleted]).toEqual([["e1 received"], ["m-1"]]);
});

test("while the store is away a message stays in hand, is not delivered again, and is taken when the store is back", async () => {
  const { clock, queue, ours, poller, troubles } = setUp({ maxReceiveCount: 3 });
  ours.isAway = true;
  queue.send(spot("e1"));
  poller(ours).start();
  await clock.advance(10 * 60_000);
  expect([queue.counts(), queue.deleted, queue.dead]).toEqual([[1], [], []]);
  expect(troubles[0]).toBe("a notice cannot be written down and is kept in hand: RelevoError: the store is away");
  ours.isAway = false;
  await clock.advance(15_000);
  expect([outcomes(ours), queue.deleted]).toEqual([["e1 received"], ["m-1"]]);
});

test("what is in hand when the process ends in good order is given back at once, not deleted", async () => {
  const { clock, queue, ours, poller } = setUp();
  ours.isAway = true;
  queue.send(spot("e1"));
  const first = poller(ours);
  first.start();
  await clock.advance(1_000);
  const stopped = first.stop();
  await clock.advance(200);
  await stopped;
  const other = setUp().ours;
  poller(other).start();
  await clock.advance(200);
  expect([queue.deleted, outcomes(other)]).toEqual([["m-1"], ["e1 received"]]);
});

test("a message that comes again while the first delivery is still in work is a duplicate, and one notice", async () => {
  const { clock, queue, ours, poller } = setUp();
  ours.saveMs = 5_000;
  queue.send(spot("e1"));
  queue.setVisibility = async () => {}; // renewals are lost
  poller(ours, { visibilitySeconds: 2 }).start();
  await clock.advance(20_000);
  expect([outcomes(ours), [...new Set(queue.deleted)]]).toEqual([["e1 received"], ["m-1"]]);
  expect(queue.counts()).toEqual([]);
});

test("a message that fails four times is written down once, left to the dead letters, and never deleted by us", async () => {
  const { clock, queue, ours, poller } = setUp({ maxReceiveCount: 4 });
  queue.send("{ not JSON", spot("e1"));
  poller(ours).start();
  await clock.advance(5 * 60_000);
  expect(outcomes(ours)).toEqual(["e1 received", "malformed m-1 malformed"]);
  expect([queue.dead, queue.deleted]).toEqual([["m-1"], ["m-2"]]);
});

test("two clusters on one queue: each gets what is about its own machines, whoever receives it first", async () => {
  const { clock, queue, ours, poller } = setUp({ machines: ["i-0000001"] });
  const theirs = cluster(clock, "theirs", ["i-0000002"]);
  queue.send(...Array.from({ length: 100 }, (_, index) => spot(`e${index}`, index % 2 === 0 ? "i-0000001" : "i-0000002")));
  poller(ours).start();
  poller(theirs).start();
  await clock.advance(30_000);
  const taken = (of: Cluster, machine: string) => of.saved.filter(({ machineIds }) => machineIds.includes(machine)).length;
  expect([taken(ours, "i-0000001"), taken(theirs, "i-0000002"), new Set(queue.deleted).size]).toEqual([50, 50, 100]);
});

test("a machine that nobody knows: the message is given back for five minutes, then deleted, or left where that is wanted", async () => {
  const { clock, queue, ours, poller } = setUp();
  queue.send(spot("e1", "i-9999999"));
  const deleting = poller(ours);
  deleting.start();
  await clock.advance(290_000);
  expect([outcomes(ours), queue.deleted]).toEqual([["e1 received"], []]);
  await clock.advance(60_000);
  expect(queue.deleted).toEqual(["m-1"]);

  const leaving = setUp();
  leaving.queue.send(spot("e1", "i-9999999"));
  leaving.poller(leaving.ours, { unclaimed: "leave" }).start();
  await leaving.clock.advance(60 * 60_000);
  expect([leaving.queue.deleted, leaving.queue.counts().length]).toEqual([[], 1]);
});

const health = (id: string, more: object): string =>
  JSON.stringify({
    ...(JSON.parse(spot(id)) as object),
    source: "aws.health",
    "detail-type": "AWS Health Event",
    detail: { service: "EC2", eventTypeCategory: "scheduledChange", startTime: "Mon, 14 Jan 2030 09:00:00 GMT", ...more },
  });

test("a withdrawal that names no machine reaches the cluster whose notice it takes back, whoever receives it first", async () => {
  const { clock, queue, ours, poller } = setUp({ machines: ["i-0000001"] });
  const theirs = cluster(clock, "theirs", ["i-0000002"]);
  const of = (index: number) => ({ eventArn: `arn:${index}` });
  const indexes = Array.from({ length: 40 }, (_, index) => index);
  queue.send(
    ...indexes.map((index) => health(`said-${index}`, { ...of(index), affectedEntities: [{ entityValue: `i-000000${1 + (index % 2)}` }] })),
  );
  poller(ours).start();
  poller(theirs).start();
  await clock.advance(30_000);
  queue.send(...indexes.map((index) => health(`closed-${index}`, { ...of(index), statusCode: "closed" })));
  await clock.advance(30_000);
  const closed = ({ saved }: Cluster, part: number) =>
    saved.filter(({ reason, dedupeKey }) => reason === "withdrawn" && Number(dedupeKey.split("-").at(-1)) % 2 === part).length;
  expect([closed(ours, 0), closed(theirs, 1), new Set(queue.deleted).size]).toEqual([20, 20, 80]);
});

test("a message that is refused for a reason that does not pass is given back, and holds up no other", async () => {
  const { clock, queue, ours, poller } = setUp({ maxReceiveCount: 4 });
  ours.refuses = "poison";
  queue.send(...Array.from({ length: 8 }, (_, index) => spot(`poison-${index}`)));
  poller(ours, { receivers: 1 }).start();
  await clock.advance(5_000);
  queue.send(spot("e1"));
  await clock.advance(30_000);
  expect(outcomes(ours)).toEqual(["e1 received"]);
  await clock.advance(10 * 60_000);
  expect([queue.dead.length, queue.deleted.length]).toEqual([8, 1]);
});

test("one event that names machines of two clusters reaches both", async () => {
  const { clock, queue, ours, poller } = setUp({ machines: ["i-0000001"] });
  const theirs = cluster(clock, "theirs", ["i-0000002"]);
  queue.send(health("e1", { affectedEntities: [{ entityValue: "i-0000001" }, { entityValue: "i-0000002" }] }));
  poller(ours).start();
  poller(theirs).start();
  await clock.advance(30_000);
  expect([outcomes(ours), outcomes(theirs)]).toEqual([["e1 received"], ["e1 received"]]);
});

test("a thousand interruptions at once are all kept within seconds, each once", async () => {
  const machines = Array.from({ length: 1_000 }, (_, index) => `i-${String(index).padStart(7, "0")}`);
  const { clock, queue, ours, poller } = setUp({ machines });
  ours.saveMs = 10;
  queue.send(...machines.map((machine) => spot(`e-${machine}`, machine)));
  poller(ours).start();
  await clock.advance(5_000);
  expect([ours.saved.length, new Set(queue.deleted).size]).toEqual([1_000, 1_000]);
});

test("a state-change and a lifecycle action for one machine are two notices; a state that is empty or harmless is kept and deleted", async () => {
  const { clock, queue, ours, poller } = setUp();
  const event = { id: "e1", at: Date.UTC(2030, 0, 1), machineId: "i-0000001" };
  const action = {
    LifecycleHookName: "drain",
    LifecycleTransition: "autoscaling:EC2_INSTANCE_TERMINATING",
    AutoScalingGroupName: "workers",
    EC2InstanceId: "i-0000001",
    LifecycleActionToken: "token-1",
  };
  queue.send(
    stateChange(event, "Stopping"),
    JSON.stringify({ Message: JSON.stringify(action) }),
    stateChange({ ...event, id: "e2" }, ""),
    stateChange({ ...event, id: "e3" }, "running"),
    JSON.stringify({ Event: "autoscaling:TEST_NOTIFICATION", RequestId: "r1" }),
  );
  poller(ours).start();
  await clock.advance(1_000);
  expect(ours.saved.map(({ source, dedupeKey, reason, outcome }) => `${source} ${dedupeKey} ${reason} ${outcome}`)).toEqual([
    "eventbridge e1 instance_state_change received",
    "autoscaling token-1 instance_state_change received",
    "eventbridge e2 unknown_kind unknown_kind",
    "eventbridge e3 null ignored",
    "autoscaling test r1 null ignored",
  ]);
  expect(queue.deleted.length).toBe(5);
});

test("a queue that cannot be read is asked again, ever more slowly, and its trouble is told; when it answers it is heard", async () => {
  const { clock, queue, ours, poller, troubles, heard } = setUp();
  const receive = queue.receive.bind(queue);
  let asked = 0;
  queue.receive = async () => {
    asked++;
    throw new Error("AccessDenied");
  };
  poller(ours, { receivers: 1 }).start();
  await clock.advance(60_000);
  expect([heard(), troubles[0]]).toEqual([0, "the queue cannot be read: Error: AccessDenied"]);
  expect(asked).toBeLessThan(20);
  queue.receive = receive;
  queue.send(spot("e1"));
  await clock.advance(15_000);
  expect([outcomes(ours), heard() > 0]).toEqual([["e1 received"], true]);
});
