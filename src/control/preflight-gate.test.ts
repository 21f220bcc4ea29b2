import { expect, test } from "vitest";
import { poolSchema } from "../model/pool.ts";
import type { PreflightRow } from "../model/preflight.ts";
import { refuseByPreflight } from "./preflight-gate.ts";

const document = poolSchema.parse({
  apiVersion: "relevo.dev/v1alpha1",
  kind: "Pool",
  metadata: { name: "web" },
  spec: {
    driver: "worker",
    size: { desired: 1 },
    blueprint: { objects: [{ apiVersion: "apps/v1", kind: "Deployment", metadata: { name: "$(relevo.instance)" } }] },
  },
});
const row = (site: string, check: PreflightRow["check"], state: PreflightRow["state"]): PreflightRow => ({
  ...{ site, check, state, message: "it is so", todo: "mend it" },
});
const refusal = (...rows: readonly PreflightRow[]) =>
  refuseByPreflight(async () => rows, "default/web", document).then(
    () => "taken over",
    (error: { readonly found?: unknown }) => error.found,
  );

test("a site that cannot be read refuses the whole take-over, by its name (K2, K8)", async () => {
  expect(await refusal(row("east", "signal", "ok"), row("west", "credentials", "refused"), row("north", "signal", "refused"))).toBe(
    "west, credentials: it is so; north, signal: it is so",
  );
});

test("the old owner is no hindrance to its own hand-over, a warning neither", async () => {
  expect(await refusal(row("east", "owner", "refused"), row("east", "value", "warning"))).toBe("taken over");
  await refuseByPreflight(undefined, "default/web", document);
});
