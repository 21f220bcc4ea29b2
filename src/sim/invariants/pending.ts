/** Invariants that nothing can break yet, because what they are about is not there: listed so that none is forgotten. */
export const PENDING: Readonly<Record<string, string>> = {
  I9: "a drain implies an acknowledged checkpoint: comes with checkpoints",
  I10: "restore plus replay equals the uninterrupted state, each event once: comes with checkpoints and the log",
  I24: "`effective` implies that the value was read from the process: comes with proofs",
  I25: "`pass` implies two executing in both kill windows and a control that failed: comes with gates",
  I28: "durable credentials = ledger: comes with credentials",
};

/** Judged at the end of a run and not by a checker: see `liveness.ts`. */
export const AT_THE_END: Readonly<Record<string, string>> = {
  I16: "recorded evidence is eventually acted on once capacity exists: after the faults stop everything is as it should be within 15 virtual minutes, and stays so",
};
