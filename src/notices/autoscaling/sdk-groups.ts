/** EC2 Auto Scaling by the AWS SDK; credentials by the SDK's own chain. */
import {
  AutoScalingClient,
  CompleteLifecycleActionCommand,
  DescribeLifecycleHooksCommand,
  RecordLifecycleActionHeartbeatCommand,
} from "@aws-sdk/client-auto-scaling";
import type { AutoScalingGroups } from "./keeper.ts";
import type { LifecycleAction } from "./parse.ts";

const DEFAULT_TIMEOUT_S = 3_600;
const REQUEST_TIMEOUT_MS = 10_000;

export class SdkAutoScalingGroups implements AutoScalingGroups {
  readonly #client: AutoScalingClient;

  constructor({ region, endpoint }: { readonly region?: string | undefined; readonly endpoint?: string | undefined }) {
    this.#client = new AutoScalingClient({
      ...(region === undefined ? {} : { region }),
      ...(endpoint === undefined ? {} : { endpoint }),
      maxAttempts: 3,
      requestHandler: { connectionTimeout: 3_000, requestTimeout: REQUEST_TIMEOUT_MS },
    });
  }

  complete(action: LifecycleAction): Promise<"done" | "over"> {
    return unlessOver(() =>
      this.#client.send(new CompleteLifecycleActionCommand({ ...namesOf(action), LifecycleActionResult: "CONTINUE" })),
    );
  }

  heartbeat(action: LifecycleAction): Promise<"done" | "over"> {
    return unlessOver(() => this.#client.send(new RecordLifecycleActionHeartbeatCommand(namesOf(action))));
  }

  async timeoutMs(group: string, hook: string): Promise<number> {
    const { LifecycleHooks = [] } = await this.#client.send(
      new DescribeLifecycleHooksCommand({ AutoScalingGroupName: group, LifecycleHookNames: [hook] }),
    );
    return (LifecycleHooks[0]?.HeartbeatTimeout ?? DEFAULT_TIMEOUT_S) * 1_000;
  }

  close(): void {
    this.#client.destroy();
  }
}

function namesOf({ group, hook, token, machineId }: LifecycleAction): {
  AutoScalingGroupName: string;
  LifecycleHookName: string;
  LifecycleActionToken: string;
  InstanceId: string;
} {
  return { AutoScalingGroupName: group, LifecycleHookName: hook, LifecycleActionToken: token, InstanceId: machineId };
}

/** An action that was answered, or whose time is over, is a `ValidationError` that says that none is active. */
async function unlessOver(call: () => Promise<unknown>): Promise<"done" | "over"> {
  try {
    await call();
    return "done";
  } catch (error) {
    if (error instanceof Error && error.name.startsWith("ValidationError") && /no active lifecycle action/i.test(error.message))
      return "over";
    throw error;
  }
}
