/** What a real coordinator and a real worker say of themselves, and what that means for statements. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { infoFailure } from "./health.ts";

interface Recorded {
  readonly url: string;
  readonly text: string;
}

const RECORDED = JSON.parse(
  readFileSync(join(import.meta.dirname, "../../../test/trino/recorded/info.json"), "utf8"),
) as readonly Recorded[];
const textOf = (url: string) => RECORDED.find((one) => one.url === url)?.text ?? "";

test("the coordinator that was admitted passes; another process, one that is starting and one that is none do not", () => {
  const coordinator = textOf("http://coordinator/v1/info");

  expect(infoFailure(coordinator, "c/54gri")).toBeNull();
  expect(infoFailure(coordinator, null)).toBeNull();
  expect(infoFailure(coordinator, "c/aaaaa")).toBe("boot_id_mismatch");
  expect(infoFailure(coordinator.replace('"starting":false', '"starting":true'), "c/54gri")).toBe("starting");
  expect(infoFailure(textOf("http://worker-1/v1/info"), null)).toBe("not_coordinator");
  for (const text of ["", "null", "<html>", '"ACTIVE"']) expect(infoFailure(text, null)).toBe("not_coordinator");
});
