#!/usr/bin/env python3
"""A Runtime Extension that holds back each lifecycle hook until it is told to let it go.

It needs nothing but Python's standard library, and knows nothing of the hooks but the OpenAPI document that
`slipway extension openapi -o json` prints: which lifecycle hooks there are and at which paths, what a request may
hold, and what an answer has to hold. A request that is not as the document says is answered with a Failure.

usage: hooks.py FOLDER, with these files:

  openapi.json      the document
  tls.crt, tls.key  certificate and key to listen with
  address           written when the extension listens: host:port
  released          names of hooks that are let go, one a line; read for each call
  calls.jsonl       a line for each call: hook, request, whether it was let go, and what is wrong with the request
"""

import json
import os
import ssl
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

FOLDER = sys.argv[1]
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int, "number": (int, float)}


def in_folder(name):
    return os.path.join(FOLDER, name)


with open(in_folder("openapi.json")) as document:
    DOCUMENT = json.load(document)


def resolve(schema):
    """Follows references, alone or as the only part of allOf."""
    while True:
        if "$ref" in schema:
            schema = DOCUMENT["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
        elif len(schema.get("allOf", [])) == 1:
            schema = schema["allOf"][0]
        else:
            return schema


def problems(schema, value, path):
    """Lists how a value differs from its schema."""
    schema = resolve(schema)
    kind = schema.get("type")
    if kind and (not isinstance(value, TYPES[kind]) or kind != "boolean" and isinstance(value, bool)):
        return [f"{path}: {json.dumps(value)[:80]} is no {kind}"]
    found = []
    if "enum" in schema and value not in schema["enum"]:
        found.append(f"{path}: {value} is none of {schema['enum']}")
    if kind == "array":
        for index, item in enumerate(value):
            found += problems(schema.get("items", {}), item, f"{path}[{index}]")
    if kind == "object":
        found += [f"{path}.{name} is missing" for name in schema.get("required", []) if name not in value]
        others = schema.get("additionalProperties", "properties" not in schema)
        for name, item in value.items():
            if name in schema.get("properties", {}):
                found += problems(schema["properties"][name], item, f"{path}.{name}")
            elif isinstance(others, dict):
                found += problems(others, item, f"{path}.{name}")
            elif not others:
                found.append(f"{path}.{name} is not in the document")
    return found


class Hook:
    """A hook as the document has it."""

    def __init__(self, operation):
        self.name = operation["operationId"].partition("-")[0]
        self.request = self.schema(operation["requestBody"])
        self.response = self.schema(operation["responses"]["200"])
        self.can_block = "retryAfterSeconds" in resolve(self.response)["properties"]

    @staticmethod
    def schema(message):
        return message["content"]["application/json"]["schema"]

    def answer(self, fields):
        """Completes an answer with what the document says of it."""
        properties = resolve(self.response)["properties"]
        whole = {name: properties[name]["enum"][0] for name in ("apiVersion", "kind")}
        whole.update(status="Success", **({"retryAfterSeconds": 0} if self.can_block else {}))
        whole.update(fields)
        wrong = problems(self.response, whole, self.name + "Response")
        if wrong:
            raise ValueError(wrong)
        return whole


def hooks():
    """Maps paths to hooks, with the hook's name in lower case as the name of its handler."""
    table = {}
    for path, item in DOCUMENT["paths"].items():
        hook = Hook(item["post"])
        if hook.name == "Discovery" or "Lifecycle Hooks" in item["post"]["tags"]:
            table[path.replace("{name}", hook.name.lower())] = hook
    return table


HOOKS = hooks()
LOCK = threading.Lock()


def discover(hook):
    return hook.answer({"handlers": [
        {
            "name": other.name.lower(),
            "requestHook": {"apiVersion": path.strip("/").rpartition("/" + other.name.lower() + "/")[0], "hook": other.name},
            "timeoutSeconds": 10,
            "failurePolicy": "Fail",
        }
        for path, other in HOOKS.items() if other is not hook
    ]})


def hold(hook, request):
    """Lets a hook go that is released; blocks it otherwise, or fails where it cannot block."""
    wrong = problems(hook.request, request, hook.name + "Request")
    with LOCK:
        with open(in_folder("released")) as names:
            released = hook.name in names.read().split()
        with open(in_folder("calls.jsonl"), "a") as calls:
            calls.write(json.dumps({"hook": hook.name, "released": released, "request": request, "problems": wrong}) + "\n")
    if wrong:
        return hook.answer({"status": "Failure", "message": "; ".join(wrong)})
    if released:
        return hook.answer({})
    message = f"nobody has released {hook.name} yet"
    if hook.can_block:
        return hook.answer({"retryAfterSeconds": 1, "message": message})
    return hook.answer({"status": "Failure", "message": message})


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # callers keep connections open
    timeout = 300

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        hook = HOOKS.get(self.path.partition("?")[0])
        if hook is None:
            self.reply(404, b"no handler is served here\n")
            return
        answer = discover(hook) if hook.name == "Discovery" else hold(hook, json.loads(body))
        self.reply(200, json.dumps(answer).encode())

    def reply(self, code, body):
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format, *args):
        pass


def main():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(in_folder("tls.crt"), in_folder("tls.key"))
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    # The handshake is left to the thread of the connection: a slow caller holds up no one else.
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    with open(in_folder("address.new"), "w") as file:
        file.write("127.0.0.1:%d" % server.server_address[1])
    os.rename(in_folder("address.new"), in_folder("address"))
    server.serve_forever()


if __name__ == "__main__":
    main()
