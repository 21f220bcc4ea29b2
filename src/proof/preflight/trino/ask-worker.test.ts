import { expect, test } from "vitest";
import { startHttpPeer } from "../../../demand/testing/http-peer.ts";
import { systemClock } from "../../../kernel/system.ts";
import { askWorker } from "./ask-worker.ts";

test.each([
  [403, false],
  [401, false],
  [400, true],
])("a worker that answers %i to a state that there is not: %s", async (status, may) => {
  const peer = await startHttpPeer();
  peer.answer({ status, body: "Management only resource" });
  expect(await askWorker(systemClock)(peer.url, "relevo")).toBe(may);
  expect(peer.asked).toEqual(["PUT /v1/info/state"]);
  await peer.close();
});
