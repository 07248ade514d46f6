"""A server of the Model Context Protocol that does what real ones do wrong. Its words choose an era and definitions;
`starts` and `calls` in its directory say how often it was started and what it was asked."""
import json, os, sys

words = sys.argv[1:]
started_in = os.listdir(".")
os.chdir(os.path.dirname(os.path.abspath(__file__)))
era = words[0]
me = os.getpid()


def note(name, text):
    """Where it may write: a server outside of the project may not."""
    if os.access(".", os.W_OK):
        with open(name, "a") as file:
            file.write(text + "\n")


def say(message):
    os.write(1, json.dumps(dict(message, jsonrpc="2.0")).encode() + b"\n")


def result(of, value, **more):
    if era == "modern":
        value = dict(value, resultType="complete", _meta={"io.modelcontextprotocol/serverInfo": INFO})
    say({"id": of["id"], "result": dict(value, **more)})


def error(of, code, message):
    say({"id": of["id"], "error": {"code": code, "message": message}})


CAPABLE = {what: {} for what in ["tools", "resources", "prompts"] if what == "tools" or what in words}
INFO = {"name": "fake", "version": "1.2.3"}
PLAIN = {"type": "object", "properties": {"text": {}}}
TOOLS = [
    {"name": "echo", "description": "Say it again.", "inputSchema": PLAIN, "annotations": {"readOnlyHint": True}},
    {"name": "any", "inputSchema": True},
    {"name": "untyped", "inputSchema": {"properties": {"x": True}, "anyOf": [{"required": ["x"]}]}},
    {"name": "broken", "inputSchema": {"type": "object", "properties": {"x": {"$ref": "#/nowhere"}}}},
    {"name": "show log/größe", "inputSchema": PLAIN},
    {"name": "a b", "inputSchema": PLAIN},
    {"name": "a_b", "inputSchema": PLAIN},
    {"name": "tasks", "inputSchema": PLAIN, "execution": {"taskSupport": "required"}},
    {"name": "data", "inputSchema": PLAIN, "outputSchema": {"type": "object", "properties": {"n": {"type": "string"}}}},
    {"name": "plain", "inputSchema": PLAIN},
    {"name": "blocks", "inputSchema": PLAIN},
    {"name": "nothing", "inputSchema": PLAIN},
    {"name": "fails", "inputSchema": PLAIN},
    {"name": "dies", "inputSchema": PLAIN},
    {"name": "asks", "inputSchema": PLAIN},
    {"description": "without a name"},
    "no tool",
]
if "meet" in words:
    TOOLS.append({"name": "meet", "inputSchema": PLAIN, "annotations": {"readOnlyHint": True}})
if "changed" in words:
    TOOLS[0]["description"] = "Say it twice."
    TOOLS = [tool for tool in TOOLS if tool != TOOLS[1]]
if "leaks" in words:
    key = os.environ["KEY"]
    where = {"description": key, "properties": {"as " + key: {"enum": [key]}}}
    TOOLS[0].update(title=key, description=f"The key is {key}.", inputSchema=dict(where, type="object"), outputSchema=where)
    INFO["version"] = TOOLS[9]["name"] = key
PROMPTS = [
    {"name": "re view", "description": "Review a file.", "arguments": [{"name": "path", "required": True}, {"name": "why"}]},
    {"name": "asks"},
    {"name": "long"},
    {"description": "without a name"},
]
if "fails" in words:
    sys.exit("no access with " + os.environ["KEY"])


# Requests that came while an answer was waited for.
early = []


def heard(is_wanted):
    """The next message of this kind; others come later."""
    while True:
        of = json.loads(sys.stdin.readline())
        if is_wanted(of):
            return of
        early.append(of)


def answered():
    return heard(lambda of: "method" not in of)


def listed(of):
    """Two pages; the second one leads back to the first."""
    if "pages" in words:
        at = str(of["id"])
        return result(of, {"tools": [{"name": "page " + at}], "nextCursor": at})
    if "many" in words:
        return result(of, {"tools": [{"name": f"t{number}"} for number in range(513)]})
    if "odd" in words:
        return result(of, {"tools": [{} for _ in range(40)], "nextCursor": "x" * 5000})
    if "endless" in words:
        return result(of, {"tools": [], "nextCursor": str(of["id"]), "more": "x" * (1 << 20)})
    first = not of["params"].get("cursor")
    page, cursor = (TOOLS[:5], "more") if first else (TOOLS[5:], "more")
    result(of, {"tools": page, "nextCursor": cursor})


def asked(of, text):
    """A question to a person, in the form of each era."""
    sure = {"type": "object", "properties": {"sure": {"type": "boolean"}}, "required": ["sure"]}
    question = {"mode": "form", "message": "Delete 3 files?", "requestedSchema": sure}
    if era == "modern":
        params = of["params"]
        if "inputResponses" not in params:
            requests = {"q": {"method": "elicitation/create", "params": question}}
            return result(of, {}, resultType="input_required", inputRequests=requests, requestState="s1")
        note("answers", json.dumps([params["inputResponses"], params["requestState"]]))
        return result(of, text("deleted"))
    say({"id": "e", "method": "elicitation/create", "params": question})
    answer = answered()["result"]
    note("answers", json.dumps(answer))
    if answer["action"] == "accept":
        return result(of, text("deleted"))
    # Some fail without an answer, some go on.
    result(of, text("nobody agreed"), isError=of["params"]["arguments"].get("of", 3) == 3)


def prompted(of):
    name, arguments = of["params"]["name"], of["params"].get("arguments", {})
    note("prompted", json.dumps([name, arguments]))
    say_it = lambda text: {"messages": [{"role": "user", "content": {"type": "text", "text": text}}]}
    if name == "asks" and era == "modern":
        return result(of, {}, resultType="input_required", inputRequests={}, requestState="s1")
    result(of, say_it("x" * 70_000 if name == "long" else f"Review {arguments['path']}."))


def called(of):
    name, arguments = of["params"]["name"], of["params"]["arguments"]
    note("calls", f"{me} {name} {json.dumps(arguments)}")
    text = lambda words: {"content": [{"type": "text", "text": words}]}
    if "long" in words:
        sys.stdout.write("x" * (16 << 20) + "x\n")
        sys.stdout.flush()
    if "chatty" in words:
        sys.stdout.write('{"method":"x"}\n' * 10_001)
        sys.stdout.flush()
    # What a client has to live with, before the answer.
    print("Server is busy", flush=True)
    say({"id": 987654, "result": {"content": []}})
    say({"id": "p", "method": "ping"})
    say({"id": "r", "method": "roots/list"})
    say({"method": "notifications/message", "params": {"data": "x"}})
    answers = [answered() for _ in range(2)]
    if [answers[0].get("result"), answers[1].get("error", {}).get("code")] != [{}, -32601]:
        return error(of, 1, f"wrong answers {answers}")
    if name == "data":
        result(of, {"content": [], "structuredContent": {"n": 2**70 + 1}})
    elif name == "plain":
        result(of, {"structuredContent": {"n": 1}})
    elif name == "blocks":
        result(of, {"content": [
            {"type": "image", "mimeType": "image/png", "data": "AAAA"},
            {"type": "resource_link", "uri": "a:b", "name": "b"},
            {"type": "resource", "resource": {"uri": "c:d", "text": "inside"}},
            {"type": "later"},
            {"type": "text", "text": "last"},
        ]})
    elif name == "meet":
        # It answers none before all three are there.
        others = [early.pop(0) if early else heard(lambda other: other.get("method") == "tools/call") for _ in range(2)]
        for other in reversed([of] + others):
            result(other, text(other["params"]["arguments"]["text"]))
    elif name == "nothing":
        result(of, {"content": []})
        while "floods" in words:
            os.write(1, b'{"method":"x"}\n' * 1000)
    elif name == "fails":
        result(of, text("no such page"), isError=True)
    elif name == "asks":
        asked(of, text)
    elif name == "dies":
        os._exit(3)
    elif name in [tool.get("name") for tool in TOOLS if isinstance(tool, dict)]:
        result(of, text(json.dumps(arguments.get("text"))))
    else:
        error(of, -32602, "unknown tool")


assert started_in == [], started_in
note("starts", f"{me} {' '.join(words)}")
print("Listening", flush=True)
while True:
    line = "" if early else sys.stdin.readline()
    if not (line or early):
        break
    of = early.pop(0) if early else json.loads(line)
    method = of["method"]
    if "fussy" in words and method == "server/discover":
        sys.exit(1)
    elif method == "server/discover" and era == "modern":
        result(of, {"supportedVersions": ["2026-07-28"], "capabilities": CAPABLE})
    elif method == "initialize" and era == "legacy":
        result(of, {"protocolVersion": "2025-06-18", "capabilities": CAPABLE, "serverInfo": INFO})
    elif method == "notifications/initialized":
        for _ in range(3):
            say({"method": "notifications/tools/list_changed"})
    elif era == "modern" and "io.modelcontextprotocol/protocolVersion" not in of["params"].get("_meta", {}):
        error(of, -32602, "no version")
    elif method == "tools/list":
        listed(of)
    elif method == "tools/call":
        called(of)
    elif method == "prompts/list":
        result(of, {"prompts": PROMPTS, "nextCursor": None})
    elif method == "prompts/get":
        prompted(of)
    elif method == "resources/list":
        on = of["params"].get("cursor")
        pages = {None: ("a:1", "two"), "two": ("a:2", None)}
        uri, cursor = pages[on]
        result(of, {"resources": [{"uri": uri, "name": "One\nline"}], "nextCursor": cursor})
    elif method == "resources/read" and of["params"]["uri"] == "a:1":
        blob = {"uri": "a:1/b", "mimeType": "image/png", "blob": "AAAA"}
        result(of, {"contents": [{"uri": "a:1", "text": "inside"}, blob]})
    else:
        error(of, -32601, "Method not found")
