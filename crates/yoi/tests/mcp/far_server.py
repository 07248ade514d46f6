"""A server of the Model Context Protocol over HTTP, on a port of this machine that its first line names. Its words choose an
era and what it does wrong; `requests` in its directory has what it was asked."""
import json, os, sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

words = sys.argv[1:]
era = words[0]
os.chdir(os.path.dirname(os.path.abspath(__file__)))
NOTED = ["authorization", "x-key", "mcp-session-id", "mcp-protocol-version", "mcp-method", "mcp-name", "mcp-param-region"]
TOOLS = ["echo", "stream", "größe", "cut", "busy", "large", "flood", "unsaid", "forgets", "refused", "wrong", "lost"]
sessions = {"newest": 0, "forgot": False}


class Server(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def give(self, status, body=b"", kind="application/json", **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        if body:
            self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def result(self, of, value, **headers):
        if era == "modern":
            value = dict(value, resultType="complete")
        message = {"jsonrpc": "2.0", "id": of["id"], "result": value}
        self.give(200, json.dumps(message).encode(), **headers)

    def error(self, status, of, code, text):
        message = {"jsonrpc": "2.0", "id": of.get("id"), "error": {"code": code, "message": text}}
        self.give(status, json.dumps(message).encode())

    def events(self, messages):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        for message in messages:
            text = message if isinstance(message, str) else json.dumps(dict(message, jsonrpc="2.0"))
            self.wfile.write(f"event: message\ndata: {text}\n\n".encode())
            self.wfile.flush()
        self.close_connection = True

    def note(self, of):
        noted = {name: self.headers[name] for name in NOTED if self.headers[name]}
        line = {"http": self.command, "method": of.get("method"), "id": of.get("id"), "headers": noted}
        with open("requests", "a") as file:
            file.write(json.dumps(dict(line, of=of)) + "\n")

    def do_DELETE(self):
        self.note({})
        self.give(405)

    def do_POST(self):
        of = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.note(of)
        method = of.get("method")
        if "locked" in words and self.headers["authorization"] != "Bearer " + os.environ["KEY"]:
            return self.give(401, b"who is there?")
        if "moved" in words:
            return self.give(307, Location="/elsewhere")
        if "id" in of and method is None or method == "notifications/initialized":
            return self.give(202)
        if era == "modern":
            return self.modern(of, method)
        if method == "initialize":
            sessions["newest"] += 1
            value = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "x", "version": "1.0.0"}}
            return self.result(of, value, Mcp_Session_Id=f"s{sessions['newest']}")
        if self.headers["mcp-session-id"] is None:
            return self.error(400, of, -32000, "no session")
        if self.headers["mcp-session-id"] != f"s{sessions['newest']}" or self.headers["mcp-protocol-version"] != "2025-06-18":
            return self.give(404)
        self.ask(of, method)

    def modern(self, of, method):
        params = of.get("params", {})
        name = params.get("name", params.get("uri"))
        want = name if name is None or name.isascii() else "=?base64?Z3LDtsOfZQ==?="
        if self.headers["mcp-method"] != method or self.headers["mcp-name"] != want:
            return self.error(400, of, -32020, "the headers are not those of the request")
        if "picky" in words and not sessions["forgot"]:
            sessions["forgot"] = True
            error = {"code": -32022, "message": "another version", "data": {"supported": ["2026-07-28"]}}
            return self.give(400, json.dumps({"jsonrpc": "2.0", "id": of["id"], "error": error}).encode())
        if method == "server/discover":
            capable = {"tools": {}, "resources": {}} if "resources" in words else {"tools": {}}
            return self.result(of, {"supportedVersions": ["2026-07-28"], "capabilities": capable})
        self.ask(of, method)

    def ask(self, of, method):
        if method == "tools/list":
            tools = [{"name": name, "inputSchema": {"type": "object"}} for name in TOOLS]
            field = lambda kind: {"type": "object", "properties": {"region": {"type": kind, "x-mcp-header": "Region"}}}
            tools[0]["inputSchema"] = field("string")
            return self.result(of, {"tools": tools + [{"name": "ill", "inputSchema": field("array")}]})
        if method == "resources/read":
            # It read the request on a kept connection, and closed that.
            self.close_connection = True
            return
        name = of["params"]["name"]
        text = lambda words: {"content": [{"type": "text", "text": words}], "resultType": "complete"}
        answer = {"id": of["id"], "result": text("streamed")}
        if name == "stream":
            asked = [{"id": "p", "method": "ping"}, {"method": "notifications/message", "params": {}}]
            other = [{"id": 99, "result": {}}, "no message", {"method": "notifications/tools/list_changed"}]
            self.events(asked + other + [answer])
        elif name == "cut":
            self.events([{"method": "notifications/message"}])
        elif name == "flood":
            self.events(['{"method":"x"}'] * 10_001 + [answer])
        elif name == "busy":
            self.give(503, b"come back later")
        elif name == "large":
            self.give(200, b"{" + b" " * (16 << 20) + b"}")
        elif name == "lost":
            self.close_connection = True
        elif name == "unsaid":
            self.give(202)
        elif name == "wrong":
            self.error(400, of, -32602, "no such words")
        elif name == "refused":
            self.give(403, b"not for you")
        elif name == "forgets" and era == "legacy" and not sessions["forgot"]:
            sessions.update(newest=sessions["newest"] + 1, forgot=True)
            self.give(404)
        else:
            self.result(of, text(f"said {name}"))


server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
print(server.server_address[1], flush=True)
server.serve_forever()
