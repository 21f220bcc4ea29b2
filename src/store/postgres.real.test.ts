import { afterAll, beforeAll } from "vitest";
import { storeContract } from "../../test/contracts/store.ts";
import { storeModelContract } from "../../test/contracts/store-model.ts";
import { PostgresCluster } from "../../test/postgres/cluster.ts";
import { openStore } from "./store.ts";

let cluster: PostgresCluster;
beforeAll(async () => {
  cluster = await PostgresCluster.start();
});
afterAll(() => cluster.stop());

/** So that a busy machine is no outage. */
const PATIENT = "&pool_size=4&connect_timeout_ms=30000&lock_timeout_ms=30000&statement_timeout_ms=30000";

let schemas = 0;
const open = () => openStore(cluster.url(`store_${schemas++}`, PATIENT));

storeContract("PostgreSQL", open);
storeModelContract("PostgreSQL", open, 8);
