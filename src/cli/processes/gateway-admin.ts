/** What a gateway says of itself, apart from the traffic: nothing secret, and nothing can be asked of it. */
import type { RequestListener } from "node:http";
import type { Gateway } from "../../gateway/server.ts";

/** `/metrics`; `/healthz`: the process answers; `/readyz`: it may get traffic, or why not. */
export function gatewayAdmin(gateway: Pick<Gateway, "core" | "metrics">, onError: (error: unknown) => void): RequestListener {
  return (request, response) => {
    switch (request.url) {
      case "/healthz":
        return void response.writeHead(200).end("ok\n");
      case "/readyz": {
        const trouble = notReady(gateway);
        return void response.writeHead(trouble === undefined ? 200 : 503).end(`${trouble ?? "ready"}\n`);
      }
      case "/metrics":
        gateway.metrics.metrics().then(
          (text) => response.writeHead(200, { "content-type": gateway.metrics.contentType }).end(text),
          (error: unknown) => {
            onError(error);
            response.writeHead(500).end();
          },
        );
        return;
      default:
        response.writeHead(404).end();
    }
  };
}

/** A gateway that is cut off is ready all the same: it serves on with what it knows. */
function notReady({ core }: Pick<Gateway, "core">): string | undefined {
  if (core.stopping) return "it ends";
  return core.membership.isInformed ? undefined : "no controller has said yet who may get traffic";
}
