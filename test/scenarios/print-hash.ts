/** Prints the hash of one seed's event log: for the test that another process comes to the same. */
import { simulate } from "./seeds.ts";

process.stdout.write((await simulate(Number(process.argv[2]))).hash);
