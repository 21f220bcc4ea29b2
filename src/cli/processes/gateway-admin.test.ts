import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { membershipLine, startTestGateway } from "../../gateway/testing/gateway.ts";
import { gatewayAdmin } from "./gateway-admin.ts";

test("a gateway is alive at once, ready once a controller has said who may get traffic, and not any more when it ends", async () => {
  const gateway = await startTestGateway();
  const server = createServer(gatewayAdmin(gateway, () => undefined));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  const ask = async (path: string): Promise<string> => {
    const answer = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}${path}`);
    return `${answer.status} ${(await answer.text()).split("\n")[0]}`;
  };

  expect([await ask("/healthz"), await ask("/readyz")]).toEqual(["200 ok", "503 no controller has said yet who may get traffic"]);
  gateway.apply(membershipLine([], { complete: true }));
  expect(await ask("/readyz")).toBe("200 ready");
  expect(await ask("/metrics")).toMatch(/^200 # HELP relevo_/);
  expect(await ask("/nothing")).toBe("404 ");
  await gateway.close();
  expect([await ask("/healthz"), await ask("/readyz")]).toEqual(["200 ok", "503 it ends"]);
});
