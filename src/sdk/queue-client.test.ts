import { expect, test } from "vitest";
import { QueueClient } from "./queue-client.ts";

test("neither a token that no header can hold nor a password in the address gets into an error (K8)", async () => {
  const failure = async (url: string, token: string) =>
    new QueueClient({ url, token }).counts("captures").then(
      () => "none",
      (error: unknown) => `${(error as Error).message} ${String((error as Error).cause)}`,
    );
  const told = [
    await failure("http://127.0.0.1:1", "hunter2\nhunter3"),
    await failure("http://relevo:hunter2@127.0.0.1:1", "token-of-a-test"),
  ];
  expect(told.filter((text) => !text.startsWith("the queue does not answer: ") || text.includes("hunter"))).toEqual([]);
});
