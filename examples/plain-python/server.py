"""A plain HTTP service without the SDK: Relevo judges it by its health path and by what the gateway has in flight on it."""
import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self):
        body = b"ok\n" if self.path == "/healthz" else b"hello from python\n"
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


host = os.environ.get("HOST") or os.environ.get("POD_IP") or "0.0.0.0"
ThreadingHTTPServer((host, int(os.environ.get("PORT", "8080"))), Handler).serve_forever()
