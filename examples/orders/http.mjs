/** Reading and answering requests. */
const MAX_BODY_BYTES = 64 * 1024;

export class BadRequest extends Error {}

export function idOf(value) {
  if (typeof value === "string" && /^[\w.:-]{1,100}$/.test(value)) return value;
  throw new BadRequest("`id` must be 1 to 100 letters, digits, dots, colons, dashes or underscores");
}

export async function readJson(req) {
  let text = "";
  for await (const chunk of req) {
    text += chunk;
    if (text.length > MAX_BODY_BYTES) throw new BadRequest(`the body is larger than ${MAX_BODY_BYTES} bytes`);
  }
  try {
    return JSON.parse(text) ?? {};
  } catch {
    throw new BadRequest("the body is not JSON");
  }
}

export function sendJson(res, status, body) {
  const text = JSON.stringify(body);
  res.writeHead(status, { "content-type": "application/json", "content-length": Buffer.byteLength(text) });
  res.end(text);
}
