"""Runs a program that has no network, and carries its HTTP requests to the host over the control channel.

The host sends `{"argv": [...], "env": {...}}`, in which `{base_url}` stands for the address of the local server. It
gets back `{"request": {"method", "path", "type", "body"}}`, to be answered with `{"status", "type", "body"}`, or
`{"exit_code": n}` once the program has ended. Bodies are base64. Requests are carried one after the other; the host
decides where they go.
"""

import base64
import json
import os
import queue
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from socketserver import ThreadingMixIn

from .channel import JsonChannel

MOST_BYTES = 5 << 20


class RelayServer(ThreadingMixIn, HTTPServer):
    """Listens on the sandbox's own loopback."""

    daemon_threads = True
    waiting = None


class RelayHandler(BaseHTTPRequestHandler):
    """Waits until the host has answered."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # It would hold a response's body back for 40 ms.

    def do_GET(self):
        """Carries a request without a body."""
        self.carry(b"")

    def do_POST(self):
        """Carries a request with its body, unless that is too large."""
        try:
            length = int(self.headers.get("content-length", 0))
        except ValueError:
            length = -1
        if not 0 <= length <= MOST_BYTES:
            self.close_connection = True
            self.reply(413, "application/json", json.dumps({"error": {"message": "the request is too large"}}).encode())
            return
        self.carry(self.rfile.read(length))

    def carry(self, body):
        """Hands the request to the host and replies with its answer."""
        carried = {
            "method": self.command,
            "path": self.path,
            "type": self.headers.get("content-type", ""),
            "body": base64.b64encode(body).decode("ascii"),
        }
        answer = queue.Queue()
        self.server.waiting.put((carried, answer))
        found = answer.get()
        self.reply(found["status"], found["type"], base64.b64decode(found["body"]))

    def reply(self, status, kind, body):
        """Sends a response."""
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format, *args):
        """Nothing is printed: the program's output is its own."""


def main(_):
    """Runs the program beside a local server, whose requests the host answers."""
    channel = JsonChannel(int(os.environ.pop("GUMSHOE_CONTROL")))
    order = channel.receive()
    server = RelayServer(("127.0.0.1", 0), RelayHandler)
    server.waiting = waiting = queue.Queue()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    base_url = "http://127.0.0.1:%d" % server.server_address[1]
    argv = [word.replace("{base_url}", base_url) for word in order["argv"]]
    given = {name: value.replace("{base_url}", base_url) for name, value in order["env"].items()}
    try:
        process = subprocess.Popen(argv, env=dict(os.environ, **given), stdin=subprocess.DEVNULL)
    except OSError as error:
        sys.stdout.write("%s: %s\n" % (argv[0], error.strerror))
        sys.stdout.flush()
        channel.send({"exit_code": 127})
        return
    threading.Thread(target=lambda: waiting.put((None, process.wait())), daemon=True).start()
    while True:
        carried, answer = waiting.get()
        if carried is None:
            channel.send({"exit_code": answer})
            return
        channel.send({"request": carried})
        answer.put(channel.receive())
