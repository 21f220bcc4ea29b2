import { expect, test } from "vitest";
import { VirtualClock } from "../../kernel/virtual-clock.ts";
import type { NoticeRecord } from "../../store/port.ts";
import { type AutoScalingGroups, LifecycleKeeper, type MachineState } from "./keeper.ts";

const MINUTE = 60_000;

function setUp(states: Record<string, MachineState>, timeoutMs: number | Error = 90_000) {
  const clock = new VirtualClock();
  const calls: string[] = [];
  const answers: ("done" | "over" | Error)[] = [];
  const answer = async (call: string): Promise<"done" | "over"> => {
    calls.push(`${clock.monotonic() / 1_000} ${call}`);
    const next = answers.shift() ?? "done";
    if (next instanceof Error) throw next;
    return next;
  };
  const groups: AutoScalingGroups = {
    complete: ({ machineId }) => answer(`complete ${machineId}`),
    heartbeat: ({ machineId }) => answer(`heartbeat ${machineId}`),
    timeoutMs: async () => {
      if (timeoutMs instanceof Error) throw timeoutMs;
      return timeoutMs;
    },
    close: () => {},
  };
  const notices: NoticeRecord[] = [];
  const keeper = new LifecycleKeeper({
    groups,
    open: () => notices,
    stateOf: (machine) => states[machine] ?? "unknown",
    clock,
    log: () => {},
  });
  keeper.start();
  return { clock, calls, answers, notices, keeper };
}

function terminating(machineId: string): NoticeRecord {
  const body = JSON.stringify({
    LifecycleHookName: "drain",
    LifecycleTransition: "autoscaling:EC2_INSTANCE_TERMINATING",
    AutoScalingGroupName: "workers",
    EC2InstanceId: machineId,
    LifecycleActionToken: `token-${machineId}`,
  });
  return {
    id: `n-${machineId}`,
    source: "autoscaling",
    dedupeKey: `token-${machineId}`,
    receivedAt: 0,
    body,
    outcome: "machine_found",
    machineIds: [machineId],
    deadline: null,
    reason: "instance_state_change",
  };
}

test("a hook is kept waiting while instances are on its machine, and goes on when none is left", async () => {
  const states: Record<string, MachineState> = { "i-1": "occupied" };
  const { clock, calls, notices } = setUp(states);
  notices.push(terminating("i-1"));
  await clock.advance(MINUTE + 5_000);
  expect(calls).toEqual(["2 heartbeat i-1", "32 heartbeat i-1", "62 heartbeat i-1"]);
  states["i-1"] = "free";
  await clock.advance(10 * MINUTE);
  expect(calls.slice(3)).toEqual(["66 complete i-1"]);
});

test("a machine whose node went meanwhile is let go on, also when its notice is ended already", async () => {
  const states: Record<string, MachineState> = { "i-1": "occupied" };
  const { clock, calls, notices } = setUp(states);
  notices.push(terminating("i-1"));
  await clock.advance(5_000);
  notices.length = 0;
  states["i-1"] = "gone";
  await clock.advance(MINUTE);
  expect(calls).toEqual(["2 heartbeat i-1", "6 complete i-1"]);
});

test("of a machine of another cluster nobody here says anything", async () => {
  const { clock, calls, notices } = setUp({});
  notices.push(terminating("i-far"));
  await clock.advance(10 * MINUTE);
  expect(calls).toEqual([]);
});

test("an action that another replica answered is over; a call that fails is made again, ever more slowly", async () => {
  const states: Record<string, MachineState> = { "i-1": "free", "i-2": "free" };
  const { clock, calls, answers, notices } = setUp(states);
  answers.push("over");
  notices.push(terminating("i-1"));
  await clock.advance(MINUTE);
  expect(calls).toEqual(["2 complete i-1"]);
  answers.push(new Error("throttled"), new Error("throttled"));
  notices.push(terminating("i-2"));
  await clock.advance(MINUTE);
  expect(calls.slice(1)).toEqual(["62 complete i-2", "64 complete i-2", "66 complete i-2"]);
});

test("a hook that cannot be read is kept by the least time-out that a group allows", async () => {
  const { clock, calls, notices } = setUp({ "i-1": "occupied" }, new Error("AccessDenied"));
  notices.push(terminating("i-1"));
  await clock.advance(25_000);
  expect(calls).toEqual(["2 heartbeat i-1", "12 heartbeat i-1", "22 heartbeat i-1"]);
});
