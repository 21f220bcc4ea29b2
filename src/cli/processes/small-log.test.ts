import { expect, test } from "vitest";
import { RelevoError } from "../../kernel/errors.ts";
import { VirtualClock } from "../../kernel/virtual-clock.ts";
import { createLogger } from "../../server/log.ts";
import { createSmallLog } from "./small-log.ts";

const clock = new VirtualClock();

test("a line is as the other processes write it", () => {
  const lines: string[] = [];
  const destination = { write: (line: string) => void lines.push(line) };
  createSmallLog({ level: "info", name: "agent", clock, destination })("warn", "it is told", { node: "node-1", ageMs: 3 });
  createLogger({ level: "info", name: "agent", clock, destination }).warn({ node: "node-1", ageMs: 3 }, "it is told");
  expect(lines).toHaveLength(2);
  expect(JSON.parse(lines[0] ?? "")).toEqual(JSON.parse(lines[1] ?? ""));
});

test("what is below the level is left out, and an error is one sentence", () => {
  const lines: unknown[] = [];
  const log = createSmallLog({ level: "info", name: "agent", clock, destination: { write: (line) => void lines.push(JSON.parse(line)) } });
  log("debug", "not told", {});
  log("error", "told", { error: new RelevoError("http_unreachable", "GET http://a failed.", { found: "ECONNREFUSED" }) });
  expect(lines).toEqual([
    {
      level: "error",
      time: "2030-01-01T00:00:00.000Z",
      name: "agent",
      error: "GET http://a failed (http_unreachable); found: ECONNREFUSED",
      msg: "told",
    },
  ]);
});
