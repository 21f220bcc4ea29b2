/** Every transition as it happens, one JSON object a line. A reader that is too slow is cut off and comes again. */
import type { FastifyPluginAsyncZod } from "fastify-type-provider-zod";
import { z } from "zod";
import type { Timer } from "../../kernel/clock.ts";
import { RelevoError } from "../../kernel/errors.ts";
import type { RouteContext } from "../app.ts";
import { LineStream } from "../line-stream.ts";
import { renderJournalEntry } from "../render.ts";

const MAX_WATCHERS = 64;
const PING_EVERY_MS = 5_000;
const MAX_BUFFERED_BYTES = 1024 * 1024;
/** A token that ends, or a role that is taken away, ends what was opened with it. */
const LOOK_AGAIN_MS = 60_000;

export const watchRoutes: FastifyPluginAsyncZod<RouteContext> = async (app, { controlPlane, clock, log, isStillLetIn }) => {
  const open = new Set<LineStream>();
  app.addHook("preClose", async () => {
    for (const stream of open) stream.end();
  });

  app.get(
    "/v1/watch",
    { schema: { summary: "Transitions as JSON lines, from now on", querystring: z.object({ pool: z.string().max(100).optional() }) } },
    async (request, reply) => {
      const { query } = request;
      if (open.size >= MAX_WATCHERS)
        throw new RelevoError("too_many_streams", "Too many readers watch already.", { allowed: `${MAX_WATCHERS} at once` });
      let unsubscribe = (): void => {};
      let timer: Timer | undefined;
      const stream = new LineStream(
        reply.raw,
        { clock, pingEveryMs: PING_EVERY_MS, ping: { type: "ping" }, maxBufferedBytes: MAX_BUFFERED_BYTES },
        (why) => {
          unsubscribe();
          timer?.cancel();
          open.delete(stream);
          if (why === "reader_too_slow") log.warn({ event: "watch_cut", why }, "a watcher was cut off");
        },
      );
      open.add(stream);
      reply.hijack();
      stream.open();
      // The first line says that nothing from now on is missed.
      stream.send({ type: "ping" });
      unsubscribe = controlPlane.subscribe((entry) => {
        if (query.pool === undefined || entry.pool === null || entry.pool === query.pool) stream.send(renderJournalEntry(entry));
      });
      if (stream.isOver) return unsubscribe();
      const lookAgain = async (): Promise<void> => {
        if (!(await isStillLetIn(request))) {
          log.info({ event: "watch_refused", by: request.caller.name }, "a watcher may not read any more");
          return stream.end();
        }
        if (!stream.isOver) timer = clock.after(LOOK_AGAIN_MS, () => void lookAgain());
      };
      timer = clock.after(LOOK_AGAIN_MS, () => void lookAgain());
      return undefined;
    },
  );
};
