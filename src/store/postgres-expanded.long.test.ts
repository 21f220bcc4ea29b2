import { afterAll, beforeAll } from "vitest";
import { storeContract } from "../../test/contracts/store.ts";
import { storeModelContract } from "../../test/contracts/store-model.ts";
import { PostgresCluster } from "../../test/postgres/cluster.ts";
import { EXPANDS } from "../../test/postgres/next-release.ts";
import { MIGRATIONS } from "./migrations/index.ts";
import { openStore } from "./store.ts";

let cluster: PostgresCluster;
beforeAll(async () => {
  cluster = await PostgresCluster.start();
});
afterAll(() => cluster?.stop());

/** So that a busy machine is no outage. */
const PATIENT = "&pool_size=4&connect_timeout_ms=30000&lock_timeout_ms=30000&statement_timeout_ms=30000";

let schemas = 0;
const open = async () => {
  const url = cluster.url(`store_${schemas++}`, PATIENT);
  await (await openStore({ path: url, migrations: [...MIGRATIONS, EXPANDS] })).close();
  return openStore(url);
};

storeContract("PostgreSQL with the schema of the next release", open);
storeModelContract("PostgreSQL with the schema of the next release", open, 100);
