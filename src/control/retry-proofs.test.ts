import { expect, test } from "vitest";
import { VirtualClock } from "../kernel/virtual-clock.ts";
import { RelevoError } from "../kernel/errors.ts";
import type { InstanceRecord } from "../model/instance.ts";
import type { Phase } from "../model/phase.ts";
import type { RetryPolicy } from "../model/trino.ts";
import type { PoolSnapshot } from "../plan/snapshot.ts";
import { type ProvableProcess, RetryProofs } from "./retry-proofs.ts";

const record = (id: string, bootId: string | null, phase: Phase = "serving") =>
  ({ id, phase, incarnation: { number: 1, host: "10.0.0.1", port: 8080, bootId } }) as InstanceRecord;

function lab(answers: Readonly<Record<string, RetryPolicy | null | RelevoError>>, declared: RetryPolicy = "TASK") {
  const clock = new VirtualClock();
  const asked: string[] = [];
  const proven: string[] = [];
  let now: readonly InstanceRecord[] = [];
  const proofs = new RetryProofs({
    async ask({ host }: ProvableProcess) {
      const bootId =
        now.map(({ incarnation }) => incarnation.bootId ?? "").find((id) => !asked.includes(id) || answers[id] instanceof RelevoError) ??
        host;
      asked.push(bootId);
      const answer = answers[bootId] ?? null;
      if (answer instanceof RelevoError) throw answer;
      return answer;
    },
    clock,
    onProven: (pool) => proven.push(pool),
    log: () => undefined,
  });
  const spec = { driver: "trino", trino: { retryPolicy: declared, user: "relevo" } } as PoolSnapshot["spec"];
  const see = async (...records: InstanceRecord[]): Promise<void> => {
    now = records;
    proofs.observe({ pool: "default/lake", spec, instances: records.map((each) => ({ record: each })) });
    await clock.advance(0);
  };
  return { proofs, see, asked, proven, clock, spec };
}

const of = ({ proofs }: ReturnType<typeof lab>) => proofs.of("default/lake");

test("what is declared is proven only when the process itself has said it (I24)", async () => {
  const each = lab({ "c/1": "TASK" });
  expect(of(each)).toBeNull();
  await each.see(record("a", "c/1"));
  expect([of(each), each.proven]).toEqual([{ retryPolicy: "TASK" }, ["default/lake"]]);
  await each.see(record("a", "c/1"));
  expect(each.asked).toEqual(["c/1"]);
});

test("a process that began anew is unproven until it was asked", async () => {
  const each = lab({ "c/1": "TASK", "c/2": "NONE" });
  await each.see(record("a", "c/1"));
  await each.see(record("a", "c/2"));
  expect([of(each), each.asked]).toEqual([{ retryPolicy: "NONE" }, ["c/1", "c/2"]]);
});

test("clusters that differ prove nothing together, also while one drains", async () => {
  const each = lab({ "c/1": "TASK", "d/1": "NONE" });
  await each.see(record("a", "c/1"));
  await each.see(record("a", "c/1", "draining"), record("b", "d/1"));
  expect(of(each)).toBeNull();
  await each.see(record("a", "c/1", "sealed"), record("b", "d/1"));
  expect(of(each)).toEqual({ retryPolicy: "NONE" });
});

test("one that does not answer is asked again, later each time", async () => {
  const each = lab({ "c/1": new RelevoError("instance_unreachable", "Nobody answers.") });
  await each.see(record("a", "c/1"));
  await each.see(record("a", "c/1"));
  expect([of(each), each.asked.length]).toEqual([null, 1]);
  await each.clock.advance(15_000);
  await each.see(record("a", "c/1"));
  await each.clock.advance(15_000);
  await each.see(record("a", "c/1"));
  expect(each.asked.length).toBe(2);
});

test("where nothing is declared nobody is asked", async () => {
  const each = lab({}, "NONE");
  await each.see(record("a", "c/1"));
  expect([of(each), each.asked]).toEqual([null, []]);
});
