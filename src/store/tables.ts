/** Everything that works on one connection. SQLite has one such set, PostgreSQL one for each connection of its pool. */
import { Collection } from "./collection.ts";
import { EvidenceRepository } from "./evidence.ts";
import { GatewayRepository } from "./gateways.ts";
import { InstanceRepository } from "./instances.ts";
import type { StoreConnection } from "./kept-rows.ts";
import { LossRepository } from "./losses.ts";
import { NoticeRepository } from "./notices.ts";
import { PoolReader } from "./pool-reader.ts";
import type { Repositories } from "./pool-transaction.ts";
import { PoolRepository } from "./pools.ts";
import { PromotionRepository } from "./promotions.ts";
import { RecoveryRepository } from "./recovery.ts";
import { ScaleRepository } from "./scale.ts";
import { SecretRepository } from "./secrets.ts";
import { StepRepository } from "./steps.ts";
import { WorkloadRepository } from "./workloads.ts";

export interface Tables extends Repositories {
  readonly notices: NoticeRepository;
  readonly gateways: GatewayRepository;
  readonly reader: PoolReader;
  readonly collection: Collection;
  readonly promotions: PromotionRepository;
  readonly recovery: RecoveryRepository;
  readonly secrets: SecretRepository;
}

export function tablesOn(db: StoreConnection): Tables {
  const repositories: Repositories = {
    pools: new PoolRepository(db),
    instances: new InstanceRepository(db),
    evidence: new EvidenceRepository(db),
    steps: new StepRepository(db),
    losses: new LossRepository(db),
    workloads: new WorkloadRepository(db),
    scale: new ScaleRepository(db),
  };
  return {
    ...repositories,
    notices: new NoticeRepository(db),
    gateways: new GatewayRepository(db),
    reader: new PoolReader(db, repositories),
    collection: new Collection(db),
    promotions: new PromotionRepository(db),
    recovery: new RecoveryRepository(db),
    secrets: new SecretRepository(db),
  };
}
