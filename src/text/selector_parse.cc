// The string forms of selectors; what a selector means is in selector.cc.
#include <algorithm>

#include "text/escape.h"
#include "text/selector.h"

namespace berth::text {

namespace {

std::string shown_term(std::string_view text) {
  return "\"" + elide_middle(terminal_safe(text.substr(0, 256)), 60) + "\"";
}

// The string form of label selectors, as tokens: words and , = == != > < ! ( ).
class SelectorText {
 public:
  SelectorText(std::string_view text, SelectorKind kind) : rest_(text), kind_(kind) {}

  Result<Selector> run();

 private:
  static bool special(char c) { return std::string_view(",=!()><").find(c) != std::string::npos; }
  static bool space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

  void skip_space() {
    while (!rest_.empty() && space(rest_.front())) rest_.remove_prefix(1);
  }
  bool take(std::string_view token) {
    skip_space();
    if (!rest_.starts_with(token)) return false;
    rest_.remove_prefix(token.size());
    return true;
  }
  std::string_view word() {
    skip_space();
    std::size_t n = 0;
    while (n < rest_.size() && !special(rest_[n]) && !space(rest_[n])) ++n;
    const std::string_view out = rest_.substr(0, n);
    rest_.remove_prefix(n);
    return out;
  }
  std::string found() {
    skip_space();
    return rest_.empty() ? "the end" : shown_term(rest_);
  }
  Result<Requirement> requirement();
  Status operation(Requirement& out);
  Status value_set(Requirement& out);

  std::string_view rest_;
  SelectorKind kind_;
};

Status SelectorText::value_set(Requirement& out) {
  if (!take("(")) return invalid("found " + found() + ", want '(' and the values");
  while (true) {
    out.values.emplace_back(word());  // may be empty: "in (,a)" has an empty value
    if (take(")")) break;
    if (!take(",")) return invalid("found " + found() + ", want ',' or ')'");
  }
  std::sort(out.values.begin(), out.values.end());
  out.values.erase(std::unique(out.values.begin(), out.values.end()), out.values.end());
  return {};
}

Status SelectorText::operation(Requirement& out) {
  skip_space();
  if (rest_.empty() || rest_.front() == ',') {
    out.op = Operator::kExists;
    return {};
  }
  if (take("!=")) {
    out.op = Operator::kNotIn;
  } else if (take("==") || take("=")) {
    out.op = Operator::kIn;
  } else if (take(">")) {
    out.op = Operator::kGt;
  } else if (take("<")) {
    out.op = Operator::kLt;
  } else {
    const std::string_view before = rest_;
    const std::string_view op = word();
    if (op == "in" || op == "notin") {
      out.op = op == "in" ? Operator::kIn : Operator::kNotIn;
      return value_set(out);
    }
    return invalid("found " + shown_term(before) + " after key " + shown_term(out.key) +
                   ", want one of = == != in notin > < or ','");
  }
  out.values.emplace_back(word());
  return {};
}

Result<Requirement> SelectorText::requirement() {
  Requirement out;
  const bool absent = take("!");
  out.key = word();
  if (out.key.empty()) return invalid("found " + found() + ", want a key");
  if (absent) {
    out.op = Operator::kDoesNotExist;
  } else {
    BERTH_CHECK(operation(out));
  }
  BERTH_CHECK(validate(out, kind_));
  return out;
}

Result<Selector> SelectorText::run() {
  Selector out;
  skip_space();
  if (rest_.empty()) return out;
  while (true) {
    BERTH_TRY(Requirement one, requirement());
    out.push_back(std::move(one));
    skip_space();
    if (rest_.empty()) return out;
    if (!take(",")) return invalid("found " + found() + ", want ','");
  }
}

// Up to an unescaped , or the end; the escapes undone.
Result<std::string> field_value(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
      if (i == text.size() || (text[i] != ',' && text[i] != '=' && text[i] != '\\')) {
        return invalid("found " + shown_term(text) + ", want , = or \\ after a backslash");
      }
    } else if (text[i] == ',' || text[i] == '=') {
      return invalid("found " + shown_term(text) + ", want a backslash before , and =");
    }
    out += text[i];
  }
  return out;
}

Result<Requirement> field_requirement(std::string_view term) {
  const std::size_t at = term.find_first_of("=!");
  Requirement out;
  if (at == std::string_view::npos) {
    return invalid("found " + shown_term(term) + ", want field=value or field!=value");
  }
  const std::string_view op = term.substr(at);
  std::size_t length = 1;
  if (op.starts_with("!=") || op.starts_with("==")) {
    length = 2;
  } else if (!op.starts_with("=")) {
    return invalid("found " + shown_term(term) + ", want field=value or field!=value");
  }
  out.key = term.substr(0, at);
  out.op = op.starts_with("!") ? Operator::kNotIn : Operator::kIn;
  BERTH_TRY(std::string value, field_value(op.substr(length)));
  out.values.push_back(std::move(value));
  BERTH_CHECK(validate(out, SelectorKind::kField));
  return out;
}

}  // namespace

Result<Selector> parse_label_selector(std::string_view text, SelectorKind kind) {
  return SelectorText(text, kind).run();
}

Result<Selector> parse_field_selector(std::string_view text) {
  Selector out;
  std::size_t start = 0;
  if (text.empty()) return out;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && text[i] == '\\') {
      ++i;  // the next is escaped; past the end the loop stops below
      if (i < text.size()) continue;
    }
    if (i < text.size() && text[i] != ',') continue;
    const std::string_view term = text.substr(start, std::min(i, text.size()) - start);
    start = i + 1;
    if (term.empty()) continue;  // "a=b," is allowed, as in Kubernetes
    BERTH_TRY(Requirement one, field_requirement(term));
    out.push_back(std::move(one));
  }
  return out;
}

}  // namespace berth::text
