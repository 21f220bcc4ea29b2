/** `node test/conformance/record.ts`: writes `recorded.json`, what a real API server answers to every case. Needs the programs of `npm run kubernetes:build`. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { startReal } from "./real.ts";
import { runAll } from "./run-all.ts";

const cluster = await startReal();
try {
  const recording = await runAll({ url: cluster.url, token: "admin-token" });
  const lines = Object.entries(recording).map(
    ([name, told]) => `  ${JSON.stringify(name)}: [\n${told.map((each) => `    ${JSON.stringify(each)}`).join(",\n")}\n  ]`,
  );
  writeFileSync(join(import.meta.dirname, "recorded.json"), `{\n${lines.join(",\n")}\n}\n`);
  process.stdout.write(`${lines.length} cases, ${Object.values(recording).flat().length} answers\n`);
} finally {
  await cluster.stop();
}
