#!/usr/bin/env python3
"""A Runtime Extension of Cluster API with nothing but Python's standard library.

It answers three hooks, whose requests and responses are described by the OpenAPI document that
`slipway extension openapi` prints:

  Discovery            names the two handlers below
  BeforeClusterCreate  holds a Cluster back until it has the label example.com/owner
  GeneratePatches      sets the image of LocalMachineTemplates from the variable "image"

The environment says where to listen and with which certificate, as `slipway extension run` sets it:
EXTENSION_ADDRESS, EXTENSION_CERT_FILE and EXTENSION_KEY_FILE.
"""

import base64
import json
import os
import signal
import ssl
import sys
import threading
import traceback
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

API_VERSION = "hooks.runtime.cluster.x-k8s.io/v1alpha1"
OWNER_LABEL = "example.com/owner"


def check_owner(request):
    labels = request["cluster"].get("metadata", {}).get("labels", {})
    if OWNER_LABEL not in labels:
        return {"retryAfterSeconds": 10, "message": f"the Cluster needs the label {OWNER_LABEL}"}
    return {"retryAfterSeconds": 0}


def set_image(request):
    items = []
    for item in request["items"]:
        # The variables of a template are in front of those of the cluster.
        variables = {v["name"]: v["value"] for v in request.get("variables", []) + item.get("variables", [])}
        if item["object"]["kind"] != "LocalMachineTemplate" or "image" not in variables:
            continue
        patch = {"spec": {"template": {"spec": {"backend": {"container": {"image": variables["image"]}}}}}}
        items.append({
            "uid": item["uid"],
            "patchType": "JSONMergePatch",
            "patch": base64.b64encode(json.dumps(patch).encode()).decode(),
        })
    return {"items": items}


# (hook, handler) → what answers it.
HANDLERS = {
    ("BeforeClusterCreate", "check-owner"): check_owner,
    ("GeneratePatches", "set-image"): set_image,
}


def discovery(_request):
    return {"handlers": [
        {"name": name, "requestHook": {"apiVersion": API_VERSION, "hook": hook}, "timeoutSeconds": 10, "failurePolicy": "Fail"}
        for hook, name in HANDLERS
    ]}


def routes():
    """Maps the path of every handler to its hook and the function that answers it."""
    table = {f"/{API_VERSION}/discovery": ("Discovery", discovery)}
    for (hook, name), function in HANDLERS.items():
        table[f"/{API_VERSION}/{hook.lower()}/{name}"] = (hook, function)
    return table


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # callers keep connections open
    timeout = 300
    routes = routes()

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        route = self.routes.get(self.path.split("?")[0])
        if route is None:
            return self.reply(404, "text/plain", b"no handler is served here\n")
        hook, function = route
        try:
            request = json.loads(body)
            if (request["apiVersion"], request["kind"]) != (API_VERSION, hook + "Request"):
                raise ValueError(f"this path takes a {hook}Request of {API_VERSION}")
        except (ValueError, KeyError, TypeError) as error:
            return self.reply(400, "text/plain", f"the request is wrong: {error}\n".encode())
        response = {"apiVersion": API_VERSION, "kind": hook + "Response", "status": "Success"}
        try:
            response.update(function(request))
        except Exception:  # the caller gets a Failure whose message is always the same; the log has the cause
            traceback.print_exc()
            response.update(status="Failure", message=f"the handler for {hook} failed")
            if hook == "BeforeClusterCreate":
                response["retryAfterSeconds"] = 0
        self.reply(200, "application/json", json.dumps(response).encode())

    def do_GET(self):
        healthy = self.path in ("/healthz", "/readyz")
        self.reply(200 if healthy else 404, "text/plain", b"ok\n" if healthy else b"not found\n")

    def reply(self, code, content_type, body):
        self.send_response(code)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format, *args):
        print("extension:", format % args, file=sys.stderr)


def main():
    host, _, port = os.environ.get("EXTENSION_ADDRESS", ":9443").rpartition(":")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(os.environ["EXTENSION_CERT_FILE"], os.environ["EXTENSION_KEY_FILE"])
    server = ThreadingHTTPServer((host, int(port)), Handler)
    server.daemon_threads = True
    # The handshake is left to the thread of the connection: a slow caller holds up no one else.
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: threading.Thread(target=server.shutdown).start())
    server.serve_forever()


if __name__ == "__main__":
    main()
