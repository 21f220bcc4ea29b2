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

let schemas = 0;
const open = () => openStore(cluster.url(`store_${schemas++}`, "&pool_size=4"));

storeContract("PostgreSQL", open);
storeModelContract("PostgreSQL", open, 8);
