/** Counts, from the Kubernetes API alone, what was made twice: two Deployments for one instance, at whatever times. */
import type { Clock } from "../../kernel/clock.ts";
import type { Random } from "../../kernel/random.ts";
import type { KubeApi } from "../../kube/api.ts";
import { createInformer } from "../../kube/informer.ts";
import { DEPLOYMENTS } from "../../kube/resources.ts";
import { parseDeployment } from "../../kube/types.ts";
import { LABELS } from "../../model/marks.ts";

export interface DuplicateWatch {
  /** How many Deployments there were beyond one for each instance. */
  count(): number;
  stop(): void;
}

export async function watchDuplicates(options: {
  readonly kube: KubeApi;
  readonly clock: Clock;
  readonly random: Random;
}): Promise<DuplicateWatch> {
  const { kube, clock, random } = options;
  const uids = new Map<string, Set<string>>();
  const informer = createInformer({
    api: kube,
    type: DEPLOYMENTS,
    labelSelector: LABELS.instance,
    clock,
    random,
    log: () => undefined,
    parse: parseDeployment,
  });
  informer.onChange(({ after }) => {
    const instance = after?.metadata.labels[LABELS.instance];
    if (after && instance !== undefined) uids.set(instance, (uids.get(instance) ?? new Set()).add(after.metadata.uid));
  });
  informer.start();
  await informer.whenSynced();
  return {
    count: () => [...uids.values()].reduce((sum, made) => sum + made.size - 1, 0),
    stop: () => informer.stop(),
  };
}
