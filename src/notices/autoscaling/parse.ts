/**
 * Lifecycle actions of EC2 Auto Scaling, as a group sends them straight to a queue: no `detail-type`, the fields at the top, perhaps escaped in `Message`.
 * EventBridge has the same fields in its `detail`.
 */
import { z } from "zod";
import { parseInstant } from "../../kernel/clock.ts";
import { unwrap } from "../eventbridge/envelope.ts";
import { ec2InstanceId, parseNoticeBody, parseWith } from "../parse-body.ts";
import type { Announcement, NoticeMessage, NoticeSource } from "../source.ts";

export const AUTOSCALING = "autoscaling";

export const lifecycleSchema = z.object({
  EC2InstanceId: ec2InstanceId,
  AutoScalingGroupName: z.string().min(1).max(255),
  LifecycleHookName: z.string().max(255).default(""),
  LifecycleActionToken: z.string().max(64).default(""),
  LifecycleTransition: z.string().max(64).default("autoscaling:EC2_INSTANCE_TERMINATING"),
});
export type LifecycleFields = z.output<typeof lifecycleSchema>;

const directSchema = lifecycleSchema.extend({ LifecycleActionToken: z.string().min(1).max(64), LifecycleTransition: z.string().max(64) });
const testSchema = z.object({ Event: z.literal("autoscaling:TEST_NOTIFICATION"), RequestId: z.string().max(128).default("") });

export const autoScalingSource: NoticeSource = {
  name: AUTOSCALING,
  sender: "anybody",
  parse: (message) => [parseAutoScaling(message)],
};

/** Throws NoticeError and nothing else. */
export function parseAutoScaling({ body }: Pick<NoticeMessage, "body">): Announcement {
  const message = unwrap(parseNoticeBody(body));
  const test = testSchema.safeParse(message);
  if (test.success)
    return { dedupeKey: `test ${test.data.RequestId}`, reason: null, machineIds: [], deadline: null, clusterHint: groupOf(message) };
  const fields = parseWith(directSchema, message);
  return { dedupeKey: fields.LifecycleActionToken, ...meaningOfLifecycleAction(fields) };
}

/** How long the hook waits is not in the message, so there is an end and it is not known. A launch takes nothing away. */
export function meaningOfLifecycleAction({
  EC2InstanceId,
  AutoScalingGroupName,
  LifecycleTransition,
}: LifecycleFields): Omit<Announcement, "dedupeKey"> & { readonly clusterHint: string } {
  const machine = { machineIds: [EC2InstanceId], deadline: null, clusterHint: AutoScalingGroupName };
  switch (LifecycleTransition) {
    case "autoscaling:EC2_INSTANCE_TERMINATING":
      return { reason: "instance_state_change", ...machine };
    case "autoscaling:EC2_INSTANCE_LAUNCHING":
      return { reason: null, ...machine };
    default:
      return { reason: "unknown_kind", ...machine };
  }
}

function groupOf(message: Readonly<Record<string, unknown>>): string | null {
  const group = message["AutoScalingGroupName"];
  return typeof group === "string" ? group.slice(0, 255) : null;
}

/** True for what a group sends itself, wrapped or not; false for anything else, also for what is malformed. */
export function isOfAutoScaling(body: string): boolean {
  try {
    const message = unwrap(parseNoticeBody(body));
    return (
      !Object.hasOwn(message, "detail-type") &&
      (Object.hasOwn(message, "LifecycleTransition") || message["Event"] === "autoscaling:TEST_NOTIFICATION")
    );
  } catch {
    return false;
  }
}

/** What a lifecycle action must be told by; undefined when the message is no termination. `sentAt` null: the message does not say. */
export interface LifecycleAction {
  readonly group: string;
  readonly hook: string;
  readonly token: string;
  readonly machineId: string;
  readonly sentAt: number | null;
}

/** From a stored body, of either source. */
export function lifecycleActionOf(body: string): LifecycleAction | undefined {
  let message: Readonly<Record<string, unknown>>;
  try {
    message = unwrap(parseNoticeBody(body));
  } catch {
    return undefined;
  }
  const fields = directSchema.safeParse(message["source"] === "aws.autoscaling" ? message["detail"] : message);
  if (!fields.success || fields.data.LifecycleTransition !== "autoscaling:EC2_INSTANCE_TERMINATING") return undefined;
  const { AutoScalingGroupName, LifecycleHookName, LifecycleActionToken, EC2InstanceId } = fields.data;
  if (LifecycleHookName === "") return undefined;
  const time = message["time"] ?? message["Time"];
  const sentAt = typeof time === "string" ? (parseInstant(time) ?? null) : null;
  return { group: AutoScalingGroupName, hook: LifecycleHookName, token: LifecycleActionToken, machineId: EC2InstanceId, sentAt };
}
