/** Preloaded into a process: its wall clock is off by what the file named by RELEVO_TEST_SKEW says, in ms. */
import { readFileSync } from "node:fs";

const RealDate = Date;
const offsetMs = Number(readFileSync(process.env.RELEVO_TEST_SKEW, "utf8"));

globalThis.Date = class extends RealDate {
  constructor(...args) {
    if (args.length === 0) super(RealDate.now() + offsetMs);
    else super(...args);
  }

  static now() {
    return RealDate.now() + offsetMs;
  }
};
