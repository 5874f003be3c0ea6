"""Just enough gRPC over unix sockets to ask a kubelet for pod resources and to play a device plugin to it.

HTTP/2 with the header table switched off, so that headers are literals or from the static table; no flow control
beyond its first windows, which suits messages of a few kilobytes. Messages are protobuf, see `fields` and `encode`.
"""
import os
import socket
import struct
import threading

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 0, 1, 3, 4, 6, 7, 8, 9
END_STREAM, END_HEADERS, ACK = 1, 4, 1
NO_TABLE = struct.pack(">HI", 1, 0) + struct.pack(">HI", 4, 1 << 24)  # header table 0, window 16 MiB

# Huffman codes of HTTP/2 (RFC 7541, appendix B) for what a method's path or an error can hold.
_BY_LENGTH = {5: "012aceiost", 6: " %-./3456789=A_bdfghlmnpru", 7: ":BCDEFGHIJKLMNOPQRSTUVWYjkqvwxyz", 8: "&*,;XZ"}
_FIRST = {5: 0, 6: 0x14, 7: 0x5c, 8: 0xf8}
_MORE = {'!': (0x3f8, 10), '"': (0x3f9, 10), '(': (0x3fa, 10), ')': (0x3fb, 10), '?': (0x3fc, 10),
         "'": (0x7fa, 11), '+': (0x7fb, 11), '|': (0x7fc, 11), '#': (0xffa, 12), '>': (0xffb, 12)}
HUFFMAN = {(_FIRST[n] + i, n): c for n, chars in _BY_LENGTH.items() for i, c in enumerate(chars)}
HUFFMAN.update({code: c for c, code in _MORE.items()})


class RpcError(Exception):
    """The other side answered with an error; .status is gRPC's code where it said one."""

    def __init__(self, status, text):
        super().__init__(f"gRPC status {status}: {text}")
        self.status = status


def huffman(data):
    out, code, length = [], 0, 0
    for byte in data:
        for bit in range(7, -1, -1):
            code, length = code << 1 | byte >> bit & 1, length + 1
            if (code, length) in HUFFMAN:
                out.append(HUFFMAN[code, length])
                code, length = 0, 0
            elif length > 30:
                return "".join(out) + "?"
    return "".join(out)


def integer(data, at, bits):
    value, at = data[at] & (1 << bits) - 1, at + 1
    if value == (1 << bits) - 1:
        shift = 0
        while True:
            value, more = value + ((data[at] & 127) << shift), data[at] & 128
            at, shift = at + 1, shift + 7
            if not more:
                break
    return value, at


def text(data, at):
    coded = data[at] & 128
    length, at = integer(data, at, 7)
    raw = data[at:at + length]
    return (huffman(raw) if coded else raw.decode("latin-1")), at + length


def read_headers(block):
    """Names of the static table are given as numbers: 4 and 5 are :path, 8 to 14 are :status."""
    out, at = {}, 0
    while at < len(block):
        first = block[at]
        if first & 128:
            index, at = integer(block, at, 7)
            out[index] = ""
            continue
        if first & 0xe0 == 0x20:
            _, at = integer(block, at, 5)
            continue
        name, at = integer(block, at, 6 if first & 64 else 4)
        if name == 0:
            name, at = text(block, at)
        out[name], at = text(block, at)
    return out


def write_headers(pairs):
    out = b""
    for name, value in pairs:
        name, value = name.encode(), value.encode()
        out += b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value
    return out


class Connection:
    def __init__(self, sock):
        self.sock, self.lock = sock, threading.Lock()

    def send(self, kind, flags, stream, payload=b""):
        with self.lock:
            self.sock.sendall(struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) +
                              struct.pack(">I", stream) + payload)

    def exactly(self, count):
        data = b""
        while len(data) < count:
            part = self.sock.recv(count - len(data))
            if not part:
                raise ConnectionError("closed")
            data += part
        return data

    def frame(self):
        """The next one that matters; (kind, flags, stream, payload)."""
        while True:
            head = self.exactly(9)
            length, kind, flags = int.from_bytes(head[:3], "big"), head[3], head[4]
            stream, payload = struct.unpack(">I", head[5:])[0] & 0x7fffffff, self.exactly(length)
            if kind == SETTINGS and not flags & ACK:
                self.send(SETTINGS, ACK, 0)
            elif kind == PING and not flags & ACK:
                self.send(PING, ACK, 0, payload)
            elif kind == GOAWAY:
                raise ConnectionError("the other side said good-bye")
            elif kind in (DATA, HEADERS, CONTINUATION, RST_STREAM):
                return kind, flags, stream, payload

    def message(self, stream, body):
        self.send(DATA, 0, stream, b"\0" + struct.pack(">I", len(body)) + body)


def call(path, method, body=b"", timeout=60):
    """One unary call to the server behind the socket `path`; the answer's bytes."""
    sock = socket.socket(socket.AF_UNIX)
    sock.settimeout(timeout)
    with sock:
        sock.connect(path)
        sock.sendall(PREFACE)
        peer = Connection(sock)
        peer.send(SETTINGS, 0, 0, NO_TABLE)
        peer.send(WINDOW_UPDATE, 0, 0, struct.pack(">I", 1 << 24))
        peer.send(HEADERS, END_HEADERS, 1, write_headers(
            [(":method", "POST"), (":scheme", "http"), (":path", method), (":authority", "localhost"),
             ("content-type", "application/grpc"), ("te", "trailers")]))
        peer.send(DATA, END_STREAM, 1, b"\0" + struct.pack(">I", len(body)) + body)
        data, headers = b"", {}
        while True:
            kind, flags, stream, payload = peer.frame()
            if stream != 1:
                continue
            if kind == DATA:
                data += payload
            elif kind == HEADERS:
                headers.update(read_headers(payload))
            elif kind == RST_STREAM:
                raise RpcError(-1, "the call was cut off")
            if flags & END_STREAM:
                break
    status = headers.get("grpc-status", "0")
    if status != "0":
        raise RpcError(int(status), headers.get("grpc-message", ""))
    return data[5:5 + struct.unpack(">I", data[1:5])[0]]


class Server:
    """methods: path of the method -> function(bytes) -> bytes, an iterator of bytes for a stream, or an RpcError."""

    def __init__(self, path, methods):
        self.methods, self.path, self.connections = methods, path, []
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.bind(path)
        self.sock.listen(8)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                sock, _ = self.sock.accept()
            except OSError:
                return
            self.connections.append(sock)
            threading.Thread(target=self.serve, args=(sock,), daemon=True).start()

    def serve(self, sock):
        peer = Connection(sock)
        try:
            if peer.exactly(len(PREFACE)) != PREFACE:
                return
            peer.send(SETTINGS, 0, 0, NO_TABLE)
            paths, bodies = {}, {}
            while True:
                kind, flags, stream, payload = peer.frame()
                if kind == HEADERS:
                    headers = read_headers(payload)
                    paths[stream], bodies[stream] = headers.get(4) or headers.get(5) or headers.get(":path"), b""
                elif kind == DATA:
                    bodies[stream] = bodies.get(stream, b"") + payload
                if kind in (HEADERS, DATA) and flags & END_STREAM:
                    threading.Thread(target=self.answer, daemon=True,
                                     args=(peer, stream, paths.pop(stream), bodies.pop(stream)[5:])).start()
        except OSError:
            pass
        finally:
            sock.close()

    def answer(self, peer, stream, path, body):
        status, what = "0", ""
        try:
            peer.send(HEADERS, END_HEADERS, stream,
                      write_headers([(":status", "200"), ("content-type", "application/grpc")]))
            try:
                answer = self.methods[path](body) if path in self.methods else RpcError(12, "no method")
                if isinstance(answer, RpcError):
                    raise answer
                for part in [answer] if isinstance(answer, bytes) else answer:
                    peer.message(stream, part)
            except RpcError as e:
                status, what = str(e.status), str(e)
            peer.send(HEADERS, END_HEADERS | END_STREAM, stream,
                      write_headers([("grpc-status", status), ("grpc-message", what)]))
        except OSError:
            pass

    def stop(self):
        self.sock.close()
        for sock in self.connections:
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        if os.path.exists(self.path):
            os.unlink(self.path)


def varint(data, at):
    value, shift = 0, 0
    while True:
        value, more = value | (data[at] & 127) << shift, data[at] & 128
        at, shift = at + 1, shift + 7
        if not more:
            return value, at


def fields(data):
    """A protobuf message as {number: [value...]}; values are ints or bytes."""
    out, at = {}, 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        elif key & 7 == 2:
            length, at = varint(data, at)
            value, at = data[at:at + length], at + length
        else:
            size = 8 if key & 7 == 1 else 4
            value, at = data[at:at + size], at + size
        out.setdefault(key >> 3, []).append(value)
    return out


def number(value):
    out = b""
    while value > 127:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])


def encode(*pairs):
    """Protobuf of (number, value) pairs; values are ints, bools, strings or bytes."""
    out = b""
    for field, value in pairs:
        if isinstance(value, (bool, int)):
            out += number(field << 3) + number(int(value))
        else:
            value = value.encode() if isinstance(value, str) else value
            out += number(field << 3 | 2) + number(len(value)) + value
    return out
