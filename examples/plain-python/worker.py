"""A worker of the built-in queue in plain Python: the instance protocol of instance.py, and beside it its slots (docs/instance-protocol.md), without the SDK."""
import json
import os
import threading
import time
import urllib.request
from http.server import ThreadingHTTPServer

import instance

QUEUE_URL, TOKEN = os.environ["QUEUE_URL"], os.environ["QUEUE_TOKEN"]
QUEUE = os.environ.get("QUEUE", "captures")
SLOTS = int(os.environ.get("SLOTS", "2"))
LEASE_MS = 10_000

lock = threading.Lock()
busy = {}  # slot -> {job, since, progress, progress_at}, on the monotonic clock
outcomes = {"done": 0, "nothing": 0, "reaped": 0, "failed": 0}
taking = 0


def ms(since):
    return round((time.monotonic() - since) * 1000)


class Handler(instance.Handler):
    def do_GET(self):
        with lock:
            entries = [
                {"slot": slot, "job": each["job"], "ageMs": ms(each["since"]), "quietMs": ms(each["progress_at"]), "progress": each["progress"]}
                for slot, each in busy.items()
            ]
            owed = len(busy) + taking
            ended = dict(outcomes)
        if self.path == "/relevo/v1/slots":
            return self.answer(200, {"bootId": instance.BOOT_ID, "flow": f"queue/{QUEUE}", "total": SLOTS, "busy": entries, "outcomes": ended})
        if self.path == "/relevo/v1/obligations":  # a call for jobs may bring one: with it the worker is not done
            return self.answer(200, {"bootId": instance.BOOT_ID, "requests": owed, "upgraded": 0, "transactions": 0})
        super().do_GET()


def call(path, body):
    headers = {"authorization": f"Bearer {TOKEN}", "content-type": "application/json"}
    request = urllib.request.Request(f"{QUEUE_URL}/v1/queues/{QUEUE}/{path}", json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=15) as response:
        return json.load(response)


def work(job, advance):
    """The application: `advance` says that work was done, never that the worker lives."""
    for _ in range(job["payload"].get("frames", 10)):
        time.sleep(job["payload"].get("frameMs", 50) / 1000)
        advance()


def run(slot, job):
    def advance():
        with lock:
            busy[slot]["progress"] += 1
            busy[slot]["progress_at"] = time.monotonic()
        if ms(extended[0]) > LEASE_MS / 3:  # only who works on keeps the job
            call(f"jobs/{job['id']}/extend", {"lease": job["lease"], "leaseMs": LEASE_MS})
            extended[0] = time.monotonic()

    extended = [time.monotonic()]
    try:
        work(job, advance)
        call(f"jobs/{job['id']}/complete", {"lease": job["lease"], "outcome": "done"})
        outcome = "done"
    except Exception as error:  # also 409: another worker has the job, and what was done here is dropped
        print(f"{job['id']}: {error}", flush=True)
        outcome = "failed"
    with lock:
        del busy[slot]
        outcomes[outcome] += 1


def serve_slot(slot):
    global taking
    while instance.state != "closed":
        with lock:
            takes = instance.state in instance.TAKES_WORK and instance.state != "draining"
            taking += takes
        if not takes:
            time.sleep(0.2)
            continue
        jobs = []
        try:
            jobs = call("take", {"worker": instance.NAME, "max": 1, "leaseMs": LEASE_MS, "waitMs": 1000})["jobs"]
        except OSError as error:
            print(f"no job can be taken: {error}", flush=True)
            time.sleep(1)
        now = time.monotonic()
        with lock:
            taking -= 1
            for job in jobs:
                busy[slot] = {"job": job["id"], "since": now, "progress": 0, "progress_at": now}
        for job in jobs:
            run(slot, job)


if __name__ == "__main__":
    for slot in range(SLOTS):
        threading.Thread(target=serve_slot, args=(slot,), daemon=True).start()
    host = os.environ.get("HOST") or os.environ.get("POD_IP") or "0.0.0.0"
    server = ThreadingHTTPServer((host, int(os.environ.get("PORT", "8080"))), Handler)
    print(json.dumps({"host": server.server_address[0], "port": server.server_address[1]}), flush=True)
    server.serve_forever()
