import type { Case } from "../case.ts";
import { invalidCases } from "./invalid.ts";
import { kindCases } from "./kinds.ts";
import { readCases } from "./reads.ts";
import { subresourceCases } from "./subresources.ts";
import { writeCases } from "./writes.ts";

export const CASES: readonly Case[] = [...kindCases, ...subresourceCases, ...writeCases, ...readCases, ...invalidCases];
