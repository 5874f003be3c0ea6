#include <algorithm>
#include <cctype>
#include <map>

#include "rules.h"

namespace berth::tidy {
namespace {

struct Function {
  std::string name;
  std::size_t line = 0;
};

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

std::string trimmed(std::string text) {
  const auto blank = [](char c) { return c == ' ' || c == '\n' || c == '\t'; };
  while (!text.empty() && blank(text.back())) text.pop_back();
  std::size_t from = 0;
  while (from < text.size() && blank(text[from])) ++from;
  return text.substr(from);
}

// What stands before a '{' at the scope of a namespace: the name of the function it begins, or "".
std::string function_begun_by(const std::string& head) {
  const std::size_t open = head.find('(');
  if (open == std::string::npos || open == 0) return "";
  if (head.find('=') < open || !head.ends_with(')')) {
    const bool qualified = head.ends_with("const") || head.ends_with("noexcept");
    if (head.find('=') < open || !qualified) return "";
  }
  for (const char* word : {"struct ", "class ", "enum ", "union "}) {
    if (head.starts_with(word)) return "";
  }
  std::size_t begin = open;
  while (begin > 0 && is_word(head[begin - 1])) --begin;
  if (begin == 0 || begin == open || head[begin - 1] == ':') return "";  // a macro; a member
  std::string name = head.substr(begin, open - begin);
  return name.starts_with("operator") ? "" : name;
}

// Those that the file defines in unnamed namespaces.
std::vector<Function> hidden_functions(const SourceText& source) {
  enum class Scope { kNamed, kUnnamed, kOther };
  std::vector<Scope> scopes;
  std::vector<Function> found;
  std::string head;
  for (std::size_t i = 0; i < source.code.size(); ++i) {
    const std::string& line = source.code[i];
    if (line.starts_with('#')) continue;
    for (const char c : line + '\n') {
      if (c == '{') {
        head = trimmed(std::move(head));
        const bool outside = std::find(scopes.begin(), scopes.end(), Scope::kOther) == scopes.end();
        const bool hidden =
            std::find(scopes.begin(), scopes.end(), Scope::kUnnamed) != scopes.end();
        if (head == "namespace") {
          scopes.push_back(Scope::kUnnamed);
        } else if (head.starts_with("namespace ")) {
          scopes.push_back(Scope::kNamed);
        } else {
          const std::string name = outside && hidden ? function_begun_by(head) : "";
          if (!name.empty()) found.push_back({name, i + 1});
          scopes.push_back(Scope::kOther);
        }
        head.clear();
      } else if (c == '}') {
        if (!scopes.empty()) scopes.pop_back();
        head.clear();
      } else if (c == ';') {
        head.clear();
      } else {
        head += c;
      }
    }
  }
  return found;
}

// Sources that one compiler run may see together: those of a library, its tests apart (a folder is
// one, app/ is with all of its folders); of bench/, where a program is a file or several that begin
// alike, those of a program.
std::string seen_with(const SourceText& source) {
  const std::size_t slash = source.path.rfind('/');
  const bool app = source.path.starts_with("src/app/");
  const std::string folder = app ? "src/app" : source.path.substr(0, slash);
  if (folder == "bench") return source.path.substr(0, source.path.find_first_of("_.", slash));
  return source.path.ends_with("_test.cc") ? folder + " tests" : folder;
}

}  // namespace

Violations same_names(const std::vector<SourceText>& sources) {
  std::map<std::string, std::map<std::string, std::string>> first;  // by group and name: its file
  Violations found;
  for (const SourceText& source : sources) {
    if (!source.path.ends_with(".cc")) continue;
    auto& names = first[seen_with(source)];
    for (const Function& function : hidden_functions(source)) {
      const auto [known, fresh] = names.emplace(function.name, source.path);
      if (fresh || known->second == source.path) continue;
      found.push_back({source.path, function.line, "same-names",
                       function.name + " is also in the unnamed namespace of " + known->second +
                           ": a unity build takes one for the other; rename it or share it"});
    }
  }
  return found;
}

}  // namespace berth::tidy
