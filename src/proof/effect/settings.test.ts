import { expect, test } from "vitest";
import { nameOfOption, settingsOf, shownValue } from "./settings.ts";

const namesAndValues = (file: string, text: string) => settingsOf("worker", file, text).map(({ kind, name, value }) => [kind, name, value]);

test("properties are read as Trino reads them: the last one of a name counts, comments do not", () => {
  const text = "# a comment\ncoordinator=true\n\n query.max-memory = 1GB \nempty=\ncoordinator=false\n!no";
  expect(namesAndValues("config.properties", text)).toEqual([
    ["config", "coordinator", "false"],
    ["config", "query.max-memory", "1GB"],
    ["config", "empty", ""],
  ]);
});

test.each([
  ["exchange-manager.properties", "exchange.base-directories=/x", [["exchange", "exchange.base-directories", "/x"]]],
  ["access-control.properties", "access-control.name=file", [["access", "access-control.name", "file"]]],
  ["catalog/tpch.properties", "connector.name=tpch", [["config", "connector.name", "tpch"]]],
  [
    "jvm.config",
    "-server\n# heap\n-Xmx1g\n",
    [
      ["jvm", "-server", "-server"],
      ["jvm", "-Xmx", "-Xmx1g"],
    ],
  ],
  [
    "session-property-rules.json",
    '[{"sessionProperties":{"query_max_run_time":"8h"}},{"user":"ann","sessionProperties":{"query_max_run_time":"1h"}}]',
    [["session", "query_max_run_time", "8h"]],
  ],
  ["session-property-rules.json", "not JSON", []],
  ["password.db", "ann:hash", []],
])("%s holds settings of its own kind", (file, text, expected) => {
  expect(namesAndValues(file, text)).toEqual(expected);
});

test.each([
  ["-XX:+UseG1GC", "-XX:UseG1GC"],
  ["-XX:-UseG1GC", "-XX:UseG1GC"],
  ["-XX:G1HeapRegionSize=4M", "-XX:G1HeapRegionSize"],
  ["-Da.b=c", "-Da.b"],
  ["--add-opens=java.base/java.nio=ALL-UNNAMED", "--add-opens=java.base/java.nio=ALL-UNNAMED"],
])("%s is the option %s", (option, name) => {
  expect(nameOfOption(option)).toBe(name);
});

test("a secret is not shown", () => {
  expect(shownValue({ name: "exchange.s3.aws-secret-key", file: "exchange-manager.properties" }, "s3cr3t")).toBe("(not shown)");
});
