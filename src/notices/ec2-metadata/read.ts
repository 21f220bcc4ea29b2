/** What EC2's instance metadata says about the end of its machine. A path that answers 404 says nothing. */
import { MetadataUnreadable, readGmt, readInstant, readJson, readList, readObject, readText } from "../read-metadata.ts";
import type { Said } from "../standing.ts";

/** Below `/latest/meta-data/`. */
export const EC2_PATHS = {
  spot: "spot/instance-action",
  rebalance: "events/recommendations/rebalance",
  maintenance: "events/maintenance/scheduled",
  lifecycle: "autoscaling/target-lifecycle-state",
} as const;
export type Ec2Path = (typeof EC2_PATHS)[keyof typeof EC2_PATHS];

export const EC2_ALL_PATHS: readonly Ec2Path[] = Object.values(EC2_PATHS);

/** Auto Scaling names these when it takes a machine out of service; a warm pool's are stopped or hibernated. */
export const GOING_STATES: readonly string[] = ["terminated", "warmed:terminated", "warmed:stopped", "warmed:hibernated"];
export const STAYING_STATES: readonly string[] = ["inservice", "standby", "detached", "warmed:running"];

/** Of an event: that it is over. */
export const ENDED_EVENTS: readonly string[] = ["completed", "canceled", "cancelled"];

/** Throws MetadataUnreadable. */
export function readEc2(kind: Ec2Path, text: string): readonly Said[] {
  switch (kind) {
    case EC2_PATHS.spot:
      return [readSpot(text)];
    case EC2_PATHS.rebalance:
      return [readRebalance(text)];
    case EC2_PATHS.maintenance:
      return readMaintenance(text);
    case EC2_PATHS.lifecycle:
      return readLifecycle(text);
    default:
      return kind satisfies never;
  }
}

function readSpot(text: string): Said {
  const document = readObject(readJson(text), "the instance action");
  const action = readText(document["action"], "action");
  const time = readInstant(document["time"], "time");
  return { kind: EC2_PATHS.spot, meaning: action, time, document: { action, time: document["time"] }, isGoing: true };
}

/** The risk is raised, no more: nobody is told to hurry. */
function readRebalance(text: string): Said {
  const { noticeTime } = readObject(readJson(text), "the recommendation");
  return {
    kind: EC2_PATHS.rebalance,
    meaning: "rebalance",
    time: readInstant(noticeTime, "noticeTime"),
    document: { noticeTime },
    isGoing: false,
  };
}

/** What is over is left out, so that it is gone for whoever was told of it. */
function readMaintenance(text: string): readonly Said[] {
  return readList(readJson(text), "the scheduled events").flatMap((each) => {
    const { EventId, Code, State, NotBefore, NotAfter } = readObject(each, "a scheduled event");
    const state = typeof State === "string" ? State : "active";
    if (ENDED_EVENTS.includes(state.toLowerCase())) return [];
    const part = readText(EventId, "EventId");
    return [
      {
        kind: EC2_PATHS.maintenance,
        part,
        meaning: readText(Code, "Code"),
        time: readGmt(NotBefore, "NotBefore"),
        document: { EventId, Code, State: state, NotBefore, ...(typeof NotAfter === "string" ? { NotAfter } : {}) },
        isGoing: false,
      },
    ];
  });
}

/** Nobody is told that a machine stays where it is. */
function readLifecycle(text: string): readonly Said[] {
  const state = text.trim();
  if (state.length > 64 || /[<>{}\n]/.test(state)) throw new MetadataUnreadable(`no lifecycle state: ${state.slice(0, 40)}`);
  const known = state.toLowerCase();
  if (STAYING_STATES.includes(known)) return [];
  return [{ kind: EC2_PATHS.lifecycle, meaning: state, time: null, document: state, isGoing: GOING_STATES.includes(known) }];
}
