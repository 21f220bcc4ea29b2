/** The class that Kubernetes gives a pod (T9): only Guaranteed is evicted last under memory pressure. */
import { parseQuantity } from "../../../kernel/units.ts";
import { fine, found, type Judgement, type PodSpecView } from "./facts.ts";

export type QosClass = "Guaranteed" | "Burstable" | "BestEffort";

const NAMES = ["cpu", "memory"] as const;

/** As the API server computes it: a request that is not said is the limit. */
export function qosOf({ containers, initContainers }: PodSpecView): QosClass {
  const all = [...containers, ...(initContainers ?? [])];
  const said = all.flatMap(({ resources }) => NAMES.flatMap((name) => [resources?.requests?.[name], resources?.limits?.[name]]));
  if (said.every((each) => each === undefined || parseQuantity(each) === 0)) return "BestEffort";
  const isEqual = all.every(({ resources }) =>
    NAMES.every((name) => {
      const limit = resources?.limits?.[name];
      if (limit === undefined) return false;
      return parseQuantity(resources?.requests?.[name] ?? limit) === parseQuantity(limit);
    }),
  );
  return isEqual ? "Guaranteed" : "Burstable";
}

/** `live`: what pods that run now say of themselves. */
export function judgeQos(spec: PodSpecView, live: readonly { readonly pod: string; readonly qos: string }[]): Judgement {
  const others = live.filter(({ qos }) => qos !== "Guaranteed");
  const todo = "give each container, init containers too, requests equal to its limits, of cpu and of memory";
  if (others.length > 0) return found("refused", others.map(({ pod, qos }) => `pod ${pod} runs as ${qos}`).join("; "), todo);
  const rendered = qosOf(spec);
  if (rendered === "Guaranteed") return fine(live.length === 0 ? "it is going to be Guaranteed" : `${live.length} pods run as Guaranteed`);
  return found("refused", `it renders ${rendered}: ${differencesOf(spec).join("; ")}`, todo);
}

function differencesOf({ containers, initContainers }: PodSpecView): readonly string[] {
  return [...containers, ...(initContainers ?? [])].flatMap(({ name, resources }) =>
    NAMES.flatMap((what) => {
      const limit = resources?.limits?.[what];
      const request = resources?.requests?.[what];
      if (limit === undefined) return [`container ${name} has no limit of ${what}`];
      return request === undefined || parseQuantity(request) === parseQuantity(limit)
        ? []
        : [`container ${name} asks for ${request} ${what} and may take ${limit}`];
    }),
  );
}
