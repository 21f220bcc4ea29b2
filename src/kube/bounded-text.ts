/** Reads a body whole, as far as it is allowed to be. */
import { RelevoError } from "../kernel/errors.ts";

/** `what`: whose answer it is, for the error `kube_response_too_large`. */
export async function boundedText(body: AsyncIterable<Uint8Array>, bytesMax: number, what: string): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.length;
    if (bytes > bytesMax) {
      throw new RelevoError("kube_response_too_large", `the API server's answer to ${what} is larger than ${bytesMax} bytes`, {
        todo: "read it in pages",
      });
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, bytes).toString("utf8");
}
