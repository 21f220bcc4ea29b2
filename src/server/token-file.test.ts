import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { VirtualClock } from "../kernel/virtual-clock.ts";
import { tokenHashOf } from "./access.ts";
import { parseTokenFile, TokenFile } from "./token-file.ts";

const folder = mkdtempSync(join(tmpdir(), "relevo-tokens-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const path = join(folder, "tokens.yaml");
const line = (name: string, role: string, token: string) => `- { name: ${name}, role: ${role}, tokenHash: "${tokenHashOf(token)}" }\n`;

function aFile(text: string) {
  writeFileSync(path, text);
  const clock = new VirtualClock(0);
  const told: string[] = [];
  const log = {
    error: (_: object, message: string) => void told.push(message),
    info: (_: object, message: string) => void told.push(message),
  };
  return { file: new TokenFile(path, clock, log), clock, told };
}

test("a token is known by its hash; a gateway's is bound to its replica, an agent's to its node", async () => {
  const { file } = aFile(
    line("vera", "viewer", "a".repeat(43)) + line("gw-1", "gateway", "b".repeat(43)) + line("node-a", "agent", "c".repeat(43)),
  );

  expect(await file.identify("a".repeat(43))).toEqual({ kind: "person", name: "vera", role: "viewer" });
  expect(await file.identify("b".repeat(43))).toEqual({ kind: "gateway", name: "gw-1", replica: "gw-1" });
  expect(await file.identify("c".repeat(43))).toEqual({ kind: "agent", name: "node-a", node: "node-a" });
  expect(await file.identify("d".repeat(43))).toBeUndefined();
  expect(await file.identify("")).toBeUndefined();
  expect(await file.identify(tokenHashOf("a".repeat(43)))).toBeUndefined();
});

test("a line that is taken out ends its token within a second; a change that is wrong leaves what was", async () => {
  const { file, clock, told } = aFile(line("vera", "viewer", "a".repeat(43)) + line("olaf", "operator", "b".repeat(43)));
  writeFileSync(path, line("olaf", "operator", "b".repeat(43)));
  await clock.advance(1_000);
  expect(await file.identify("a".repeat(43))).toBeUndefined();
  expect(await file.identify("b".repeat(43))).toMatchObject({ name: "olaf" });

  writeFileSync(path, "- nonsense\n");
  await clock.advance(1_000);
  expect(await file.identify("b".repeat(43))).toMatchObject({ name: "olaf" });
  expect(told.at(-1)).toMatch(/^the tokens from before stay: The token file/);
});

test.each([
  ["a role that is none", "- { name: x, role: root, tokenHash: sha256:00 }", "0.role"],
  ["neither hash nor token", "- { name: x, role: viewer }", "either tokenHash or token"],
  ["another field", `- { name: x, role: viewer, token: ${"t".repeat(20)}, more: 1 }`, "more"],
  ["a token that is too short", "- { name: x, role: viewer, token: short }", "0.token"],
  ["no YAML", "{", "it is not YAML"],
  ["the same twice", line("a", "viewer", "t") + line("b", "admin", "t"), "twice"],
])("what is wrong is named, and never shown: %s", (_name, text, said) => {
  try {
    parseTokenFile(text, "tokens.yaml");
    expect.unreachable();
  } catch (error) {
    expect(error).toMatchObject({ code: "token_file_invalid" });
    expect(String(error)).toContain(said);
    expect(String(error)).not.toContain("tttttttttt");
  }
});
