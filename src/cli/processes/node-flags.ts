/** How large V8's young generation is, by what a process does. Both measured with `npm run bench`. */

/** For what holds much: a third less memory with 10,000 pods in the embedded cluster, at the same speed. */
export const HOLDS_MUCH: readonly string[] = ["--max-semi-space-size=8"];

/**
 * For what serves much: large enough that a collection is rare (each one delays the requests of its moment), and of that size from the start, so that memory
 * stands still: 172 MB after 200,000 requests, 176 MB after 1,000,000.
 */
export const SERVES_MUCH: readonly string[] = ["--min-semi-space-size=32", "--max-semi-space-size=32"];

/** For what is on every node and does little: it stays as small as it starts. */
export const HOLDS_LITTLE: readonly string[] = ["--max-semi-space-size=1", "--max-old-space-size=48"];
