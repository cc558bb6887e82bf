#!/usr/bin/env python3
"""A model that plays a script, on a free port of 127.0.0.1: it calls tools and says what it got.

It speaks OpenAI Responses and Chat Completions, Anthropic Messages and Gemini. The play is a list of steps; which one is
next follows from the number of tool results in the request, so the model itself keeps no state.

  {"tool": "@run", "args": {..}}       calls a tool of outlast; a plain text is a regular expression on the tool's name.
                                       {dir} in a text is the work folder.
     "take": ["<regex>", "<name>"]     one argument is cut out of the last result
     "gate": "<name>"                  first waits until somebody writes into this FIFO of the work folder
  {"text": ".."}                       the final answer
"expect" and "expect_user" are read by check.py.

The first line of standard output is the address. The end of standard input ends the model.
"""
import json
import os
import re
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PLAY, DIR = json.load(open(sys.argv[1])), sys.argv[2]
LOCK, GATES = threading.Lock(), {}


def note(record):
    """One line of requests.jsonl."""
    with LOCK, open(os.path.join(DIR, "requests.jsonl"), "a") as file:
        file.write(json.dumps(record) + "\n")


def flat(content):
    """The text of content of any shape."""
    if content is None or isinstance(content, str):
        return content or ""
    if isinstance(content, list):
        return "\n".join(flat(part) for part in content)
    for key in ("text", "output", "content", "response", "result"):
        if isinstance(content, dict) and key in content:
            return flat(content[key])
    return json.dumps(content)


def users(messages):
    """The texts of the user, without tool results."""
    texts = []
    for message in messages:
        if isinstance(message, dict) and message.get("role") == "user":
            content = message.get("content", message.get("parts")) or []
            parts = [content] if isinstance(content, str) else [p.get("text") for p in content if isinstance(p, dict)]
            texts += [text for text in parts if isinstance(text, str)]
    return texts


def names(tools, space=None):
    """(name, namespace) of every tool offered."""
    found = []
    for tool in (tool for tool in tools or [] if isinstance(tool, dict)):
        if tool.get("type") == "namespace" or ("tools" in tool and "name" in tool):
            found += names(tool.get("tools"), tool.get("name"))
        elif declared := tool.get("functionDeclarations") or tool.get("function_declarations"):
            found += [(one["name"], None) for one in declared]
        elif name := tool.get("name") or (tool.get("function") or {}).get("name"):
            found.append((name, space))
    return found


def pass_gate(name):
    """Waits until somebody opens the FIFO for writing; once for each name."""
    with LOCK:
        gate = GATES.setdefault(name, threading.Lock())
    with gate:
        path = os.path.join(DIR, name)
        if os.path.exists(path):
            open(path).read()
            os.unlink(path)


def filled(value):
    if isinstance(value, dict):
        return {key: filled(one) for key, one in value.items()}
    return value.replace("{dir}", DIR) if isinstance(value, str) else value


def decide(tools, results):
    """("tool", name, namespace, arguments) or ("text", text)."""
    step = PLAY[min(len(results), len(PLAY) - 1)]
    if "tool" not in step:
        return "text", step["text"].replace("{result}", results[-1] if results else "")
    wanted = step["tool"]
    pattern = f"outlast.*{wanted[1:]}$" if wanted.startswith("@") else wanted
    for name, space in tools:
        if not re.search(pattern, (space or "") + name):
            continue
        if "gate" in step:
            note({"tools": [], "results": results, "users": [], "answer": ["gate", step["gate"]]})
            pass_gate(step["gate"])
        arguments = filled(step.get("args", {}))
        if "take" in step and results and (match := re.search(step["take"][0], results[-1])):
            arguments[step["take"][1]] = match.group(1)
        return "tool", name, space, arguments
    return "text", "ok"     # a request for a title or the like, without tools


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def reply(self, value, status=200):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def stream(self, events):
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        for name, data in events:
            text = data if isinstance(data, str) else json.dumps(data)
            self.wfile.write(((f"event: {name}\n" if name else "") + f"data: {text}\n\n").encode())
            self.wfile.flush()
        self.close_connection = True

    def do_HEAD(self):
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def do_GET(self):
        one = {"id": "fake", "object": "model", "created": 0, "owned_by": "fake", "type": "model", "display_name": "fake"}
        self.reply({"object": "list", "data": [one], "models": []} if "models" in self.path else {})

    def body(self):
        if (self.headers.get("transfer-encoding") or "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("content-length") or 0))
        raw = b""
        while size := int(self.rfile.readline().strip() or b"0", 16):
            raw += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return raw

    def do_POST(self):
        path = self.path.split("?")[0]
        try:
            request = json.loads(self.body() or b"{}")
        except ValueError:
            return self.reply({"error": {"message": "only plain JSON is understood"}}, 415)
        try:
            if path.endswith("/responses"):
                self.open_responses(request)
            elif path.endswith("/chat/completions"):
                self.chat(request)
            elif path.endswith("/count_tokens"):
                self.reply({"input_tokens": 10})
            elif path.endswith("/messages"):
                self.anthropic(request)
            elif "enerateContent" in path:
                self.gemini(request, ":stream" in path)
            elif ":countTokens" in path:
                self.reply({"totalTokens": 10})
            else:
                self.reply({})
        except (BrokenPipeError, ConnectionResetError):
            pass

    def decide(self, tools, results, texts):
        decision = decide(tools, results)
        offered = [(space or "") + name for name, space in tools]
        note({"tools": offered, "results": results, "users": texts, "answer": decision[:2]})
        return decision

    def open_responses(self, request):
        """OpenAI Responses."""
        given = request.get("input") if isinstance(request.get("input"), list) else []
        results = [flat(one.get("output")) for one in given if str(one.get("type", "")).endswith("_call_output")]
        tools = names(request.get("tools"))
        for one in given:       # tools that came late stand in the input
            tools += names(one.get("tools"))
        decision = self.decide(tools, results, users(given))
        if decision[0] == "tool":
            _, name, space, arguments = decision
            item = {"type": "function_call", "id": "fc_1", "call_id": f"call_{len(results)}", "name": name,
                    "arguments": json.dumps(arguments), "status": "completed"}
            if space:
                item["namespace"] = space
        else:
            content = [{"type": "output_text", "text": decision[1], "annotations": []}]
            item = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": content}
        base = {"id": f"resp_{time.time_ns()}", "object": "response", "created_at": int(time.time()),
                "model": request.get("model", "fake"), "status": "in_progress", "output": []}
        usage = {"input_tokens": 10, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 5,
                 "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 15}
        done = {**base, "status": "completed", "output": [item], "usage": usage}
        if not request.get("stream"):
            return self.reply(done)
        empty = {"content": []} if item["type"] == "message" else {"arguments": ""}
        events = [{"type": "response.created", "response": base},
                  {"type": "response.output_item.added", "output_index": 0,
                   "item": {**item, "status": "in_progress", **empty}}]
        if item["type"] == "message":
            at = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
            part = {"type": "output_text", "text": "", "annotations": []}
            events.append({"type": "response.content_part.added", **at, "part": part})
            events.append({"type": "response.output_text.delta", **at, "delta": decision[1]})
        else:
            at = {"item_id": "fc_1", "output_index": 0}
            events.append({"type": "response.function_call_arguments.delta", **at, "delta": item["arguments"]})
            events.append({"type": "response.function_call_arguments.done", **at, "arguments": item["arguments"]})
        events += [{"type": "response.output_item.done", "output_index": 0, "item": item},
                   {"type": "response.completed", "response": done}]
        self.stream([(event["type"], {**event, "sequence_number": i}) for i, event in enumerate(events)])

    def chat(self, request):
        """OpenAI Chat Completions."""
        messages = request.get("messages", [])
        results = [flat(one.get("content")) for one in messages if one.get("role") == "tool"]
        decision = self.decide(names(request.get("tools")), results, users(messages))
        base = {"id": f"chatcmpl_{time.time_ns()}", "created": int(time.time()), "model": request.get("model", "fake")}
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        if decision[0] == "tool":
            function = {"name": decision[1], "arguments": json.dumps(decision[3])}
            call = {"index": 0, "id": f"call_{len(results)}", "type": "function", "function": function}
            delta, end = {"content": None, "tool_calls": [call]}, "tool_calls"
        else:
            delta, end = {"content": decision[1]}, "stop"
        if not request.get("stream"):
            choice = {"index": 0, "message": {"role": "assistant", **delta}, "finish_reason": end}
            return self.reply({**base, "object": "chat.completion", "choices": [choice], "usage": usage})
        chunk = {**base, "object": "chat.completion.chunk"}
        choices = [({"role": "assistant", "content": ""}, None), (delta, None), ({}, end)]
        events = [{**chunk, "choices": [{"index": 0, "delta": one, "finish_reason": why}]} for one, why in choices]
        events += [{**chunk, "choices": [], "usage": usage}, "[DONE]"]
        self.stream([(None, event) for event in events])

    def anthropic(self, request):
        """Anthropic Messages."""
        messages = request.get("messages", [])
        blocks = [b for m in messages if isinstance(m.get("content"), list) for b in m["content"]]
        results = [flat(one.get("content")) for one in blocks if one.get("type") == "tool_result"]
        decision = self.decide(names(request.get("tools")), results, users(messages))
        if decision[0] == "tool":
            block = {"type": "tool_use", "id": f"toolu_{len(results):04}", "name": decision[1], "input": decision[3]}
            start, end = {**block, "input": {}}, "tool_use"
            delta = {"type": "input_json_delta", "partial_json": json.dumps(decision[3])}
        else:
            block, end = {"type": "text", "text": decision[1]}, "end_turn"
            start, delta = {**block, "text": ""}, {"type": "text_delta", "text": decision[1]}
        message = {"id": f"msg_{time.time_ns()}", "type": "message", "role": "assistant", "content": [],
                   "model": request.get("model", "fake"), "stop_reason": None, "stop_sequence": None,
                   "usage": {"input_tokens": 10, "output_tokens": 1}}
        if not request.get("stream"):
            return self.reply({**message, "content": [block], "stop_reason": end})
        events = [{"type": "message_start", "message": message},
                  {"type": "content_block_start", "index": 0, "content_block": start},
                  {"type": "content_block_delta", "index": 0, "delta": delta},
                  {"type": "content_block_stop", "index": 0},
                  {"type": "message_delta", "delta": {"stop_reason": end, "stop_sequence": None},
                   "usage": {"output_tokens": 5}},
                  {"type": "message_stop"}]
        self.stream([(event["type"], event) for event in events])

    def gemini(self, request, streams):
        """Gemini."""
        contents = request.get("contents", [])
        parts = [part for content in contents for part in content.get("parts", [])]
        results = [flat(part["functionResponse"].get("response")) for part in parts if "functionResponse" in part]
        decision = self.decide(names(request.get("tools")), results, users(contents))
        if decision[0] == "tool":
            part = {"functionCall": {"name": decision[1], "args": decision[3]}}
        elif (request.get("generationConfig") or {}).get("responseMimeType") == "application/json":
            choice = {"reasoning": "fake", "model_choice": "flash", "complexity_score": 1, "complexity_reasoning": "fake"}
            part = {"text": json.dumps(choice)}
        else:
            part = {"text": decision[1]}
        candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
        usage = {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}
        answer = {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "fake"}
        self.stream([(None, answer)]) if streams else self.reply(answer)


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
threading.Thread(target=server.serve_forever, daemon=True).start()
print(f"http://127.0.0.1:{server.server_port}", flush=True)
sys.stdin.read()
