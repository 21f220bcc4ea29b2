/** What the URL of a queue says. Apart from the SDK, which is loaded only where there is a queue. */
import { RelevoError } from "../../kernel/errors.ts";

/** Undefined where the URL does not say. */
export function regionOf(url: string): string | undefined {
  return /^https:\/\/sqs\.([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?\//.exec(url)?.[1];
}

/** Throws `queue_url_invalid`. */
export function assertQueueUrl(url: string): string {
  if (URL.canParse(url) && /^https?:\/\/[^/]+\/.+/.test(url)) return url;
  throw new RelevoError("queue_url_invalid", "this is no URL of a queue", {
    found: url,
    allowed: "https://sqs.REGION.amazonaws.com/ACCOUNT/NAME",
  });
}
