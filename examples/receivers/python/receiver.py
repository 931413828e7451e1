"""Receives webhooks that are signed after Standard Webhooks. Needs nothing but Python 3.8 or newer."""

import base64
import hashlib
import hmac
import os
import re
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TOLERANCE = 5 * 60  # seconds that the timestamp may be away from our clock
MAX_BODY = 1 << 20  # bytes; a larger delivery is refused unread


def parse_secret(text):
    """Returns the key of whsec_ and base64."""
    if not text.startswith("whsec_"):
        raise ValueError("a secret begins with whsec_")
    key = base64.b64decode(text[len("whsec_"):], validate=True)
    if len(key) < 24:
        raise ValueError("the secret is too short")
    return key


def verify(keys, headers, body, now):
    """Returns 0 if body, which is bytes, was signed with one of the keys, else the status to answer. headers is an email.message.Message."""
    values = [headers.get_all(name) or [] for name in ("webhook-id", "webhook-timestamp", "webhook-signature")]
    if any(len(given) != 1 for given in values):
        return 400
    event, timestamp, signatures = (given[0] for given in values)
    if not re.fullmatch(r"[!-\-/-~]{1,200}", event):  # printable, and without a dot, which separates what is signed
        return 400
    if not re.fullmatch(r"[0-9]{1,12}", timestamp):
        return 400
    if abs(now - int(timestamp)) > TOLERANCE:
        return 401
    content = b"%s.%s.%s" % (event.encode(), timestamp.encode(), body)
    for entry in signatures.split(" "):  # several while secrets rotate
        version, _, signature = entry.partition(",")
        if version != "v1":
            continue
        for key in keys:
            expected = base64.b64encode(hmac.new(key, content, hashlib.sha256).digest())
            if hmac.compare_digest(expected, signature.encode()):
                return 0
    return 401


class Receiver(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # connections are kept between deliveries
    timeout = 60
    keys = []
    # In memory here; keep them in your database, under a unique key, in the transaction that does the work.
    seen = set()
    lock = threading.Lock()

    def do_POST(self):
        length = self.headers.get("content-length", "")
        if not re.fullmatch(r"[0-9]{1,12}", length):
            return self.answer(411, close=True)
        if int(length) > MAX_BODY:
            return self.answer(413, close=True)
        body = self.rfile.read(int(length))  # the raw bytes: they are what was signed
        if self.path != "/hooks":
            return self.answer(404)
        refused = verify(self.keys, self.headers, body, time.time())
        if refused:
            return self.answer(refused)
        event = self.headers["webhook-id"]
        with self.lock:
            again = event in self.seen
            self.seen.add(event)
        if again:
            print("again", event, flush=True)
        else:
            print("received %s, %d bytes" % (event, len(body)), flush=True)  # put it in a queue of yours: do not work before you answer
        self.answer(204)

    def answer(self, status, close=False):
        self.send_response(status)
        if status != 204:
            self.send_header("content-length", "0")
        if close:
            self.send_header("connection", "close")
        self.end_headers()

    def log_message(self, *args):
        pass


if __name__ == "__main__":
    # The current secret, and the old one while they rotate, separated by a space.
    Receiver.keys = [parse_secret(text) for text in os.environ.get("WEBHOOK_SECRETS", "").split()]
    if not Receiver.keys:
        sys.exit("WEBHOOK_SECRETS: give at least one secret")
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1]) if len(sys.argv) > 1 else 8002), Receiver)
    print("listening on http://127.0.0.1:%d/hooks" % server.server_port, flush=True)
    server.serve_forever()
