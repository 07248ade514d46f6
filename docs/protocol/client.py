"""python3 client.py DIR TEXT: prints a pod's transcript, sends TEXT, and ends with the turn that took it."""
import json, os, socket, sys, time, uuid
class Pod:
    def __init__(self, directory, text):
        self.directory, self.command = directory, {"text": text, "cmd_id": str(uuid.uuid4())}
        self.asked, self.cursor, self.input, self.taken, self.outcome = 0, None, None, False, None

    def connect(self):
        directory = os.open(self.directory, os.O_RDONLY)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.connect(f"/proc/self/fd/{directory}/sock")  # short, whatever the directory is called
        os.close(directory)
        self.lines = self.socket.makefile("rb")
        self.ask("hello", versions=[1], client="client.py", role="driver")
        after = {} if self.cursor is None else {"after": self.cursor}
        attached = self.ask("attach", without=["delta", "status", "draft"], **after)
        for record in attached.get("page", {"records": []})["records"]:
            self.show(record)
        self.ask("input", **self.command)  # a second time, after a lost connection, it changes nothing

    def ask(self, method, **params):
        self.asked += 1
        line = json.dumps({"jsonrpc": "2.0", "id": self.asked, "method": method, "params": params})
        self.socket.sendall(line.encode() + b"\n")
        while (message := self.hear()).get("id") != self.asked:
            pass
        return message["result"]

    def hear(self):
        if not (line := self.lines.readline()).endswith(b"\n"):
            raise ConnectionError("it was lost")
        message = json.loads(line)
        if "error" in message or message.get("method") == "ended":
            sys.exit(line.decode())
        if message.get("method") == "record":
            self.show(message["params"])
        return message

    def show(self, record):
        self.cursor, kind = record["q"], record["k"]
        if kind == "input_queued":
            print(">", record["text"])
            self.input = record["input"] if record.get("key") == self.command["cmd_id"] else self.input
        elif kind == "item":
            print(record["item"].get("text") or record["item"].get("name"))
        elif kind == "input_consumed" and record["input"] == self.input:
            self.taken = True
        elif kind == "turn_finished" and self.taken:
            self.outcome = record["outcome"]["outcome"]
pod = Pod(*sys.argv[1:]) if len(sys.argv) == 3 else sys.exit(__doc__)
for pause in [0, 1, 2, 4]:
    time.sleep(pause)
    try:
        pod.connect()
        while not pod.outcome:
            pod.hear()
        sys.exit(0 if pod.outcome == "done" else f"the turn ended: {pod.outcome}")
    except OSError as error:
        lost = error
sys.exit(f"no connection: {lost}")
