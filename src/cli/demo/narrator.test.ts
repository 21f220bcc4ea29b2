import { createColors } from "picocolors";
import { expect, test } from "vitest";
import { VirtualClock } from "../../kernel/virtual-clock.ts";
import type { LoadSnapshot } from "./load/client.ts";
import { Narrator } from "./narrator.ts";

const COUNTS: LoadSnapshot = {
  act: "voluntary",
  inFlight: 23,
  sent: 394,
  outcomes: { completed: 371, rejected: 0, cut: 0, lost: 0 },
  skipped: 0,
};

function aNarrator(columns: number | undefined, hasColors = false): { readonly narrator: Narrator; readonly told: () => string } {
  let told = "";
  const write = (text: string) => void (told += text);
  const narrator = new Narrator({ write, columns: () => columns, palette: createColors(hasColors), clock: new VirtualClock(0) });
  return { narrator, told: () => told };
}

const entry = (kind: "phase" | "step", code: string, sentence?: string) => ({
  at: "2026-01-01T00:00:00.000Z",
  kind,
  pool: "default/orders",
  subject: "orders-79cbe63901",
  code,
  reason: sentence === undefined ? null : { code: "x", subject: "", sentence, since: null },
});

test("phases of all lengths stand in one column, and a long reason goes on below its beginning", () => {
  const { narrator, told } = aNarrator(80);

  narrator.title("act 1");
  narrator.journal(entry("phase", "serving") as never);
  narrator.journal(entry("phase", "new_incarnation") as never);
  narrator.journal(entry("phase", "validating") as never);
  narrator.journal(
    entry("step", "cordon_node/1 begun", "node-a1 carries orders-79cbe63901 and will go: nothing new may land there") as never,
  );

  expect(told()).toBe(
    [
      "   0.0 act 1",
      "   0.0   serving     orders-79cbe63901",
      "   0.0   validating  orders-79cbe63901",
      "   0.0   step        cordon_node  node-a1 carries orders-79cbe63901 and will",
      "                     go: nothing new may land there",
      "",
    ].join("\n"),
  );
});

test("the line of counts never reaches the next line, and ends with its act", () => {
  const { narrator, told } = aNarrator(41);

  narrator.counts("voluntary", COUNTS);
  narrator.title("act 2");

  expect(told()).toBe("\r\u001B[K  voluntary: 394 sent, 371 completed, 23\r\u001B[K   0.0 act 2\n");
});

test("without a terminal nothing is redrawn and nothing wrapped", () => {
  const { narrator, told } = aNarrator(undefined);

  narrator.counts("voluntary", COUNTS);
  narrator.tell("a ".repeat(100).trim());

  expect(told()).toBe(`   0.0   ${"a ".repeat(100).trim()}\n`);
});
