/** Answers may be compressed with gzip: what is needed of them is read from a copy; what goes on to the client stays as it is. */
import { constants, gunzipSync } from "node:zlib";

/** The beginning of what was compressed, as far as these bytes go; undefined when it cannot be read or would be more than `limit` bytes. */
export function startOfGzip(bytes: Buffer, limit: number): Buffer | undefined {
  try {
    return gunzipSync(bytes, { finishFlush: constants.Z_SYNC_FLUSH, maxOutputLength: limit });
  } catch {
    return undefined; // whoever asked passes the answer on unread
  }
}
