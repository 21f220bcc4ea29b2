/** Writes the tables of docs/simulation.md anew: `npm run simulate:tables`. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { withTables } from "../../src/sim/catalogue.ts";

const path = join(import.meta.dirname, "../../docs/simulation.md");
writeFileSync(path, withTables(readFileSync(path, "utf8")));
