/** A controller in this process, over an API of a real cluster, with a store in memory: as deploy/ starts one. Not started yet. */
import { type ComposedController, composeController, type ControllerComposition } from "../../src/cli/processes/controller.ts";
import { ServiceDriver } from "../../src/drivers/service/service-driver.ts";
import { systemClock, systemIds, systemRandom } from "../../src/kernel/system.ts";
import type { KubeApi } from "../../src/kube/api.ts";
import { INSTANCES_ACCOUNT } from "../../src/kube/permissions.ts";
import { createLogger } from "../../src/server/log.ts";
import { createMetrics } from "../../src/server/metrics.ts";
import { openStore } from "../../src/store/store.ts";

export async function controllerOver(kube: KubeApi, more: Partial<ControllerComposition> = {}): Promise<ComposedController> {
  return composeController({
    kube,
    store: await openStore(":memory:"),
    driver: new ServiceDriver({ clock: systemClock }),
    clock: systemClock,
    random: systemRandom,
    ids: systemIds,
    log: createLogger({ level: "silent", name: "controller", clock: systemClock }),
    metrics: createMetrics(),
    instancesAccount: INSTANCES_ACCOUNT,
    cluster: { hasPriorityClasses: true },
    ...more,
  });
}
