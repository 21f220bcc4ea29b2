/** The AWS SDK's own client against a stand-in that speaks its protocol. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { type AutoScalingStandIn, startAutoScalingStandIn } from "../testing/autoscaling-server.ts";
import { SdkAutoScalingGroups } from "./sdk-groups.ts";

const ACTION = { group: "workers", hook: "drain", token: "token-1", machineId: "i-1", sentAt: null };

let aws: AutoScalingStandIn;
let groups: SdkAutoScalingGroups;

beforeEach(async () => {
  vi.stubEnv("AWS_ACCESS_KEY_ID", "stand-in");
  vi.stubEnv("AWS_SECRET_ACCESS_KEY", "stand-in");
  aws = await startAutoScalingStandIn({ heartbeatTimeoutS: 90 });
  groups = new SdkAutoScalingGroups({ region: "eu-west-1", endpoint: aws.endpoint });
});
afterEach(async () => {
  groups.close();
  await aws.close();
  vi.unstubAllEnvs();
});

test("a hook is kept, then completed; what is not active any more is over and no error", async () => {
  aws.begin("token-1");
  expect([await groups.timeoutMs("workers", "drain"), await groups.heartbeat(ACTION), await groups.complete(ACTION)]).toEqual([
    90_000,
    "done",
    "done",
  ]);
  expect([await groups.complete(ACTION), await groups.heartbeat(ACTION)]).toEqual(["over", "over"]);
  expect(aws.calls().slice(0, 3)).toEqual([
    "DescribeLifecycleHooks",
    "RecordLifecycleActionHeartbeat token-1",
    "CompleteLifecycleAction token-1",
  ]);
});
