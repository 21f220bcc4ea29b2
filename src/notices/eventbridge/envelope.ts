/** What AWS puts around a message on its way: SNS's own notification, or a `Message` that holds the message as escaped JSON. */
import { parseObject } from "../parse-body.ts";

/** EventBridge → SNS → SQS is one layer, Auto Scaling → SNS → SQS two at the most. */
const MAX_LAYERS = 3;

/** The message inside; as it is when nothing is around it. */
export function unwrap(outer: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  let message = outer;
  for (let layer = 0; layer < MAX_LAYERS && isWrapping(message); layer++) message = parseObject(message.Message, "Message");
  return message;
}

function isWrapping(
  message: Readonly<Record<string, unknown>>,
): message is Readonly<Record<string, unknown>> & { readonly Message: string } {
  return typeof message["Message"] === "string" && !Object.hasOwn(message, "detail-type") && !Object.hasOwn(message, "LifecycleTransition");
}
