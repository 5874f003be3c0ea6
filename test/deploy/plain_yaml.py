"""Reads the YAML that manifests under deploy/ are written in, and refuses the rest: no tags, anchors, aliases or tabs.

documents(text) gives the values of all documents. Scalars: strings, true, false, null, whole numbers.
"""
import re


class NotPlain(Exception):
    pass


class Line:
    def __init__(self, number, text):
        self.number, self.indent = number, len(text) - len(text.lstrip(" "))
        self.text = text.strip()


def documents(text):
    out, current = [], []
    for number, raw in enumerate(text.split("\n"), 1):
        if "\t" in raw:
            raise NotPlain(f"line {number}: a tab")
        if raw.rstrip() == "---":
            out.append(current)
            current = []
        else:
            current.append((number, raw))
    out.append(current)
    values = [Reader(lines).document() for lines in out]
    return [v for v in values if v is not None]


def without_comment(text):
    """Up to a '#' at the start or after a blank, outside quotes."""
    quote = None
    for i, c in enumerate(text):
        if quote:
            quote = None if c == quote else quote
        elif c in "\"'" and (i == 0 or text[i - 1] in " [{,:"):
            quote = c
        elif c == "#" and (i == 0 or text[i - 1] == " "):
            return text[:i].rstrip()
    return text.rstrip()


class Reader:
    def __init__(self, lines):
        self.raw = lines
        self.at = 0

    def peek(self):
        while self.at < len(self.raw):
            number, raw = self.raw[self.at]
            text = without_comment(raw)
            if text.strip():
                return Line(number, text)
            self.at += 1
        return None

    def document(self):
        line = self.peek()
        if line is None:
            return None
        value = self.block(line.indent)
        line = self.peek()
        if line is not None:
            raise NotPlain(f"line {line.number}: unexpected indentation")
        return value

    def block(self, indent):
        line = self.peek()
        return self.sequence(indent) if line.text == "-" or line.text.startswith("- ") else self.mapping(indent)

    def sequence(self, indent):
        out = []
        while (line := self.peek()) is not None and line.indent == indent and \
                (line.text == "-" or line.text.startswith("- ")):
            rest = line.text[1:].strip()
            if not rest:
                self.at += 1
                out.append(self.below(indent))
                continue
            inner = indent + len(line.text) - len(rest)
            if re.match(r"[\w./\"'-]+:( |$)", rest):
                # The item is a mapping that begins on the line of its dash.
                self.raw[self.at] = (line.number, " " * inner + rest)
                out.append(self.mapping(inner))
            else:
                self.at += 1
                out.append(self.scalar_or_flow(rest, line.number))
        return out

    def mapping(self, indent):
        out = {}
        while (line := self.peek()) is not None and line.indent == indent and not line.text.startswith("- "):
            found = re.match(r"(\"[^\"]*\"|'[^']*'|[^:\s][^:]*(?::[^:\s][^:]*)*):(?: +(.*))?$", line.text)
            if not found:
                raise NotPlain(f"line {line.number}: want KEY: VALUE, found {line.text!r}")
            key, rest = found.group(1).strip("\"'"), found.group(2) or ""
            if key in out:
                raise NotPlain(f"line {line.number}: {key} is there twice")
            self.at += 1
            if not rest:
                out[key] = self.below(indent)
            elif rest[0] in "|>":
                out[key] = self.folded(indent, rest)
            else:
                out[key] = self.scalar_or_flow(self.wrapped(rest, indent), line.number)
        return out

    def wrapped(self, text, indent):
        """A plain scalar that a writer folded goes on in lines that stand deeper."""
        while text[0] not in "\"'[{&*!" and (line := self.peek()) is not None and line.indent > indent:
            text += " " + line.text
            self.at += 1
            if ": " in text or text.endswith(":"):
                raise NotPlain(f"line {line.number}: unexpected indentation")
        return text

    def below(self, indent):
        line = self.peek()
        dash = line is not None and line.indent == indent and line.text.startswith("- ")
        if line is None or (line.indent <= indent and not dash):
            return None
        return self.block(line.indent)

    def folded(self, indent, style):
        lines = []
        while self.at < len(self.raw):
            raw = self.raw[self.at][1]
            if raw.strip() and len(raw) - len(raw.lstrip(" ")) <= indent:
                break
            lines.append(raw.strip())
            self.at += 1
        return (" " if style[0] == ">" else "\n").join(lines).strip()

    def scalar_or_flow(self, text, number):
        if text[0] in "&*!":
            raise NotPlain(f"line {number}: {text[0]} is not read")
        while text[0] in "\"'" and not closed(text):  # folded by a writer
            line = self.peek()
            if line is None:
                raise NotPlain(f"line {number}: no end of {text[0]}")
            text += " " + line.text
            self.at += 1
        if text[0] not in "[{":
            return scalar(text)
        while not balanced(text):
            line = self.peek()
            if line is None:
                raise NotPlain(f"line {number}: no end of {text[0]}")
            text += " " + line.text
            self.at += 1
        value, end = flow(text, 0)
        if text[end:].strip():
            raise NotPlain(f"line {number}: after {text[:end]}: {text[end:]}")
        return value


def closed(text):
    return len(text) > 1 and text[-1] == text[0] and (text[0] == '"' or text.count("'") % 2 == 0)


def balanced(text):
    plain = re.sub(r"\"[^\"]*\"|'[^']*'", "", text)
    return plain.count("[") == plain.count("]") and plain.count("{") == plain.count("}")


def flow(text, at):
    """The value that begins at `at`, and where it ends."""
    close = {"[": "]", "{": "}"}[text[at]]
    out = [] if close == "]" else {}
    at += 1
    while True:
        at += len(text[at:]) - len(text[at:].lstrip(" ,"))
        if at >= len(text):
            raise NotPlain(f"no {close} in {text}")
        if text[at] == close:
            return out, at + 1
        key = None
        if close == "}":
            found = re.match(r"(\"[^\"]*\"|'[^']*'|[^:,{}\[\]]+): *", text[at:])
            if not found:
                raise NotPlain(f"want KEY: VALUE in {text}")
            key = found.group(1).strip("\"' ")
            at += found.end()
        if text[at] in "[{":
            value, at = flow(text, at)
        else:
            found = re.match(r"\"[^\"]*\"|'[^']*'|[^,\]}]*", text[at:])
            value, at = scalar(found.group(0).strip()), at + found.end()
        if close == "}":
            out[key] = value
        else:
            out.append(value)


def scalar(text):
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'":
        return text[1:-1].replace("''", "'") if text[0] == "'" else text[1:-1]
    if text in ("true", "false"):
        return text == "true"
    if text in ("null", "~", ""):
        return None
    return int(text) if re.fullmatch(r"-?\d+", text) else text
