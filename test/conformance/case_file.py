"""Case files of the API conformance suite, read into steps. docs/conformance.md has the grammar.

A case is a list of requests and, after each, what must hold of the answer:

    case create-twice
    POST /api/v1/namespaces/$ns/configmaps {metadata: {name: a}, data: {k: v}}
    -> 201
    .data == {k: v}
    POST /api/v1/namespaces/$ns/configmaps {metadata: {name: a}}
    -> 409 AlreadyExists
    .message == configmaps "a" already exists

Values are JSON in which plain words need no quotes. `define NAME text` gives a name to a piece of text,
`each` makes one case per row of a table, and $names are replaced before anything is parsed.
"""
import json
import re

METHODS = {"GET", "POST", "PUT", "DELETE", "PATCH", "WATCH", "HEAD", "OPTIONS"}
OPERATORS = {"==", "!=", "~", "exists", "absent", "length", "contains", "lacks", ">", "sorted"}
NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?$")


class CaseError(Exception):
    """A case file that cannot be read; says the file and line."""


class _Flow:
    """Reads one value: JSON, where words and keys may stand without quotes."""

    def __init__(self, text):
        self.text, self.at = text, 0

    def fail(self, what):
        raise ValueError(f"{what} at {self.text[self.at:self.at + 30]!r}")

    def space(self):
        while self.at < len(self.text) and self.text[self.at] in " \t\n":
            self.at += 1

    def value(self):
        self.space()
        first = self.text[self.at:self.at + 1]
        if first == "{":
            return self.object()
        if first == "[":
            return self.list()
        if first == '"':
            return self.quoted()
        return scalar(self.word())

    def quoted(self):
        try:
            value, self.at = json.decoder.scanstring(self.text, self.at + 1)
        except ValueError:
            self.fail("string without an end")
        return value

    def word(self):
        start = self.at
        while self.at < len(self.text):
            c = self.text[self.at]
            if c in ",{}[]\n" or (c == ":" and self.text[self.at + 1:self.at + 2] in ("", " ", "\n")):
                break
            self.at += 1
        word = self.text[start:self.at].strip()
        if not word:
            self.fail("a value is missing")
        return word

    def object(self):
        out = {}
        self.at += 1
        while True:
            self.space()
            if self.text[self.at:self.at + 1] == "}":
                self.at += 1
                return out
            key = self.quoted() if self.text[self.at:self.at + 1] == '"' else self.word()
            self.space()
            if self.text[self.at:self.at + 1] != ":":
                self.fail(f"':' is missing after {key!r}")
            self.at += 1
            out[key] = self.value()
            self.separator("}")

    def list(self):
        out = []
        self.at += 1
        while True:
            self.space()
            if self.text[self.at:self.at + 1] == "]":
                self.at += 1
                return out
            out.append(self.value())
            self.separator("]")

    def separator(self, end):
        self.space()
        if self.text[self.at:self.at + 1] == ",":
            self.at += 1
        elif self.text[self.at:self.at + 1] != end:
            self.fail(f"',' or '{end}' is missing")


def scalar(word):
    if word in ("true", "false"):
        return word == "true"
    if word == "null":
        return None
    if NUMBER.match(word):
        return json.loads(word)
    return word


def flow(text):
    """The value that a whole text stands for."""
    reader = _Flow(text)
    value = reader.value()
    reader.space()
    if reader.at != len(reader.text):
        reader.fail("more text than one value")
    return value


def operand(text):
    """The right side of a check: a quoted or bracketed value, or the rest of the line as it is."""
    text = text.strip()
    if text[:1] in ("{", "["):
        return flow(text)
    if text[:1] == '"' and text[-1:] == '"':
        return flow(text)
    return scalar(text)


class Step:
    def __init__(self, kind, line, **fields):
        self.kind, self.line, self.checks = kind, line, []
        self.patch = self.headers = self.body = self.raw = None
        self.path = self.name = self.method = ""
        self.eventually = False
        self.status = self.reason = None
        self.__dict__.update(fields)


class Case:
    def __init__(self, name, line):
        self.name, self.line, self.steps, self.needs, self.serial = name, line, [], set(), False
        self.variables = {}


def substitute(text, variables):
    """$name and ${name}; unknown names stay, so that they can be saved while the case runs."""
    for _ in range(8):  # definitions may use definitions
        replaced = re.sub(r"\$\{(\w+)\}|\$(\w+)",
                          lambda m: str(variables.get(m[1] or m[2], m[0])), text)
        if replaced == text:
            return text
        text = replaced
    return text


def _open_brackets(text):
    depth, quoted, escaped = 0, False, False
    for c in text:
        if quoted:
            if escaped:
                escaped = False
            elif c == "\\":
                escaped = True
            elif c == '"':
                quoted = False
        elif c == '"':
            quoted = True
        elif c in "{[":
            depth += 1
        elif c in "}]":
            depth -= 1
    return depth


class _Reader:
    def __init__(self, path, stem):
        self.path, self.stem = path, stem
        with open(path, encoding="utf-8") as f:
            self.lines = f.read().split("\n")
        self.at, self.defines, self.blocks = 0, {}, []

    def fail(self, line, what):
        raise CaseError(f"{self.path}:{line}: {what}")

    def logical_lines(self):
        """(number, text): comments dropped, lines with open brackets joined."""
        at = 0
        while at < len(self.lines):
            number, text = at + 1, self.lines[at].rstrip()
            at += 1
            if not text.strip() or text.lstrip().startswith("#"):
                continue
            word = text.split(None, 1)[0]
            if word in METHODS or word in ("define", "eventually", "each") or word.startswith("PATCH["):
                while _open_brackets(text) > 0 and at < len(self.lines):
                    text += "\n" + self.lines[at].rstrip()
                    at += 1
            yield number, text.strip() if text[0] != " " else "  " + text.strip()

    def read(self):
        cases, block, rows = [], None, None
        for number, text in self.logical_lines():
            word, _, rest = text.strip().partition(" ")
            if word == "define":
                name, _, value = rest.strip().partition(" ")
                self.defines[name] = value.strip()
                continue
            if word == "each":
                rows = ([c.strip() for c in rest.split("|")], [])
                continue
            if rows is not None and text.startswith("  "):
                rows[1].append((number, [c.strip() for c in text.split("|")]))
                continue
            if word == "case":
                if block:
                    cases += self.expand(*block)
                block, rows = (number, rest.strip(), [], rows), None
                continue
            if block is None:
                self.fail(number, f"'{word}' stands before the first case")
            block[2].append((number, text.strip()))
        if block:
            cases += self.expand(*block)
        return cases

    def expand(self, number, name, lines, rows):
        if rows is None:
            return [self.case(number, name, lines, {})]
        columns, values = rows
        out = []
        for row_number, row in values:
            if len(row) != len(columns):
                self.fail(row_number, f"{len(row)} columns where the table has {len(columns)}")
            out.append(self.case(number, name, lines, dict(zip(columns, row))))
        return out

    def case(self, number, name, lines, row):
        variables = {**self.defines, **row}
        case = Case(f"{self.stem}/{substitute(name, variables)}", number)
        case.variables = variables
        for at, text in lines:
            self.add(case, at, text)
        for step in case.steps:
            if step.kind == "request" and step.status is None:
                self.fail(step.line, "no '-> STATUS' after the request")
        return case

    def add(self, case, at, text):
        word, _, rest = text.partition(" ")
        rest = rest.strip()
        if word == "needs":
            case.needs.update(rest.split())
        elif word == "serial":
            case.serial = True
        elif word == "eventually":
            self.add(case, at, rest)
            case.steps[-1].eventually = True
        elif word in METHODS or word.startswith("PATCH["):
            case.steps.append(self.request(at, word, rest))
        elif word in ("event", "end", "compact", "reviews", "connect", "set"):
            case.steps.append(Step(word, at, name=rest))
        elif not case.steps:
            self.fail(at, f"'{word}' stands before the first request")
        elif word == "with":
            key, _, value = rest.partition(":")
            case.steps[-1].headers = {**(case.steps[-1].headers or {}), key.strip(): value.strip()}
        elif word == "raw":
            case.steps[-1].raw = rest
        elif word == "->":
            status, _, reason = rest.partition(" ")
            case.steps[-1].status, case.steps[-1].reason = int(status), reason.strip() or None
        elif word == "save":
            name, _, path = rest.partition(" ")
            case.steps[-1].checks.append((at, "save", name, path.strip()))
        elif word.startswith(".") or word.startswith("header:"):
            self.check(case.steps[-1], at, text)
        else:
            self.fail(at, f"'{word}' is not a request, a check or a setting")

    def request(self, at, word, rest):
        step = Step("request", at, method=word.partition("[")[0])
        if "[" in word:
            step.patch = word.partition("[")[2].rstrip("]")
        if step.method == "WATCH":
            step.name, _, rest = rest.partition(" ")
        step.path, _, body = rest.strip().partition(" ")
        step.body = body.strip() or None
        return step

    def check(self, step, at, text):
        # A path may hold spaces inside of brackets and quotes: cut at the first one outside.
        depth = quoted = 0
        for i, c in enumerate(text + " "):
            if c == '"':
                quoted = 1 - quoted
            elif not quoted and c in "[]":
                depth += 1 if c == "[" else -1
            elif c == " " and not depth and not quoted:
                break
        path, rest = text[:i], text[i:].strip()
        operator, _, value = rest.partition(" ")
        if operator not in OPERATORS:
            self.fail(at, f"'{operator}' is not one of {' '.join(sorted(OPERATORS))}")
        step.checks.append((at, operator, path, value.strip()))


def read_cases(path, stem):
    return _Reader(path, stem).read()


def follow(value, path):
    """The value at a path like .items[0].metadata.labels["a/b"], .x[*].name or .x[name=a].y; KeyError
    when it is not there."""
    for part in re.findall(r'\["((?:[^"\\]|\\.)*)"\]|\[([^\]]*)\]|\.([^.\[]*)', path):
        quoted, index, name = part
        if index == "*":
            rest = path.split("[*]", 1)[1]
            if not isinstance(value, list):
                raise KeyError(path)
            return [_or_none(v, rest) for v in value]
        if index and "=" in index:
            key, _, wanted = index.partition("=")
            found = [v for v in (value if isinstance(value, list) else []) if isinstance(v, dict) and str(_or_none(v, "." + key)) == wanted]
            if not found:
                raise KeyError(path)
            value = found[0]
        elif index:
            if not isinstance(value, list) or not -len(value) <= int(index) < len(value):
                raise KeyError(path)
            value = value[int(index)]
        else:
            key = json.loads(f'"{quoted}"') if quoted else name
            if not key:
                continue
            if not isinstance(value, dict) or key not in value:
                raise KeyError(path)
            value = value[key]
    return value


def _or_none(value, path):
    try:
        return follow(value, path)
    except KeyError:
        return None


def subset(part, whole):
    """Whether an object has at least these fields; lists: whether each item has a match."""
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(k in whole and subset(v, whole[k]) for k, v in part.items())
    if isinstance(part, list):
        return isinstance(whole, list) and all(any(subset(p, w) for w in whole) for p in part)
    return part == whole and isinstance(part, bool) == isinstance(whole, bool)
