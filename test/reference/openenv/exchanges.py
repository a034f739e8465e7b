"""Records exchanges with the stock OpenEnv server, which `test/public/openenv-exchanges.test.ts` replays against ours.

    python3 -m venv v10 && v10/bin/pip install openenv==0.10.0
    v10/bin/python test/reference/openenv/exchanges.py
    python3 -m venv v03 && v03/bin/pip install openenv-core==0.3.0
    v03/bin/python test/reference/openenv/exchanges.py

Each run writes exchanges-VERSION.jsonl beside this file. A stub environment declares our records; its argument
"raise" makes it raise. What is kept of a reply: status, types, keys, codes, locations of validation errors, order, and
the messages that are the server's own.
"""
import contextlib
import http.client
import importlib.metadata
import inspect
import json
import pathlib
import re
import socket
import threading
import time
from typing import Any, Literal, Optional

import uvicorn
from fastmcp import FastMCP
from openenv.core.env_server.http_server import create_fastapi_app
from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.mcp_environment import MCPEnvironment
from openenv.core.env_server.mcp_types import CallToolAction, CallToolObservation
from openenv.core.env_server.types import Action, Observation, State
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect


def installed() -> str:
    for name in ("openenv", "openenv-core"):
        try:
            return importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            pass
    raise SystemExit("openenv is not installed")


VERSION = installed()
IS_OLD = VERSION.startswith("0.3")


class SQLAction(Action):
    action_type: Literal["DESCRIBE", "SAMPLE", "QUERY", "ANSWER"]
    argument: str


class SQLObservation(Observation):
    question: str = ""
    schema_info: str = ""
    result: str = ""
    error: Optional[str] = None
    error_class: Optional[str] = None
    step_count: int = 0
    budget_remaining: int = 0
    action_history: list[str] = []
    reward_breakdown: dict[str, Any] = {}


class SQLState(State):
    question_id: Optional[str] = None
    step_budget: int = 15
    rules: str = ""
    correctness: Optional[float] = None
    progress: Optional[float] = None
    operational: Optional[float] = None
    done_reason: Optional[str] = None


class Stub(Environment):
    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self):
        super().__init__()
        self._state = SQLState()

    def reset(self, seed=None, episode_id=None, **kwargs):
        self._state = SQLState(episode_id=episode_id)
        return SQLObservation()

    def step(self, action, timeout_s=None, **kwargs):
        if action.argument == "raise":
            raise RuntimeError("raised")
        return SQLObservation(reward=0.0, done=action.action_type == "ANSWER")

    @property
    def state(self):
        return self._state

    def list_splits(self):
        return ["train", "validation"]

    def list_tasks(self, split):
        return [{}]

    def num_tasks(self, split):
        return 1

    def get_task(self, split, index):
        return [{}][index]

    def get_task_range(self, split, start=None, stop=None):
        return [{}][start:stop]


class ToolStub(MCPEnvironment):
    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self):
        server = FastMCP("stub")

        @server.tool
        def query(sql: str) -> str:
            """Run one SELECT statement."""
            if sql == "raise":
                raise RuntimeError("raised")
            return "1"

        super().__init__(server)
        self._state = SQLState()

    def reset(self, seed=None, episode_id=None, **kwargs):
        return SQLObservation()

    def _step_impl(self, action, timeout_s=None, **kwargs):
        return SQLObservation()

    @property
    def state(self):
        return self._state


def serve(env, action, observation) -> int:
    known = inspect.signature(create_fastapi_app).parameters
    more = {k: v for k, v in {"env_name": "sqlenv", "state_cls": SQLState}.items() if k in known}
    app = create_fastapi_app(env, action, observation, 64, **more)
    sock = socket.socket()
    sock.bind(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="critical"))
    threading.Thread(target=server.run, kwargs={"sockets": [sock]}, daemon=True).start()
    while not server.started:
        time.sleep(0.01)
    return sock.getsockname()[1]


def rpc(method: str, params: Any = None, id: Any = 1) -> str:
    return json.dumps({"jsonrpc": "2.0", "method": method, "id": id, **({} if params is None else {"params": params})})


def get(path):
    return {"via": "http", "method": "GET", "path": path, "body": None}


def post(path, body=None):
    return {"via": "http", "method": "POST", "path": path, "body": body}


def ws(send, on="ws", path="/ws"):
    return {"via": "ws", "on": on, "path": path, "send": send}


def mcp_ws(send):
    return {**ws(send, "mcp", "/mcp"), "via": "ws-mcp"}


def call(name, arguments, **more):
    return rpc("tools/call", {"name": name, "arguments": arguments, **more})


QUERY = '{"action": {"action_type": "QUERY", "argument": "x"%s}%s}'
ATTACH = "/ws?session_id={session}"

PLAIN = [
    *(get(path) for path in ["/health", "/metadata", "/schema", "/state", "/nope", "/reset", "/", "/web"]),
    *(
        post("/reset", body)
        for body in [
            None,
            "{}",
            '{"seed": 7, "episode_id": "e1", "foo": 1}',
            '{"seed": -1}',
            '{"seed": 1.5}',
            '{"seed": "x"}',
            '{"episode_id": 5}',
            '{"episode_id": "%s"}' % ("e" * 256),
            "[1]",
            "nope",
            '{"seed": null}',
        ]
    ),
    *(
        post("/step", body)
        for body in [
            QUERY % ("", ""),
            '{"action_type": "QUERY", "argument": "x"}',
            '{"action": {"action_type": "DROP", "argument": "x"}}',
            QUERY % (', "zzz": 1', ""),
            '{"action": {"action_type": "QUERY", "argument": "raise"}}',
            QUERY % ("", ', "timeout_s": 0'),
            None,
            "[1]",
            '{"action": 7}',
            QUERY % (', "metadata": {"a": 1}', ""),
        ]
    ),
    *(
        post("/mcp", body)
        for body in [
            "{}",
            rpc("nope"),
            '{"jsonrpc": "1.0", "method": "tools/list", "id": 3}',
            "[1]",
            "{bad",
            rpc("tools/list", [1]),
            '{"jsonrpc": "2.0", "method": "nope", "params": null, "id": 4}',
            '{"jsonrpc": "2.0", "method": "nope", "id": 1.5}',
            rpc("openenv/session/close"),
            rpc("openenv/session/close", {"session_id": "zzz"}),
        ]
    ),
    *(
        ws(send)
        for send in [
            '{"type": "state"}',
            '{"type": "reset"}',
            '{"type": "reset", "data": {}}',
            '{"type": "reset", "data": {"seed": 7, "episode_id": "e1", "foo": 1}}',
            '{"type": "reset", "data": {"seed": -1}}',
            '{"type": "reset", "data": {"seed": "x"}}',
            '{"type": "reset", "data": []}',
            '{"type": "reset", "extra": 1}',
            '{"type": "step", "data": {"action_type": "QUERY", "argument": "x"}}',
            '{"type": "step", "data": {"action": {"action_type": "QUERY", "argument": "x"}}}',
            '{"type": "step"}',
            '{"type": "step", "data": {"action_type": "DROP", "argument": "x"}}',
            '{"type": "step", "data": {"action_type": "QUERY", "argument": "raise"}}',
            '{"type": "step", "data": {"action_type": "ANSWER", "argument": "5"}}',
            '{"type": "step", "data": {"action_type": "QUERY", "argument": "after done"}}',
            '{"type": "state", "data": {}}',
            "not json",
            '{"type": "bogus"}',
            '{"type": 7}',
            "{}",
            '{"type": "mcp", "data": {}}',
            '{"type": "close"}',
            "[1,2]",
        ]
    ),
    {"via": "ws", "on": "ws", "path": "/ws", "binary": '{"type":"state"}'},
]

ATTACHING = [
    post("/mcp", rpc("openenv/session/create")),
    ws(None, "none", "/ws?session_id=zzz"),  # no such session
    ws('{"type": "reset", "data": {"episode_id": "shared"}}', "a", ATTACH),
    ws(None, "b", ATTACH),  # it already has a socket
    ws('{"type": "state"}', "a", ATTACH),
    post("/mcp", rpc("openenv/session/close", {"session_id": "{session}"})),
    ws('{"type": "state"}', "a", ATTACH),  # it still works
    {"via": "leave", "on": "a"},
    post("/mcp", rpc("openenv/session/close", {"session_id": "{session}"})),
    post("/mcp", rpc("openenv/session/create")),
    ws('{"type": "close"}', "c", ATTACH),
    ws('{"type": "state"}', "d", ATTACH),  # the session outlives the socket
    ws('{"type": "mcp", "data": %s}' % rpc("openenv/session/close", {"session_id": "{session}"}), "d", ATTACH),
    {"via": "leave", "on": "d"},
    post("/mcp", rpc("openenv/session/close", {"session_id": "{session}"})),
    ws(None, "e", ATTACH),
]

TASKS = [
    get("/list_environments"),
    get("/sqlenv/splits"),
    get("/SQLEnv/splits"),
    get("/nope/splits"),
    *(
        post(path, body)
        for path, body in [
            ("/sqlenv/tasks", '{"split": "train"}'),
            ("/SQLENV/num_tasks", '{"split": "train"}'),
            ("/nope/tasks", '{"split": "train"}'),
            ("/sqlenv/tasks", "{}"),
            ("/sqlenv/tasks", None),
            ("/sqlenv/tasks", "nope"),
            ("/sqlenv/tasks", '{"split": "train", "more": 1}'),
            ("/sqlenv/tasks", '{"split": 7}'),
            ("/sqlenv/task", '{"split": "train"}'),
            ("/sqlenv/task", '{"split": "train", "index": 0}'),
            ("/sqlenv/task", '{"split": "train", "index": "x"}'),
            ("/sqlenv/task", '{"split": "train", "index": 999999}'),
            ("/sqlenv/task_range", '{"split": "train", "start": 0, "stop": 1}'),
            ("/sqlenv/task_range", '{"split": "train", "start": null}'),
        ]
    ),
    get("/sqlenv/tasks"),
]

TOOLS = [
    *(
        post("/mcp", body)
        for body in [
            rpc("tools/list"),
            call("query", {"sql": "SELECT 1"}),
            call("nope", {}),
            call("query", {"sql": "raise"}),
            rpc("tools/call", {}),
            rpc("openenv/session/create", {}),
            call("query", {"sql": "SELECT 1"}, session_id="{session}"),
            rpc("openenv/session/close", {"session_id": "{session}"}),
            rpc("openenv/session/close", {"session_id": "{session}"}),
            call("query", {"sql": "SELECT 1"}, session_id="zz"),
            rpc("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}}),
            rpc("ping"),
            '{"jsonrpc": "2.0", "method": "notifications/initialized"}',
        ]
    ),
    *(
        ws(send)
        for send in [
            '{"type": "reset"}',
            '{"type": "step", "data": {"type": "list_tools"}}',
            '{"type": "step", "data": {"type": "call_tool", "tool_name": "query", "arguments": {"sql": "SELECT 1"}}}',
            '{"type": "step", "data": {"type": "call_tool", "tool_name": "nope", "arguments": {}}}',
            '{"type": "step", "data": {"type": "call_tool", "tool_name": "query", "arguments": {"sql": "raise"}}}',
            '{"type": "step", "data": {"type": "call_tool", "tool_name": "query", "arguments": {}}}',
            '{"type": "mcp", "data": %s}' % rpc("tools/list"),
            '{"type": "mcp", "data": %s}' % call("query", {"sql": "SELECT 1"}),
            '{"type": "state"}',
        ]
    ),
    *(mcp_ws(send) for send in [rpc("tools/list"), call("query", {"sql": "SELECT 1"}), "{bad", "{}", "[1]"]),
]

GROUPS = {"plain": PLAIN, "tools": TOOLS, **({} if IS_OLD else {"attach": ATTACHING, "tasks": TASKS})}

# Messages that are the server's own; others quote the environment or a parser.
OWN = re.compile(
    r"(Unknown session_id|Session |Unknown message type|Invalid params|Cannot close|unknown environment|Parse error$)"
)


def problems(errors):
    return sorted([[error["type"], list(error["loc"])] for error in errors], key=json.dumps)


def shape(reply, session):
    """What is kept of a reply."""
    kept: dict[str, Any] = {}
    if isinstance(reply, list):
        return {"list": True}
    kept["keys"] = sorted(reply)
    data = reply
    if "type" in reply and "data" in reply:
        kept["type"] = reply["type"]
        data = reply["data"]
        kept["data"] = sorted(data)
    if "jsonrpc" in data:
        kept["rpc"] = data["error"]["code"] if "error" in data else "result"
        if isinstance(data.get("result"), dict) and "session_id" in data["result"]:
            kept["result"] = {k: v for k, v in data["result"].items() if k != "session_id"}
        data = data.get("error", data)
    if isinstance(data.get("code"), str):
        kept["code"] = data["code"]
    for key in ("message", "detail"):
        if isinstance(data.get(key), str) and OWN.match(data[key]):
            kept["said"] = data[key].replace(session, "{session}") if session else data[key]
    errors = data.get("errors", data.get("detail"))
    if isinstance(errors, list):
        kept["problems"] = problems(errors)
    if "done" in data and isinstance(data.get("observation"), dict):
        kept["observation"] = sorted(data["observation"])
        if "tool_name" in data["observation"]:
            kept["tool_error"] = (data["observation"]["error"] or {}).get("error_type")
    return kept


def play(port, exchanges, stack):
    session = None
    sockets: dict[str, Any] = {}
    for exchange in exchanges:
        fill = lambda text: text.replace("{session}", session or "")
        via = exchange["via"]
        if via == "leave":
            sockets.pop(exchange["on"]).close()
            time.sleep(0.2)
            yield exchange
            continue
        if via == "http":
            connection = http.client.HTTPConnection("127.0.0.1", port)
            body = exchange["body"]
            headers = {} if body is None else {"content-type": "application/json"}
            connection.request(exchange["method"], exchange["path"], body and fill(body), headers)
            response = connection.getresponse()
            text = response.read()
            content = (response.getheader("content-type") or "").split(";")[0]
            expect = {"status": response.status, "content": content}
            if content == "application/json":
                reply = json.loads(text)
                if isinstance(reply, dict):
                    session = ((reply.get("result") or {}).get("session_id") or session) if "jsonrpc" in reply else session
                expect.update(shape(reply, session))
            yield {**exchange, "expect": expect}
            continue
        name = exchange["on"]
        if name not in sockets:
            sockets[name] = stack.enter_context(connect(f"ws://127.0.0.1:{port}{fill(exchange['path'])}"))
        one = sockets[name]
        if exchange.get("send") is not None:
            one.send(fill(exchange["send"]))
        elif "binary" in exchange:
            one.send(exchange["binary"].encode())
        expect = {}
        try:
            expect = shape(json.loads(one.recv(timeout=5)), session)
            code = expect.get("code")
            closes = code == "SESSION_ERROR" or (via == "ws-mcp" and expect.get("rpc") == -32000)
            if closes:
                one.recv(timeout=5)
        except ConnectionClosed as closed:
            expect["close"] = closed.rcvd.code if closed.rcvd else None
            sockets.pop(name)
        yield {**exchange, "expect": expect}


ports = {"plain": serve(Stub, SQLAction, SQLObservation), "tools": serve(ToolStub, CallToolAction, CallToolObservation)}
lines = []
for group, exchanges in GROUPS.items():
    port = ports["tools" if group == "tools" else "plain"]
    with contextlib.ExitStack() as stack:
        lines += [json.dumps({"group": group, **done}) for done in play(port, exchanges, stack)]
file = pathlib.Path(__file__).with_name(f"exchanges-{VERSION}.jsonl")
file.write_text("\n".join(lines) + "\n")
print(f"{file.name}: {len(lines)} exchanges")
