import pg from "pg";
import { expect, test } from "vitest";
import { meaningOf, toStoreError } from "./postgres-errors.ts";

function sqlstate(code: string): Error {
  return Object.assign(new pg.DatabaseError(`what ${code} says`, 0, "error"), { code, severity: "ERROR" });
}

test.each([
  ["40001", "again"],
  ["40P01", "again"],
  ["23505", "again"],
  ["23503", "again"],
  ["55P03", "unavailable"],
  ["57014", "unavailable"],
  ["53300", "unavailable"],
  ["53100", "unavailable"],
  ["28P01", "unavailable"],
  ["57P01", "reconnect"],
  ["57P02", "reconnect"],
  ["57P03", "reconnect"],
  ["08006", "reconnect"],
  ["08007", "reconnect"],
  ["25006", "reconnect"],
  ["25P03", "reconnect"],
  ["40003", "reconnect"],
  ["XX001", "corrupt"],
  ["42601", "fault"],
  ["23514", "fault"],
  ["P0001", "fault"],
])("SQLSTATE %s means %s", (code, meaning) => {
  const error = sqlstate(code);
  expect(meaningOf(error)).toBe(meaning);
  const told = toStoreError(error);
  if (meaning === "fault") expect(told).toBe(error);
  else if (meaning === "corrupt") expect(told).toMatchObject({ code: "store_corrupt" });
  else
    expect(told).toMatchObject({
      code: "store_unavailable",
      class: "retryable",
      message: expect.stringContaining(`${code} what ${code} says`),
    });
});

test.each(["Connection terminated unexpectedly", "timeout exceeded when trying to connect", "Client was closed and is not queryable"])(
  "the driver's words %j are a broken connection",
  (message) => expect(meaningOf(new Error(message))).toBe("reconnect"),
);

test("a statement that is not answered in time is silence, which is met less often than a broken connection, and is unavailable in the end", () => {
  const silence = new Error("Query read timeout");
  expect(meaningOf(silence)).toBe("silent");
  expect(toStoreError(silence)).toMatchObject({ code: "store_unavailable", message: expect.stringContaining("does not answer") });
});

test.each([
  "ECONNREFUSED",
  "ECONNRESET",
  "EPIPE",
  "ENOTFOUND",
  "ETIMEDOUT",
  "CERT_HAS_EXPIRED",
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "ERR_TLS_CERT_ALTNAME_INVALID",
])("%s is a broken connection", (code) => expect(meaningOf(Object.assign(new Error("connect"), { code }))).toBe("reconnect"));

test("any other error is a fault, and is thrown as it is", () => {
  const fault = new TypeError("x is undefined");
  expect(toStoreError(fault)).toBe(fault);
  expect(meaningOf(undefined)).toBe("fault");
});
