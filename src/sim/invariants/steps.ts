import { ANNOTATIONS, LABELS } from "../../model/marks.ts";
import type { Checker } from "./checker.ts";

/**
 * Watches: effects in the cluster and at instances, each counted by the step that it bears. A leader that stood still in the middle of a create, and was overtaken,
 * cannot know that what it makes was made and deleted meanwhile: that this does not stay is judged in the end (I16).
 */
export function replayedStepsActOnce(): Checker {
  const effects = new Set<string>();
  const owners = new Map<string, string>();
  const once = (effect: string, violate: (sentence: string) => void): void => {
    if (effects.has(effect)) violate(`twice: ${effect}`);
    effects.add(effect);
  };
  return {
    id: "I27",
    rule: "a step replayed equals the step once",
    watches: ["claimed", "api_write", "instance_performed"],
    on(event, { violate }) {
      if (event.type === "claimed") owners.set(event.authority.pool, event.process);
      if (event.type === "instance_performed") return once(`${event.call} of ${event.bootId} by ${event.step}`, violate);
      if (event.type !== "api_write") return;
      const { method, ref, before, after } = event;
      const owner = owners.get(`${ref.namespace}/${after?.metadata.labels?.[LABELS.pool]}`);
      if (method === "create" && owner !== undefined && owner !== event.process) return;
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

/**
 * Watches: what create steps make, since of those it is seen who made it, and what withdraws them: their instance moves on, or the pool goes to another process.
 * An attempt that had begun by then may still arrive; one that began later may not.
 */
export function whatIsWithdrawnIsNotTriedAgain(): Checker {
  /** By process and step: when the last attempt was over, and from when on the next one may have begun. */
  const retries = new Map<string, { readonly notedAt: number; nextFrom: number }>();
  const movedOnAt = new Map<string, number>();
  /** By pool: who has it. */
  const owners = new Map<string, { readonly process: string; readonly since: number }>();
  return {
    id: "D5/withdrawn",
    rule: "a step that is not wanted any more, or is somebody else's, is not tried again",
    watches: ["claimed", "committed", "api_write"],
    on(event, { truth, violate }) {
      const now = truth.now();
      if (event.type === "claimed") owners.set(event.authority.pool, { process: event.process, since: now });
      if (event.type === "committed")
        for (const change of event.changes) {
          if (change.kind === "move_instance" && change.from === "creating") movedOnAt.set(change.instance, now);
          if (change.kind === "retry_step")
            retries.set(`${event.process} ${change.step}`, { notedAt: now, nextFrom: now + change.notBefore - event.now });
          // It wakes what sleeps between two attempts.
          if (change.kind !== "record_step" || change.step.instance === null) continue;
          for (const [key, retry] of retries)
            if (key.startsWith(`${event.process} create/${change.step.instance}`)) retry.nextFrom = Math.min(retry.nextFrom, now);
        }
      if (event.type !== "api_write" || event.method !== "create") return;
      const { annotations, labels } = event.after?.metadata ?? {};
      const [step, instance] = [annotations?.[ANNOTATIONS.step] ?? "", labels?.[LABELS.instance] ?? ""];
      const retry = retries.get(`${event.process} ${step}`);
      if (retry === undefined) return;
      const movedOn = movedOnAt.get(instance);
      if (movedOn !== undefined && movedOn < retry.notedAt)
        violate(`${step} makes ${event.ref.name} in an attempt after ${instance} moved on`);
      const owner = owners.get(`${event.ref.namespace}/${labels?.[LABELS.pool]}`);
      if (owner !== undefined && owner.process !== event.process && owner.since < retry.nextFrom)
        violate(`${event.process} makes ${event.ref.name} by ${step} in an attempt after ${owner.process} took over`);
    },
  };
}
