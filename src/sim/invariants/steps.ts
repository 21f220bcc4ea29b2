import { ANNOTATIONS } from "../../model/marks.ts";
import type { Checker } from "./checker.ts";

/** Watches: effects in the cluster and at instances, each counted by the step that it bears. */
export function replayedStepsActOnce(): Checker {
  const effects = new Set<string>();
  const once = (effect: string, violate: (sentence: string) => void): void => {
    if (effects.has(effect)) violate(`twice: ${effect}`);
    effects.add(effect);
  };
  return {
    id: "I27",
    rule: "a step replayed equals the step once",
    watches: ["api_write", "instance_performed"],
    on(event, { violate }) {
      if (event.type === "instance_performed") return once(`${event.call} of ${event.bootId} by ${event.step}`, violate);
      if (event.type !== "api_write") return;
      const { method, ref, before, after } = event;
      if (method === "create" && ref.type.plural !== "events") return once(`create ${ref.type.plural}/${ref.name}`, violate);
      if (method !== "patch" || before?.metadata.resourceVersion === after?.metadata.resourceVersion) return;
      const mark = ref.type.plural === "nodes" ? ANNOTATIONS.cordonedBy : ref.type.plural === "pods" ? ANNOTATIONS.protectedBy : undefined;
      const step = mark === undefined ? undefined : after?.metadata.annotations?.[mark];
      if (step !== undefined) once(`patch ${ref.type.plural}/${ref.name} ${after?.metadata.uid} by ${step}`, violate);
    },
  };
}

/** Watches: ends of steps, and effects of steps that are not recorded: a step is recorded before its effect. */
export function stepsAreRecordedFirst(): Checker {
  const open = new Set<string>();
  const ended = new Map<string, string>();
  const payloads = new Map<string, string>();
  return {
    id: "D5/journal",
    rule: "a step is recorded before its effect, as one and the same, and leaves unknown once",
    watches: ["committed", "api_write", "instance_performed", "store_rewound"],
    on(event, { violate }) {
      // What was ended in the time that is lost is open again; what was recorded then goes on.
      if (event.type === "store_rewound") {
        ended.clear();
        payloads.clear();
      }
      if (event.type === "committed") {
        for (const change of event.changes) {
          if (change.kind === "record_step") {
            const payload = JSON.stringify(change.step.payload);
            const known = payloads.get(change.step.id) ?? payload;
            if (known !== payload) violate(`${change.step.id} was recorded as ${known} and is recorded as ${payload}`);
            payloads.set(change.step.id, payload);
            open.add(change.step.id);
          }
          if (change.kind !== "end_step") continue;
          if (ended.has(change.step)) violate(`${change.step} ended ${ended.get(change.step)} and ends ${change.state} again`);
          ended.set(change.step, change.state);
        }
      }
      if (event.type === "instance_performed" && !open.has(event.step) && !open.has(event.step.replace(/\/[a-z]+$/, "")))
        violate(`${event.call} of ${event.bootId} by ${event.step}, which is not recorded`);
      if (event.type !== "api_write" || event.ref.type.plural === "events") return;
      const step = event.after?.metadata.annotations?.[event.method === "create" ? ANNOTATIONS.step : ANNOTATIONS.cordonedBy];
      if (step !== undefined && event.ref.type.plural !== "pods" && !open.has(step))
        violate(`${event.method} ${event.ref.name} by ${step}, which is not recorded`);
    },
  };
}
