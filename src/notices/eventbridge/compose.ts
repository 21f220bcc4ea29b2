/** Writes events as AWS does, for `relevo notify`, the demos and the tests. */
import { formatInstant, type Instant } from "../../kernel/clock.ts";

export interface Composed {
  /** The event's own id: the same id again is a duplicate. */
  readonly id: string;
  readonly at: Instant;
  readonly machineId: string;
  readonly region?: string;
  readonly account?: string;
}

export function spotInterruptionWarning(event: Composed, action: "terminate" | "stop" | "hibernate" = "terminate"): string {
  return compose(event, "aws.ec2", "EC2 Spot Instance Interruption Warning", { "instance-id": event.machineId, "instance-action": action });
}

export function rebalanceRecommendation(event: Composed): string {
  return compose(event, "aws.ec2", "EC2 Instance Rebalance Recommendation", { "instance-id": event.machineId });
}

export function stateChange(event: Composed, state: string): string {
  return compose(event, "aws.ec2", "EC2 Instance State-change Notification", { "instance-id": event.machineId, state });
}

function compose(
  { id, at, machineId, region = "eu-west-1", account = "123456789012" }: Composed,
  source: string,
  detailType: string,
  detail: object,
): string {
  return JSON.stringify({
    version: "0",
    id,
    "detail-type": detailType,
    source,
    account,
    time: formatInstant(at).replace(/\.\d{3}Z$/, "Z"),
    region,
    resources: [`arn:aws:ec2:${region}:${account}:instance/${machineId}`],
    detail,
  });
}
