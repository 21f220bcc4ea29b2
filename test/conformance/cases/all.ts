import type { Case } from "../case.ts";
import { kindCases } from "./kinds.ts";
import { specialCases } from "./special.ts";

export const CASES: readonly Case[] = [...kindCases, ...specialCases];
