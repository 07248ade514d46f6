#!/usr/bin/env bash
# Valid event streams that official Python SDKs lose or refuse, and that the Node SDKs of the same vendors read.
#
# Expected: the format of server-sent events (WHATWG HTML, "Interpreting an event stream") allows a byte order mark at the
#   beginning, and says that a block without `data` (a comment, `retry:`, `event:` alone) makes no event. Every client
#   reads such a stream like the plain one.
# Happens: with a byte order mark, openai for Python drops the first event without an error, so the answer lacks its first
#   words, and anthropic for Python stops at an assertion without a text. A comment after any event that has an `id`, and a
#   block that has only `retry` or `event`, end the stream of openai for Python with a JSONDecodeError. openai for Node
#   fails only for a block with `event` alone; @anthropic-ai/sdk for Node reads all of them.
# Matters: proxies send comments to keep connections open, and some servers number their events. A server that is tested
#   with one SDK of a vendor is not tested for its other one. A client has to implement the format, not the SDK.
set -euo pipefail

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv py
py/bin/pip -q --disable-pip-version-check install openai==3.57.0 anthropic==2.14.0
npm install --silent --no-fund --no-audit --prefix . openai@6.49.0 @anthropic-ai/sdk@1.14.0 >/dev/null

# A server of the streams: POST /MODE/…, for both APIs, on loopback.
cat >server.py <<'PY'
import http.server
import json


def chat(delta, reason=None):
    return "data: " + json.dumps({
        "id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m",
        "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})


def message(kind, **fields):
    return "event: %s\ndata: %s" % (kind, json.dumps({"type": kind, **fields}))


START = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": [], "stop_reason": None,
         "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1}}
BLOCKS = {
    "chat": [chat({"role": "assistant", "content": "Hel"}), chat({"content": "lo"}), chat({}, "stop"), "data: [DONE]"],
    "messages": [
        message("message_start", message=START),
        message("content_block_start", index=0, content_block={"type": "text", "text": ""}),
        message("content_block_delta", index=0, delta={"type": "text_delta", "text": "Hello"}),
        message("content_block_stop", index=0),
        message("message_delta", delta={"stop_reason": "end_turn", "stop_sequence": None}, usage={"output_tokens": 2}),
        message("message_stop"),
    ],
}


def stream(api, mode):
    first, *rest = BLOCKS[api]
    blocks = {
        "plain": [first, *rest],
        "mark": ["\ufeff" + first, *rest],
        "comment": [first, ": alive", *rest],
        "numbered-comment": ["id: 1\n" + first, ": alive", *rest],
        "retry-alone": ["retry: 3000", first, *rest],
        "event-alone": [first, "event: ping", *rest],
    }[mode]
    return "".join(block + "\n\n" for block in blocks).encode()


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        _, mode, *rest = self.path.split("/")
        body = stream("messages" if rest[-1] == "messages" else "chat", mode)
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

from anthropic import Anthropic
from openai import OpenAI

port, modes = sys.argv[1], sys.argv[2:]
ask = [{"role": "user", "content": "x"}]
for mode in modes:
    at = {"api_key": "x", "max_retries": 0, "timeout": 20}
    try:
        client = OpenAI(base_url=f"http://127.0.0.1:{port}/{mode}/v1", **at)
        chunks = client.chat.completions.create(model="m", messages=ask, stream=True)
        read = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
    except Exception as error:
        read = type(error).__name__
    print("python openai", mode, read)
    try:
        client = Anthropic(base_url=f"http://127.0.0.1:{port}/{mode}", **at)
        with client.messages.stream(model="m", max_tokens=9, messages=ask) as events:
            read = events.get_final_text()
    except Exception as error:
        read = type(error).__name__
    print("python anthropic", mode, read)
PY

cat >client.mjs <<'JS'
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";

console.error = () => {};
const [port, ...modes] = process.argv.slice(2);
const messages = [{ role: "user", content: "x" }];
for (const mode of modes) {
  const at = { apiKey: "x", maxRetries: 0, timeout: 20000 };
  let read = "";
  try {
    const client = new OpenAI({ baseURL: `http://127.0.0.1:${port}/${mode}/v1`, ...at });
    const chunks = await client.chat.completions.create({ model: "m", messages, stream: true });
    for await (const chunk of chunks) read += chunk.choices[0].delta.content ?? "";
  } catch (error) {
    read = error.constructor.name;
  }
  console.log("node openai", mode, read);
  try {
    const client = new Anthropic({ baseURL: `http://127.0.0.1:${port}/${mode}`, ...at });
    read = await client.messages.stream({ model: "m", max_tokens: 9, messages }).finalText();
  } catch (error) {
    read = error.constructor.name;
  }
  console.log("node anthropic", mode, read);
}
JS

python3 server.py >port &
server=$!
trap 'kill "$server"; rm -rf "$dir"' EXIT
for _ in $(seq 100); do [ -s port ] && break; sleep 0.1; done

modes='plain comment mark numbered-comment retry-alone event-alone'
# shellcheck disable=SC2086 # one word each
{
    timeout 120 py/bin/python client.py "$(cat port)" $modes
    timeout 120 node client.mjs "$(cat port)" $modes
} >seen
py/bin/pip -q --disable-pip-version-check freeze | grep -E '^(openai|anthropic)=='
node -p '["openai", "@anthropic-ai/sdk"].map(n => n + "@" + require("./node_modules/" + n + "/package.json").version).join(" ")'
cat seen

cat >expected <<'TXT'
python openai plain Hello
python anthropic plain Hello
python openai comment Hello
python anthropic comment Hello
python openai mark lo
python anthropic mark AssertionError
python openai numbered-comment JSONDecodeError
python anthropic numbered-comment Hello
python openai retry-alone JSONDecodeError
python anthropic retry-alone Hello
python openai event-alone JSONDecodeError
python anthropic event-alone Hello
node openai plain Hello
node anthropic plain Hello
node openai comment Hello
node anthropic comment Hello
node openai mark Hello
node anthropic mark Hello
node openai numbered-comment Hello
node anthropic numbered-comment Hello
node openai retry-alone Hello
node anthropic retry-alone Hello
node openai event-alone SyntaxError
node anthropic event-alone Hello
TXT
diff expected seen || { echo 'changed: read the difference above' >&2; exit 1; }
echo 'as described'
