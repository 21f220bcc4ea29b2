/** The SDK reads whatever it is sent: this bounds it. A queue's attributes are a few hundred bytes. */
import { Transform } from "node:stream";
import type { SQSClient } from "@aws-sdk/client-sqs";
import { demandError } from "../errors.ts";

const ANSWER_BYTES_MAX = 2 ** 20;

export function boundAnswers(client: SQSClient): void {
  client.middlewareStack.add(
    (next) => async (args) => {
      const result = await next(args);
      const response = result.response as { body?: unknown };
      if (isStream(response.body)) response.body = response.body.pipe(limited(response.body));
      return result;
    },
    // Next to the wire: what comes before has not read the body yet.
    { step: "deserialize", priority: "low", name: "relevoBoundAnswers" },
  );
}

function isStream(body: unknown): body is NodeJS.ReadableStream & { destroy(error?: Error): void } {
  return typeof body === "object" && body !== null && "pipe" in body && "destroy" in body;
}

function limited(source: NodeJS.ReadableStream & { destroy(error?: Error): void }): Transform {
  let bytes = 0;
  const bounded = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      bytes += chunk.length;
      if (bytes <= ANSWER_BYTES_MAX) return done(null, chunk);
      source.destroy();
      done(demandError("unreachable", `the answer of SQS is larger than ${ANSWER_BYTES_MAX} bytes`));
    },
  });
  // A pipe hands on no errors.
  source.on("error", (error) => bounded.destroy(error));
  source.on("close", () => {
    if (!bounded.writableEnded && !bounded.destroyed) bounded.destroy(new Error("the connection broke in the middle of the answer"));
  });
  return bounded;
}
