/** A server on loopback that answers as a test says: well, with errors, by halves, without an end, or never. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface Answer {
  readonly status?: number;
  /** Text as it is; else as JSON. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** `half`: the connection ends in the middle of the body. `endless`: the body does not end. `stuck`: it stops in the middle. `silent`: nothing is answered. */
  readonly how?: "whole" | "half" | "endless" | "stuck" | "silent";
}

export interface HttpPeer {
  readonly url: string;
  /** `GET /path?query`, decoded, in their order. */
  readonly asked: readonly string[];
  readonly headers: readonly IncomingMessage["headers"][];
  /** From now on. */
  answer(answer: Answer | ((path: string, body: string) => Answer)): void;
  close(): Promise<void>;
}

export async function startHttpPeer(): Promise<HttpPeer> {
  let answerOf: (path: string, body: string) => Answer = () => ({ status: 404 });
  const asked: string[] = [];
  const headers: IncomingMessage["headers"][] = [];
  const server = createServer((request, response) => {
    void (async () => {
      const path = decodeURIComponent((request.url ?? "").replaceAll("+", " "));
      asked.push(`${request.method} ${path}`);
      headers.push(request.headers);
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk as Buffer);
      send(response, answerOf(path, Buffer.concat(chunks).toString("utf8")));
    })();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    headers,
    answer: (answer) => void (answerOf = typeof answer === "function" ? answer : () => answer),
    close: async () => {
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}

function send(response: ServerResponse, { status = 200, body = {}, headers = {}, how = "whole" }: Answer): void {
  if (how === "silent") return;
  const text = typeof body === "string" ? body : JSON.stringify(body);
  response.on("error", () => undefined);
  response.writeHead(status, {
    "content-type": "application/json",
    ...(how === "half" ? { "content-length": String(text.length) } : {}),
    ...headers,
  });
  if (how === "whole") return void response.end(text);
  if (how === "stuck") return void response.write(text.slice(0, text.length / 2));
  if (how === "half") return void response.write(text.slice(0, text.length / 2), () => response.destroy());
  const more = (): void => {
    while (!response.destroyed && response.write(" ".repeat(65_536)));
  };
  response.on("drain", more);
  more();
}

/** What goes wrong with any server, and the trouble that it is. */
export const HTTP_FAULTS: readonly (readonly [name: string, answer: Answer, trouble: string])[] = [
  ["401", { status: 401, body: "who are you" }, "credentials_refused"],
  ["403", { status: 403, body: { error: "not you" } }, "credentials_refused"],
  ["404", { status: 404, body: "not here" }, "missing"],
  ["400", { status: 400, body: { error: "what do you mean" } }, "unreachable"],
  ["a redirect, which is not followed", { status: 302, headers: { location: "http://127.0.0.1:1/" } }, "unreachable"],
  ["500", { status: 500, body: "<html>" }, "unreachable"],
  ["503", { status: 503, body: "" }, "unreachable"],
  ["half an answer", { how: "half", body: { status: "success", data: { resultType: "vector" } } }, "unreachable"],
  ["an answer without an end", { how: "endless" }, "unreachable"],
  ["HTML with status 200", { body: "<html>log in</html>" }, "type_changed"],
  ["nothing", { body: "" }, "type_changed"],
  ["null", { body: "null" }, "type_changed"],
  ["a list", { body: [] }, "type_changed"],
];
