/** What SQLite's result codes mean to a caller: may it try again, or is the file no store any more? */
import { RelevoError } from "../kernel/errors.ts";
import { storeCorrupt, storeUnavailable } from "./port.ts";

/** https://www.sqlite.org/rescode.html; the low byte of an extended code. */
const UNAVAILABLE: Readonly<Record<number, string>> = {
  3: "the file may not be accessed",
  5: "the file is locked by another process",
  6: "a table is locked",
  7: "out of memory",
  8: "the file is read-only",
  9: "the statement was interrupted",
  10: "the disk failed",
  13: "the disk is full",
  14: "the file cannot be opened",
  15: "the locks of the file do not answer",
};
const CORRUPT: Readonly<Record<number, string>> = { 11: "its pages contradict each other", 26: "the file is no SQLite database" };

/** Undefined when the error does not come from SQLite. */
export function sqliteCode(error: unknown): number | undefined {
  if (!(error instanceof Error) || !("errcode" in error) || typeof error.errcode !== "number") return undefined;
  return error.errcode & 0xff;
}

export function isBusy(error: unknown): boolean {
  const code = sqliteCode(error);
  return code === 5 || code === 6;
}

/** True when the connection or the file failed, and not the one statement: nothing of the open transaction may be trusted any more. */
export function isStorageFailure(error: unknown): boolean {
  if (error instanceof RelevoError) return error.code === "store_unavailable" || error.code === "store_corrupt";
  const code = sqliteCode(error);
  return code !== undefined && (code in UNAVAILABLE || code in CORRUPT);
}

/** The error for the caller: unavailable, corrupt, or, for a fault of ours such as a broken constraint, the error itself. */
export function toStoreError(error: unknown): unknown {
  const code = sqliteCode(error);
  if (code === undefined) return error;
  const unavailable = UNAVAILABLE[code];
  if (unavailable !== undefined) return storeUnavailable(unavailable, error);
  const corrupt = CORRUPT[code];
  if (corrupt !== undefined) return storeCorrupt(corrupt, error);
  return error;
}
