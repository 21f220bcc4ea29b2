/** Who may call, and how that changes while the queue runs. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { describeError } from "../../kernel/errors.ts";
import { VirtualClock } from "../../kernel/virtual-clock.ts";
import { QueueTokens } from "./tokens.ts";

const OLD = "the-old-token-of-tests";
const NEW = "the-new-token-of-tests";

let folder: string;
let path: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "relevo-tokens-"));
  path = join(folder, "tokens");
});
afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
});

test("a token is replaced while both are good, and the old one ends when its line goes", async () => {
  const clock = new VirtualClock();
  const troubles: string[] = [];
  writeFileSync(path, `# of the workers\n${OLD}\n`);
  const tokens = new QueueTokens(path, clock, (error) => troubles.push(describeError(error)));
  const good = () => [OLD, NEW].map((token) => tokens.isGood(`Bearer ${token}`));
  expect(good()).toEqual([true, false]);
  const becomes = async (text: string) => {
    writeFileSync(path, text);
    await clock.advance(1_000);
    return good();
  };
  expect(await becomes(`${OLD}\n${NEW}\n`)).toEqual([true, true]);
  expect(await becomes(`${NEW}\n`)).toEqual([false, true]);
  // A slip of the pen locks nobody out, and is told.
  expect(await becomes("short\n")).toEqual([false, true]);
  expect(troubles).toHaveLength(1);
  expect(troubles[0]).toMatch(/queue_token_file_invalid/);
  expect(troubles[0]).not.toContain("short\n");
});

test.each([
  ["no token", "# nobody\n"],
  ["one that is guessed soon", "secret\n"],
  ["one with a space in it", "a token of several words\n"],
])("a file with %s is refused at the start", (_what, text) => {
  writeFileSync(path, text);
  expect(() => new QueueTokens(path, new VirtualClock(), () => undefined)).toThrow(
    expect.objectContaining({ code: "queue_token_file_invalid" }),
  );
});

test("what is no bearer token lets nobody in", () => {
  writeFileSync(path, OLD);
  const tokens = new QueueTokens(path, new VirtualClock(), () => undefined);
  for (const header of [undefined, "", OLD, `Basic ${OLD}`, "Bearer ", `Bearer ${OLD} more`]) expect(tokens.isGood(header)).toBe(false);
  expect(tokens.isGood(`bearer ${OLD}`)).toBe(true);
});
