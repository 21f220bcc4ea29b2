/**
 * Trino: what it costs to observe clusters. Prints one JSON document; rows can be chosen by their names on the command line.
 *
 * `driver`: 100 clusters, whose coordinators replay recorded answers in a process of their own, looked at each second as the controller does; the CPU of the
 * looking process counts. Target: 5 % of a core. Told beside it: the same while ten of them drain, and where the servers send all of their 870 KB of metrics.
 */
import { measureDriver } from "./trino/driver.ts";

const ROWS: Readonly<Record<string, () => Promise<{ readonly ok: boolean }>>> = { driver: measureDriver };

const wanted = process.argv.slice(2);
const chosen = Object.entries(ROWS).filter(([name]) => wanted.length === 0 || wanted.includes(name));
const rows: Record<string, { readonly ok: boolean }> = {};
for (const [name, measure] of chosen) rows[name] = await measure();
process.stdout.write(`${JSON.stringify({ bench: "trino", ...rows })}\n`);
if (Object.values(rows).some(({ ok }) => !ok)) process.exitCode = 1;
