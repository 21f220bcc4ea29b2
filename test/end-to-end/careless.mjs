/**
 * A workload that is careless on purpose: it takes its stamp when its work begins, and brings the result to the landing however long that took and whatever
 * its lease says by then. So it stands for any pause between the look at the lease and the write. It goes only by SIGKILL.
 */
import { createInstance } from "../../src/sdk/index.ts";

const landing = process.env.LANDING_URL;

const instance = createInstance({
  handler: (request, response) => {
    if (request.url === "/pid") return void response.end(String(process.pid));
    work(new URL(request.url, "http://here").searchParams.get("id")).then(
      (landed) => response.writeHead(201).end(JSON.stringify(landed)),
      (error) => response.writeHead(500).end(String(error)),
    );
  },
  onLease: (stamp) => post("open", { stamp, instance: instance.name }),
});

async function work(id) {
  const epoch = instance.writer.epoch();
  const stamp = epoch === null ? null : { workload: instance.writer.workload, epoch };
  await post("begun", { id, stamp, instance: instance.name });
  return post("results", { id, stamp, instance: instance.name });
}

/** `begun` is answered when the test says so. */
async function post(path, body) {
  return (await fetch(`${landing}/${path}`, { method: "POST", body: JSON.stringify(body) })).json();
}

process.on("SIGTERM", () => undefined);
await instance.listen();
