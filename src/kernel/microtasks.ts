/**
 * Runs all promise jobs that are due, from within a macrotask and without ending it. V8 has it only as a native function, which must be allowed for the moment
 * in which the call is compiled. What needs the event loop does not run: real I/O, `process.nextTick`, `setImmediate`.
 */
import { setFlagsFromString } from "node:v8";
import { runInThisContext } from "node:vm";

/** Must not be called from a promise job: there it does nothing. */
export const drainMicrotasks: () => void = compile();

function compile(): () => void {
  setFlagsFromString("--allow-natives-syntax");
  try {
    const drain = runInThisContext("() => %PerformMicrotaskCheckpoint()") as () => void;
    drain(); // functions are compiled when they are called first
    return drain;
  } finally {
    setFlagsFromString("--no-allow-natives-syntax");
  }
}
