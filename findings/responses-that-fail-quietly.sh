#!/usr/bin/env bash
# OpenAI's SDKs hand out an answer of the Responses API that failed or was cut as if it were whole.
#
# Expected: a stream that ends with an `error` event, with `response.failed`, or before any end, is an exception for whoever
#   reads it; the SDK for Python raises one for an `error` in a stream of Chat Completions.
# Happens: iterating `responses.create(stream=True)` ends quietly in all three cases, in Python and in Node, after half an
#   answer. The helpers that wait for the final response differ: Python's raises in all three; Node's rejects for `error`
#   with a plain object that is no Error, and resolves for the other two, with a response that is `failed`, or still
#   `in_progress`.
# Matters: a program that collects text takes half a sentence for the answer, and retries of the SDK never see the failure.
#   Whoever streams has to wait for `response.completed` or `response.incomplete`, and to treat everything else as an error.
set -euo pipefail

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv py
py/bin/pip -q --disable-pip-version-check install openai==3.57.0
npm install --silent --no-fund --no-audit --prefix . openai@6.49.0 >/dev/null

# A server of half an answer and three ends: POST /END/…, on loopback.
cat >server.py <<'PY'
import http.server
import json

RESPONSE = {"id": "r", "object": "response", "created_at": 1, "model": "m", "output": [], "parallel_tool_calls": True,
            "tool_choice": "auto", "tools": []}
ITEM = {"id": "i", "type": "message", "role": "assistant", "status": "in_progress", "content": []}
PART = {"type": "output_text", "text": "", "annotations": []}
AT = {"item_id": "i", "output_index": 0, "content_index": 0}
ERROR = {"code": "server_error", "message": "no", "param": None}


def event(kind, **fields):
    return "event: %s\ndata: %s\n\n" % (kind, json.dumps({"type": kind, "sequence_number": 0, **fields}))


BEGIN = (
    event("response.created", response={**RESPONSE, "status": "in_progress"})
    + event("response.output_item.added", output_index=0, item=ITEM)
    + event("response.content_part.added", part=PART, **AT)
    + event("response.output_text.delta", delta="Half an ans", logprobs=[], **AT)
)
ENDS = {
    "error": event("error", **ERROR),
    "failed": event("response.failed", response={**RESPONSE, "status": "failed", "error": ERROR}),
    "cut": "",
}


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        body = (BEGIN + ENDS[self.path.split("/")[1]]).encode()
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
PY

cat >client.py <<'PY'
import sys

from openai import OpenAI

for mode in ("error", "failed", "cut"):
    client = OpenAI(base_url=f"http://127.0.0.1:{sys.argv[1]}/{mode}/v1", api_key="x", max_retries=0, timeout=20)
    read = ""
    try:
        for event in client.responses.create(model="m", input="x", stream=True):
            read += event.delta if event.type == "response.output_text.delta" else ""
        read += " (no error)"
    except Exception as error:
        read = type(error).__name__
    print("python create", mode, read)
    try:
        with client.responses.stream(model="m", input="x") as events:
            final = events.get_final_response()
        read = f"{final.status} (no error)"
    except Exception as error:
        read = type(error).__name__
    print("python stream", mode, read)
PY

cat >client.mjs <<'JS'
import OpenAI from "openai";

for (const mode of ["error", "failed", "cut"]) {
  const client = new OpenAI({ baseURL: `http://127.0.0.1:${process.argv[2]}/${mode}/v1`, apiKey: "x", maxRetries: 0, timeout: 20000 });
  let read = "";
  try {
    for await (const event of await client.responses.create({ model: "m", input: "x", stream: true }))
      read += event.type === "response.output_text.delta" ? event.delta : "";
    read += " (no error)";
  } catch (error) {
    read = error.constructor.name;
  }
  console.log("node create", mode, read);
  try {
    read = `${(await client.responses.stream({ model: "m", input: "x" }).finalResponse()).status} (no error)`;
  } catch (error) {
    read = error.constructor.name;
  }
  console.log("node stream", mode, read);
}
JS

python3 server.py >port &
server=$!
trap 'kill "$server"; rm -rf "$dir"' EXIT
for _ in $(seq 100); do [ -s port ] && break; sleep 0.1; done

{
    timeout 120 py/bin/python client.py "$(cat port)"
    timeout 120 node client.mjs "$(cat port)"
} >seen
py/bin/pip -q --disable-pip-version-check freeze | grep '^openai=='
node -p '"openai@" + require("./node_modules/openai/package.json").version'
cat seen

cat >expected <<'TXT'
python create error Half an ans (no error)
python stream error RuntimeError
python create failed Half an ans (no error)
python stream failed RuntimeError
python create cut Half an ans (no error)
python stream cut RuntimeError
node create error Half an ans (no error)
node stream error Object
node create failed Half an ans (no error)
node stream failed failed (no error)
node create cut Half an ans (no error)
node stream cut in_progress (no error)
TXT
diff expected seen || { echo 'changed: read the difference above' >&2; exit 1; }
echo 'as described'
