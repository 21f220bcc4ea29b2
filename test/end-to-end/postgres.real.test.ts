import { test } from "vitest";
import { outage } from "./postgres-outage.ts";

test("PostgreSQL is gone for seconds in the middle of a replacement: clients are served, and the replacement ends when it is back", async () => {
  await outage(4_000);
});
