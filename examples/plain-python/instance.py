"""The instance protocol relevo/v1 in plain Python: what docs/instance-protocol.md describes, without the SDK."""
import json
import os
import socket
import threading
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

BOOT_ID = str(uuid.uuid4())  # new with every process
NAME = os.environ.get("RELEVO_INSTANCE") or socket.gethostname()
MAX_BODY = 4096
# Where nobody admits it (no RELEVO_INSTANCE) it serves from the start.
TAKES_WORK = ("admitted", "draining") if "RELEVO_INSTANCE" in os.environ else ("starting", "ready", "admitted", "draining")
NEXT = {"prepare": "ready", "admit": "admitted", "drain": "draining", "close": "closed"}

lock = threading.Lock()
state, admitted_by, in_flight = "starting", None, 0
answers = {}  # step -> (call, answer): the same step gets its first answer again


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self):
        global in_flight
        if self.path == "/relevo/v1/identity":
            return self.answer(200, {"protocol": "relevo/v1", "instance": NAME, "bootId": BOOT_ID, "state": state, "admittedBy": admitted_by})
        if self.path == "/relevo/v1/obligations":
            return self.answer(200, {"bootId": BOOT_ID, "requests": in_flight, "upgraded": 0, "transactions": 0})
        if self.path == "/relevo/v1/health":
            ok = state != "closed"
            return self.answer(200 if ok else 503, {"ok": ok, "bootId": BOOT_ID, "reason": None if ok else "closed"})
        with lock:
            if state not in TAKES_WORK:  # provably not taken: the gateway sends it elsewhere
                return self.refuse(503, state, f"the instance is {state}", {"relevo-not-taken": "1", "connection": "close"})
            in_flight += 1
        try:
            self.answer(200, {"hello": NAME})  # the application
        finally:
            with lock:
                in_flight -= 1

    def do_POST(self):
        call = self.path.removeprefix("/relevo/v1/")
        length = int(self.headers.get("content-length") or 0)
        if length > MAX_BODY:
            return self.refuse(413, "body_too_large", f"at most {MAX_BODY} bytes", {"connection": "close"})
        raw = self.rfile.read(length)
        if call not in NEXT:
            return self.refuse(404, "unknown_call", "the instance protocol has no such call")
        step = self.headers.get("idempotency-key")
        try:
            body = json.loads(raw)
            boot_id, meant = body["bootId"], (call, body.get("deadline"))
        except (ValueError, KeyError, TypeError, AttributeError):
            return self.refuse(400, "body_invalid", "the body must be an object with bootId")
        if not step:
            return self.refuse(400, "idempotency_key_invalid", "a call needs an Idempotency-Key")
        if boot_id != BOOT_ID:
            return self.refuse(409, "boot_id_mismatch", f"this process is {BOOT_ID}")
        self.perform(call, meant, step)

    def perform(self, call, meant, step):
        global state, admitted_by
        with lock:
            if step in answers:
                known, answer = answers[step]
                return self.answer(200, answer) if known == meant else self.refuse(409, "step_conflict", "the same step came with another call")
            if call in ("prepare", "admit") and state in ("draining", "closed"):
                return self.refuse(409, "wrong_state", f"the instance is {state}")
            if not (call == "prepare" and state == "admitted") and state != "closed":
                state = NEXT[call]
            if call == "admit":
                admitted_by = step
            answers[step] = (meant, {"bootId": BOOT_ID, "step": step, "state": state})
            self.answer(200, answers[step][1])

    def refuse(self, status, code, message, headers={}):
        self.answer(status, {"error": {"code": code, "message": message}}, headers)

    def answer(self, status, value, headers={}):
        body = json.dumps(value).encode()
        self.send_response(status)
        for name, text in {"content-type": "application/json", "content-length": str(len(body)), **headers}.items():
            self.send_header(name, text)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


if __name__ == "__main__":
    host = os.environ.get("HOST") or os.environ.get("POD_IP") or "0.0.0.0"
    ThreadingHTTPServer((host, int(os.environ.get("PORT", "8080"))), Handler).serve_forever()
