/** A child whose start fails after it listened for its parent's end. */
import { untilAskedToEnd } from "../child.ts";

void untilAskedToEnd();
process.exitCode = 3;
