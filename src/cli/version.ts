/** The package's version, read once from its manifest: in a clone and in an installed package it lies at the same distance. */
import { readFileSync } from "node:fs";

const manifest = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")) as { readonly version: string };

export const VERSION = manifest.version;
