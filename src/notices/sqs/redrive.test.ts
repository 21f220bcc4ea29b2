import { expect, test } from "vitest";
import { VirtualClock } from "../../kernel/virtual-clock.ts";
import { ASK_AGAIN_MS, watchRedrive } from "./redrive.ts";

test("a queue is asked again and again for its redrive policy; what it lacks, or may not be asked, is told once", async () => {
  const clock = new VirtualClock();
  const stop = new AbortController();
  const answers: (boolean | "refused")[] = ["refused", "refused", false, false, true];
  const told: string[] = [];
  const heard: boolean[] = [];
  const watching = watchRedrive(
    {
      queue: {
        name: "notices",
        hasRedrivePolicy: async () => {
          const answer = answers.shift() ?? true;
          if (answer === "refused") throw new Error("AccessDenied");
          return answer;
        },
      },
      clock,
      onAnswer: (hasRedrive) => heard.push(hasRedrive),
      log: (level, message) => told.push(`${level} ${message.split(":")[0]}`),
    },
    stop.signal,
  );
  await clock.advance(5 * ASK_AGAIN_MS);
  stop.abort();
  await watching;

  expect(heard.slice(0, 4)).toEqual([false, false, true, true]);
  expect(told).toEqual(["info whether the queue has a redrive policy cannot be asked", "warn the queue has no redrive policy"]);
});
