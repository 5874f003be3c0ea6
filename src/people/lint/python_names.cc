#include "people/lint/python_names.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

namespace berth::lint {

namespace {

struct PythonToken {
  std::string_view text;
  std::size_t at = 0;
  bool name = false;
  int depth = 0;  // of the brackets around it
};
using PythonLine = std::vector<PythonToken>;  // a logical one

bool starts_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}
bool continues_name(char c) { return starts_name(c) || (c >= '0' && c <= '9'); }

constexpr std::array<std::string_view, 38> kKeywords = {
    "False",   "None",     "True",     "and",    "as",   "assert", "async",  "await",
    "break",   "class",    "continue", "def",    "del",  "elif",   "else",   "except",
    "finally", "for",      "from",     "global", "if",   "import", "in",     "is",
    "lambda",  "nonlocal", "not",      "or",     "pass", "raise",  "return", "try",
    "while",   "with",     "yield",    "match",  "case", "type"};

constexpr std::array<std::string_view, 96> kBuiltins = {"abs",
                                                        "aiter",
                                                        "all",
                                                        "anext",
                                                        "any",
                                                        "ascii",
                                                        "bin",
                                                        "bool",
                                                        "breakpoint",
                                                        "bytearray",
                                                        "bytes",
                                                        "callable",
                                                        "chr",
                                                        "classmethod",
                                                        "compile",
                                                        "complex",
                                                        "delattr",
                                                        "dict",
                                                        "dir",
                                                        "divmod",
                                                        "enumerate",
                                                        "eval",
                                                        "exec",
                                                        "filter",
                                                        "float",
                                                        "format",
                                                        "frozenset",
                                                        "getattr",
                                                        "globals",
                                                        "hasattr",
                                                        "hash",
                                                        "help",
                                                        "hex",
                                                        "id",
                                                        "input",
                                                        "int",
                                                        "isinstance",
                                                        "issubclass",
                                                        "iter",
                                                        "len",
                                                        "list",
                                                        "locals",
                                                        "map",
                                                        "max",
                                                        "memoryview",
                                                        "min",
                                                        "next",
                                                        "object",
                                                        "oct",
                                                        "open",
                                                        "ord",
                                                        "pow",
                                                        "print",
                                                        "property",
                                                        "range",
                                                        "repr",
                                                        "reversed",
                                                        "round",
                                                        "set",
                                                        "setattr",
                                                        "slice",
                                                        "sorted",
                                                        "staticmethod",
                                                        "str",
                                                        "sum",
                                                        "super",
                                                        "tuple",
                                                        "vars",
                                                        "zip",
                                                        "Ellipsis",
                                                        "NotImplemented",
                                                        "exit",
                                                        "quit",
                                                        "copyright",
                                                        "credits",
                                                        "license",
                                                        "self",
                                                        "cls",
                                                        "_",
                                                        "__name__",
                                                        "__file__",
                                                        "__doc__",
                                                        "__import__",
                                                        "__builtins__",
                                                        "__spec__",
                                                        "__class__",
                                                        "__debug__",
                                                        "__path__",
                                                        "__package__",
                                                        "__all__",
                                                        "__annotations__",
                                                        "__dict__",
                                                        "__module__",
                                                        "__qualname__",
                                                        "__loader__",
                                                        "__version__"};

bool is_builtin(std::string_view name) {
  // Every exception is one.
  return name.ends_with("Error") || name.ends_with("Exception") || name.ends_with("Warning") ||
         name.ends_with("Exit") || name == "KeyboardInterrupt" || name == "StopIteration" ||
         name == "StopAsyncIteration" || name.ends_with("ExceptionGroup") ||
         std::find(kBuiltins.begin(), kBuiltins.end(), name) != kBuiltins.end();
}

bool is_keyword(std::string_view name) {
  return std::find(kKeywords.begin(), kKeywords.end(), name) != kKeywords.end();
}

std::vector<PythonLine> python_lines(std::string_view code) {
  std::vector<PythonLine> out(1);
  int depth = 0;
  for (std::size_t i = 0; i < code.size();) {
    const char c = code[i];
    std::size_t end = i + 1;
    if (c == '\\' && i + 1 < code.size() && code[i + 1] == '\n') {
      i += 2;
      continue;
    }
    if ((c == '\n' && depth == 0) || (c == ';' && depth == 0)) {
      if (!out.back().empty()) out.emplace_back();
      i = end;
      continue;
    }
    if (c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\f') {
      i = end;
      continue;
    }
    const bool name = starts_name(c);
    if (name) {
      while (end < code.size() && continues_name(code[end])) ++end;
      // The letters before a string: f"", rb''.
      if (end - i <= 2 && end < code.size() && (code[end] == '"' || code[end] == '\'')) {
        i = end;
        continue;
      }
    } else if (c >= '0' && c <= '9') {
      while (end < code.size() && (continues_name(code[end]) || code[end] == '.')) ++end;
    } else if (end < code.size() && code[end] == '=' &&
               std::string_view("=!<>:+-*/%&|^@").find(c) != std::string_view::npos) {
      ++end;
    }
    if (c == ')' || c == ']' || c == '}') depth = std::max(0, depth - 1);
    out.back().push_back({code.substr(i, end - i), i, name, depth});
    if (c == '(' || c == '[' || c == '{') ++depth;
    i = end;
  }
  return out;
}

class PythonBindings {
 public:
  explicit PythonBindings(const std::vector<PythonLine>& lines) {
    for (const PythonLine& line : lines) read(line);
  }

  std::vector<PythonName> unbound() const {
    std::vector<PythonName> out;
    if (star_) return out;
    for (const auto& [name, at] : used_) {
      if (!bound_.contains(name) && !is_builtin(name)) out.push_back({std::string(name), at});
    }
    std::sort(out.begin(), out.end(),
              [](const PythonName& a, const PythonName& b) { return a.at < b.at; });
    return out;
  }

 private:
  static bool is(const PythonLine& line, std::size_t i, std::string_view text) {
    return i < line.size() && line[i].text == text;
  }

  void read(const PythonLine& line) {
    if (line.empty()) return;
    if (is(line, 0, "import") || is(line, 0, "from")) return imports(line);
    if (is(line, 0, "global") || is(line, 0, "nonlocal")) return;
    std::size_t first = 0;
    if (is(line, 0, "async")) first = 1;
    const bool defines = is(line, first, "def");
    if ((defines || is(line, first, "class")) && first + 1 < line.size()) {
      bind(line[first + 1].text);
      if (defines) parameters(line, first + 2);
      first += 2;
    }
    // What a pattern binds cannot be told from what it asks for.
    if (is(line, 0, "case") && line.size() > 1 && !is(line, 1, "=")) {
      first = 1;
      while (first < line.size() && !(line[first].text == ":" && line[first].depth == 0)) {
        bind(line[first++].text);
      }
    }
    if (!defines) targets(line, first);
    for (std::size_t i = first; i < line.size(); ++i) word(line, i);
  }

  void imports(const PythonLine& line) {
    bool listing = is(line, 0, "import");
    bool dotted = false;
    for (std::size_t i = 1; i < line.size(); ++i) {
      const PythonToken& token = line[i];
      if (token.text == "*") star_ = true;
      if (token.text == "import") {
        listing = true;
        continue;
      }
      if (!listing || !token.name) {
        dotted = token.text == ".";
        continue;
      }
      if (token.text == "as") continue;
      const bool renamed = is(line, i + 1, "as");
      const bool path = is(line, i + 1, ".") && !is(line, 0, "from");
      // "import a.b as c" binds c alone; "import a.b" binds a.
      if (!renamed && !(dotted && !is(line, i - 1, "as"))) {
        if (!path || !renamed_later(line, i)) bind(token.text);
      }
      dotted = false;
    }
  }

  static bool renamed_later(const PythonLine& line, std::size_t i) {
    while (i + 2 < line.size() && line[i + 1].text == ".") i += 2;
    return i + 1 < line.size() && line[i + 1].text == "as";
  }

  void parameters(const PythonLine& line, std::size_t i) {
    for (; i < line.size() && !(line[i].text == ":" && line[i].depth == 0); ++i) {
      if (line[i].name && line[i].depth == 1 && i > 0 &&
          (line[i - 1].text == "(" || line[i - 1].text == "," || line[i - 1].text == "*" ||
           (line[i - 1].text == "*" && is(line, i - 2, "*")))) {
        bind(line[i].text);
      }
    }
  }

  // What stands before an "=" of the line itself: "a, (b, c) = ...", "x: int = 3", "n += 1".
  void targets(const PythonLine& line, std::size_t first) {
    std::size_t last = line.size();
    bool annotated = false;
    for (std::size_t i = first; i < line.size(); ++i) {
      if (line[i].depth > 0) continue;
      if (line[i].text == "=") last = i;
      if (line[i].text == ":" && i == first + 1) annotated = true;
    }
    if (annotated && line[first].name) bind(line[first].text);
    if (last == line.size()) return;
    for (std::size_t i = first; i < last; ++i) {
      if (!line[i].name || (i > 0 && line[i - 1].text == ".")) continue;
      if (is(line, i + 1, ".") || is(line, i + 1, "[") || is(line, i + 1, "(")) continue;
      if (inside_brackets(line, first, i)) continue;
      bind(line[i].text);
    }
  }

  static bool inside_brackets(const PythonLine& line, std::size_t first, std::size_t at) {
    int square = 0, calls = 0;
    for (std::size_t i = first; i < at; ++i) {
      const bool after_name =
          i > first && (line[i - 1].name || line[i - 1].text == ")" || line[i - 1].text == "]");
      if (line[i].text == "[") square += after_name ? 1 : 0;
      if (line[i].text == "]") square = std::max(0, square - 1);
      if (line[i].text == "(") calls += after_name ? 1 : 0;
      if (line[i].text == ")") calls = std::max(0, calls - 1);
    }
    return square > 0 || calls > 0;
  }

  void word(const PythonLine& line, std::size_t i) {
    const PythonToken& token = line[i];
    if (!token.name) return;
    if (token.text == "as" && i + 1 < line.size()) {  // with, except
      for (std::size_t k = i + 1; k < line.size() && line[k].text != ":"; ++k) bind(line[k].text);
    }
    if (token.text == "for") {
      for (std::size_t k = i + 1; k < line.size() && line[k].text != "in"; ++k) bind(line[k].text);
    }
    if (token.text == "lambda") {
      for (std::size_t k = i + 1; k < line.size() && line[k].text != ":"; ++k) {
        if (line[k - 1].text != "=") bind(line[k].text);
      }
    }
    if (is(line, i + 1, ":=")) bind(token.text);
    if (i > 0 && line[i - 1].text == ".") return;
    if (is_keyword(token.text)) return;
    // A keyword argument: f(name=...).
    if (token.depth > 0 && is(line, i + 1, "=")) return;
    used_.emplace(token.text, token.at);
  }

  void bind(std::string_view name) {
    if (!name.empty() && starts_name(name.front()) && !is_keyword(name)) bound_.insert(name);
  }

  std::set<std::string_view> bound_;
  std::map<std::string_view, std::size_t> used_;
  bool star_ = false;
};

}  // namespace

std::vector<PythonName> unbound_names(std::string_view code) {
  const std::vector<PythonLine> lines = python_lines(code);
  return PythonBindings(lines).unbound();
}

}  // namespace berth::lint
