import { expect, test } from "vitest";
import { isLoopback, isLoopbackHostHeader } from "./loopback.ts";

test("only whole loopback addresses and localhost are this machine, whatever a name begins with", () => {
  const hosts = [
    "127.0.0.1",
    "127.8.9.10",
    "::1",
    "[::1]",
    "localhost",
    "127.evil.example",
    "127.0.0.1.evil.example",
    "localhost.evil",
    "10.0.0.1",
    "",
  ];

  expect(hosts.filter(isLoopback)).toEqual(["127.0.0.1", "127.8.9.10", "::1", "[::1]", "localhost"]);
});

test("a Host header may carry a port", () => {
  const headers = ["127.0.0.1:80", "[::1]:80", "localhost:7070", "localhost", "127.evil.example:80", "evil.example:127", undefined];

  expect(headers.filter(isLoopbackHostHeader)).toEqual(["127.0.0.1:80", "[::1]:80", "localhost:7070", "localhost"]);
});
