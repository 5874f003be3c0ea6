#include "kinds/schema/regex.h"

#include <re2/re2.h>

#include <algorithm>
#include <string>

namespace berth::sim {
namespace {

constexpr std::int64_t kMostMemory = 1
                                     << 20;  // of a program and of what it remembers while it runs

// As Go has it: a named group may be (?<name>...) too, and there is no \C.
Result<std::string> as_re2(std::string_view pattern) {
  std::string out;
  bool in_class = false;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    out += c;
    if (c == '\\' && i + 1 < pattern.size()) {
      out += pattern[++i];
      if (pattern[i] == 'C' && !in_class)
        return invalid(
            "must be a valid regular expression, but isn't: invalid escape sequence: `\\C`");
      if (pattern[i] != 'Q' || in_class) continue;
      const std::size_t end = std::min(pattern.find("\\E", i), pattern.size());
      out.append(pattern.substr(i + 1, end - i - 1));
      i = end - 1;
    } else if (c == '[' && !in_class) {
      in_class = true;
      if (pattern.substr(i + 1, 1) == "^") out += pattern[++i];
      if (pattern.substr(i + 1, 1) == "]") out += pattern[++i];
    } else if (c == ']') {
      in_class = false;
    } else if (c == '(' && !in_class && pattern.substr(i + 1, 2) == "?<") {
      out += "?P<";
      i += 2;
    }
  }
  return out;
}

}  // namespace

Result<Regex> Regex::compile(std::string_view pattern, std::int64_t& work) {
  BERTH_TRY(const std::string text, as_re2(pattern));
  work -= static_cast<std::int64_t>(text.size());
  if (work < 0) return Error{Code::kExhausted, "the patterns are too large"};
  RE2::Options options;
  options.set_log_errors(false);
  options.set_never_capture(true);
  options.set_max_mem(kMostMemory);
  auto program = std::make_shared<const RE2>(text, options);
  if (!program->ok()) {
    return invalid("must be a valid regular expression, but isn't: " + program->error());
  }
  work -= program->ProgramSize();
  if (work < 0) return Error{Code::kExhausted, "the patterns are too large"};
  Regex out;
  out.program_ = std::move(program);
  return out;
}

Result<Regex> Regex::compile(std::string_view pattern) {
  std::int64_t work = kCompileWork;
  return compile(pattern, work);
}

bool Regex::matches(std::string_view text, std::int64_t& work) const {
  work -= (static_cast<std::int64_t>(text.size()) + 1) * program_->ProgramSize();
  return work >= 0 && RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), *program_);
}

bool Regex::matches(std::string_view text) const {
  std::int64_t work = kMatchWork;
  return matches(text, work);
}

}  // namespace berth::sim
