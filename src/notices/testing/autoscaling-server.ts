/**
 * A stand-in for the lifecycle hooks of EC2 Auto Scaling on loopback, in the SDK's query protocol: moto stores hooks and ignores them. An action that was
 * completed, or that nobody began, is no active one.
 */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

export interface AutoScalingStandIn {
  readonly endpoint: string;
  /** As when a group begins to end a machine. */
  begin(token: string): void;
  /** As `ACTION TOKEN`, in the order in which they came. */
  calls(): readonly string[];
  active(): readonly string[];
  close(): Promise<void>;
}

export async function startAutoScalingStandIn({ heartbeatTimeoutS = 30 } = {}): Promise<AutoScalingStandIn> {
  const active = new Set<string>();
  const calls: string[] = [];

  function answer(form: URLSearchParams): { readonly status: number; readonly body: string } {
    const action = form.get("Action") ?? "";
    const token = form.get("LifecycleActionToken") ?? "";
    calls.push(`${action} ${token}`.trim());
    const result = (inside: string) => ({
      status: 200,
      body: `<${action}Response><${action}Result>${inside}</${action}Result></${action}Response>`,
    });
    switch (action) {
      case "DescribeLifecycleHooks":
        return result(
          `<LifecycleHooks><member><LifecycleHookName>${form.get("LifecycleHookNames.member.1") ?? ""}</LifecycleHookName>` +
            `<HeartbeatTimeout>${heartbeatTimeoutS}</HeartbeatTimeout></member></LifecycleHooks>`,
        );
      case "CompleteLifecycleAction":
      case "RecordLifecycleActionHeartbeat":
        if (!active.has(token)) return refusal("ValidationError", "No active Lifecycle Action found with instance ID i-1");
        if (action === "CompleteLifecycleAction") active.delete(token);
        return result("");
      default:
        return refusal("InvalidAction", "not built");
    }
  }

  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const { status, body } = answer(new URLSearchParams(Buffer.concat(chunks).toString("utf8")));
      response.writeHead(status, { "content-type": "text/xml" }).end(body);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    begin: (token) => void active.add(token),
    calls: () => calls,
    active: () => [...active],
    close: async () => {
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}

function refusal(code: string, message: string): { readonly status: number; readonly body: string } {
  return {
    status: 400,
    body: `<ErrorResponse><Error><Type>Sender</Type><Code>${code}</Code><Message>${message}</Message></Error></ErrorResponse>`,
  };
}
