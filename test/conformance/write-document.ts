/** `node test/conformance/write-document.ts`: writes docs/conformance.md out of the comparison and the list of deviations, and prints the count. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Recording } from "./case.ts";
import { DEVIATIONS } from "./deviations.ts";
import { startEmbedded } from "./embedded.ts";
import { judge, summaryOf } from "./judge.ts";
import { runAll } from "./run-all.ts";

const recorded = JSON.parse(readFileSync(join(import.meta.dirname, "recorded.json"), "utf8")) as Recording;
const embedded = await startEmbedded();
const answers = await runAll({ url: embedded.url }).finally(() => embedded.close());
const judgement = judge(recorded, JSON.parse(JSON.stringify(answers)) as Recording);
writeFileSync(
  join(import.meta.dirname, "../../docs/conformance.md"),
  `# The embedded cluster beside a real API server

${summaryOf(judgement)}.

A case is a few requests one after the other: lives of 18 kinds (create, read, list, page, watch, change, conflict, delete), what is refused for each, and what
only some have: evictions, bindings, scale, statuses, patches of four types, server-side apply, finalizers, grace periods, versions, definitions. Which verbs on
which kinds is taken from recorded traffic, of the product's own fleet and of the usual kubectl commands (\`test/conformance/traffic.json\`); a test fails when one
of them has no case.

Of each answer that counts by which a client decides: the status, \`reason\`, \`causes\`, \`details\`, what is in a list and whether it goes on, whether the
resourceVersion is the same or later, generation, deletion, finalizers, a table's columns; of a watch the events and their order. Messages do not count.

| | |
|---|---|
| what a real server (kube-apiserver 1.35, etcd 3.6) answered | \`test/conformance/recorded.json\`, written by \`node test/conformance/record.ts\` |
| the embedded cluster, held to it | \`npm test\` (\`test/conformance/conformance.test.ts\`) |
| the real server, still as recorded | \`npm run test:long\` (\`test/conformance/conformance.long.test.ts\`; \`npm run kubernetes:build\` compiles it) |

Controllers, scheduler and kubelets are left out on both sides: only the API is compared.

## What differs, and why

${DEVIATIONS.map(({ reason }) => `- ${reason}`).join("\n")}
`,
);
process.stdout.write(`${summaryOf(judgement)}; not explained: ${judgement.unexplained.map(({ at }) => at).join(", ") || "none"}\n`);
if (judgement.unexplained.length + judgement.stale.length > 0) process.exitCode = 1;
