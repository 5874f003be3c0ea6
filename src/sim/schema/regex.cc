#include "sim/schema/regex.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <string>

namespace berth::sim {
namespace {

constexpr std::size_t kMostSteps = 10'000;
constexpr int kDeepestGroup = 500;

// The next code point; an invalid byte stands for itself.
char32_t next_rune(std::string_view text, std::size_t& at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(at++);
  if (first < 0x80) return first;
  const int more = first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : first >= 0xc0 ? 1 : 0;
  if (more == 0 || at + static_cast<std::size_t>(more) > text.size()) return first;
  char32_t rune = first & (0x3fu >> more);
  for (int i = 0; i < more; ++i) {
    if ((byte(at + static_cast<std::size_t>(i)) & 0xc0) != 0x80) return first;
    rune = (rune << 6) | (byte(at + static_cast<std::size_t>(i)) & 0x3fu);
  }
  at += static_cast<std::size_t>(more);
  return rune;
}

using Ranges = std::vector<std::pair<char32_t, char32_t>>;

// What \d, \w, \s and their opposites stand for; false for other letters.
bool perl_class(char letter, Ranges& out) {
  static const Ranges kDigit = {{'0', '9'}};
  static const Ranges kWord = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
  static const Ranges kSpace = {{'\t', '\n'}, {'\f', '\r'}, {' ', ' '}};
  const char lower = static_cast<char>(letter | 0x20);
  const Ranges* base = lower == 'd'   ? &kDigit
                       : lower == 'w' ? &kWord
                       : lower == 's' ? &kSpace
                                      : nullptr;
  if (base == nullptr) return false;
  if (letter == lower) {
    out.insert(out.end(), base->begin(), base->end());
    return true;
  }
  char32_t from = 0;
  for (const auto& [low, high] : *base) {
    if (from < low) out.emplace_back(from, low - 1);
    from = high + 1;
  }
  out.emplace_back(from, 0x10ffff);
  return true;
}

}  // namespace

// Recursive descent over the pattern; steps are emitted as fragments that end by falling through.
class RegexCompiler {
 public:
  RegexCompiler(std::string_view pattern, std::int64_t& work) : pattern_(pattern), work_(work) {}

  Result<Regex> run() {
    alternatives(0);
    if (error_.empty() && at_ < pattern_.size()) fail("unmatched )");
    if (!error_.empty()) {
      return invalid("pattern: " + error_ + " at byte " + std::to_string(at_));
    }
    emit({Regex::Op::kMatch});
    return std::move(regex_);
  }

 private:
  using Op = Regex::Op;
  using Step = Regex::Step;

  bool done() const { return at_ >= pattern_.size() || !error_.empty(); }
  char peek() const { return pattern_[at_]; }
  bool take(char c) {
    if (done() || peek() != c) return false;
    ++at_;
    return true;
  }
  void fail(std::string what) {
    if (error_.empty()) error_ = std::move(what);
  }
  std::uint32_t here() const { return static_cast<std::uint32_t>(regex_.steps_.size()); }
  std::uint32_t emit(Step step) {
    if (regex_.steps_.size() >= kMostSteps || --work_ < 0) {
      fail("too large");
      return 0;
    }
    regex_.steps_.push_back(step);
    return here() - 1;
  }

  // Makes room for one step before `first` and moves the targets behind it.
  void insert_before(std::uint32_t first, Step step) {
    emit({});
    if (!error_.empty()) return;
    auto& steps = regex_.steps_;
    work_ -= static_cast<std::int64_t>(steps.size() - first);
    for (std::size_t i = steps.size() - 1; i > first; --i) steps[i] = steps[i - 1];
    steps[first] = {};
    for (std::size_t i = first + 1; i < steps.size(); ++i) shift(steps[i], first);
    steps[first] = step;
  }
  static void shift(Step& step, std::uint32_t first) {
    if (step.op != Op::kSplit && step.op != Op::kJump) return;
    if (step.x >= first) ++step.x;
    if (step.y >= first) ++step.y;
  }

  void alternatives(int depth) {
    if (depth > kDeepestGroup) return fail("nested too deeply");
    const std::uint32_t first = here();
    sequence(depth);
    if (!take('|')) return;
    insert_before(first, {Op::kSplit});
    const std::uint32_t jump = emit({Op::kJump});
    if (!error_.empty()) return;
    regex_.steps_[first].x = first + 1;
    regex_.steps_[first].y = here();
    alternatives(depth + 1);
    if (error_.empty()) regex_.steps_[jump].x = here();
  }

  void sequence(int depth) {
    while (!done() && peek() != '|' && peek() != ')') {
      const std::uint32_t first = here();
      atom(depth);
      if (!done() && repeat(first)) refuse_nested();
    }
  }

  // As RE2: what is repeated twice is put in a group.
  void refuse_nested() {
    if (done()) return;
    std::uint32_t least = 0;
    std::uint32_t most = 0;
    if (peek() == '*' || peek() == '+' || peek() == '?' || (peek() == '{' && counts(least, most))) {
      fail("a repeat of a repeat");
    }
  }

  void atom(int depth) {
    const char c = pattern_[at_++];
    switch (c) {
      case '(':
        return group(depth);
      case '[':
        return char_class();
      case '.':
        emit({Op::kAny});
        return;
      case '^':
        emit({Op::kBegin});
        return;
      case '$':
        emit({Op::kEnd});
        return;
      case '\\':
        return escape();
      case '*':
      case '+':
      case '?':
        return fail("nothing to repeat");
      default:
        break;
    }
    --at_;
    const char32_t rune = next_rune(pattern_, at_);
    one_class({{rune, rune}}, false);
  }

  void group(int depth) {
    if (take('?')) {
      if (take('P') || (!done() && peek() == '<')) {
        if (!take('<')) return fail("unknown group");
        while (!done() && peek() != '>') ++at_;
        if (!take('>')) return fail("unclosed name");
      } else if (!take(':')) {
        return fail("flags are not known");
      }
    }
    alternatives(depth + 1);
    if (!take(')')) fail("missing )");
  }

  // Ranges in order, so that a character is looked up in few steps.
  void one_class(Ranges ranges, bool negated) {
    std::sort(ranges.begin(), ranges.end());
    std::size_t kept = 0;
    for (std::size_t i = 1; i < ranges.size(); ++i) {
      if (ranges[i].first <= ranges[kept].second + 1) {
        ranges[kept].second = std::max(ranges[kept].second, ranges[i].second);
      } else {
        ranges[++kept] = ranges[i];
      }
    }
    ranges.resize(std::min(kept + 1, ranges.size()));
    const auto from = static_cast<std::uint32_t>(regex_.ranges_.size());
    regex_.ranges_.insert(regex_.ranges_.end(), ranges.begin(), ranges.end());
    if (regex_.ranges_.size() > kMostSteps) return fail("too large");
    emit({Op::kClass, negated, from, static_cast<std::uint32_t>(regex_.ranges_.size())});
  }

  void escape() {
    if (done()) return fail("trailing backslash");
    const char c = peek();
    Ranges ranges;
    if (perl_class(c, ranges)) {
      ++at_;
      return one_class(ranges, false);
    }
    if (c == 'A' || c == 'z') {
      ++at_;
      emit({c == 'A' ? Op::kBegin : Op::kEnd});
      return;
    }
    const char32_t rune = escaped();
    one_class({{rune, rune}}, false);
  }

  // The character after a backslash.
  char32_t escaped() {
    const char c = pattern_[at_++];
    switch (c) {
      case 'n':
        return '\n';
      case 't':
        return '\t';
      case 'r':
        return '\r';
      case 'f':
        return '\f';
      case 'v':
        return '\v';
      case 'x':
        return hex();
      default:
        break;
    }
    const bool word = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (word) fail(std::string("\\") + c + " is not known");
    return static_cast<unsigned char>(c);
  }

  char32_t hex() {
    char32_t value = 0;
    const bool braces = take('{');
    int digits = 0;
    while (!done() && digits < (braces ? 6 : 2)) {
      const char c = peek();
      const int digit = c >= '0' && c <= '9'   ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
      if (digit < 0) break;
      value = value * 16 + static_cast<char32_t>(digit);
      ++at_;
      ++digits;
    }
    if (digits == 0 || (braces && !take('}'))) fail("bad \\x");
    return value;
  }

  void char_class() {
    const bool negated = take('^');
    Ranges ranges;
    bool first = true;
    while (!done() && (first || peek() != ']')) {
      first = false;
      if (pattern_.substr(at_).starts_with("[:")) return fail("[:class:] is not known");
      if (peek() == '\\' && at_ + 1 < pattern_.size() && perl_class(pattern_[at_ + 1], ranges)) {
        at_ += 2;
        continue;
      }
      const char32_t low = class_rune();
      char32_t high = low;
      if (!done() && peek() == '-' && at_ + 1 < pattern_.size() && pattern_[at_ + 1] != ']') {
        ++at_;
        high = class_rune();
      }
      if (high < low) return fail("bad range");
      ranges.emplace_back(low, high);
    }
    if (!take(']')) return fail("missing ]");
    one_class(ranges, negated);
  }

  char32_t class_rune() {
    if (take('\\')) {
      if (done()) {
        fail("trailing backslash");
        return 0;
      }
      return escaped();
    }
    return next_rune(pattern_, at_);
  }

  bool repeat(std::uint32_t first) {
    std::uint32_t least = 0;
    std::uint32_t most = 0;  // 0: no bound
    const char c = peek();
    if (c == '*' || c == '+' || c == '?') {
      ++at_;
      least = c == '+' ? 1 : 0;
      most = c == '?' ? 1 : 0;
    } else if (c != '{' || !counts(least, most)) {
      return false;
    }
    take('?');
    if (error_.empty()) expand(first, least, most, c == '{');
    return error_.empty();
  }

  bool counts(std::uint32_t& least, std::uint32_t& most) {
    std::size_t i = at_ + 1;
    const auto number = [&](std::uint32_t& out) {
      const std::size_t from = i;
      out = 0;
      while (i < pattern_.size() && pattern_[i] >= '0' && pattern_[i] <= '9' && out <= 10'000) {
        out = out * 10 + static_cast<std::uint32_t>(pattern_[i++] - '0');
      }
      return i > from;
    };
    if (!number(least)) return literal_brace();
    most = least;
    bounded_ = true;
    if (i < pattern_.size() && pattern_[i] == ',') {
      ++i;
      bounded_ = number(most);
    }
    if (i >= pattern_.size() || pattern_[i] != '}') return literal_brace();
    at_ = i + 1;
    if (least > 1000 || (bounded_ && (most > 1000 || most < least))) {
      fail("bad repeat count");
      return false;
    }
    return true;
  }
  bool literal_brace() { return false; }

  // The fragment [first, here) repeated: copies for the counted part, then a loop or options.
  void expand(std::uint32_t first, std::uint32_t least, std::uint32_t most, bool counted) {
    const std::vector<Step> body(regex_.steps_.begin() + first, regex_.steps_.end());
    work_ -= static_cast<std::int64_t>(body.size()) + 1;
    const bool endless = counted ? !bounded_ : most == 0;
    regex_.steps_.resize(first);
    for (std::uint32_t i = 0; i < least; ++i) copy(body, first);
    if (endless) {
      const std::uint32_t split = emit({Op::kSplit});
      copy(body, first);
      const std::uint32_t jump = emit({Op::kJump});
      if (!error_.empty()) return;
      regex_.steps_[split].x = split + 1;
      regex_.steps_[split].y = here();
      regex_.steps_[jump].x = split;
      return;
    }
    for (std::uint32_t i = least; i < most && error_.empty(); ++i) {
      const std::uint32_t split = emit({Op::kSplit});
      copy(body, first);
      if (!error_.empty()) return;
      regex_.steps_[split].x = split + 1;
      regex_.steps_[split].y = here();
    }
  }

  void copy(const std::vector<Step>& body, std::uint32_t first) {
    const std::uint32_t to = here();
    copied_ += body.size();
    if (copied_ > 10 * kMostSteps) return fail("too large");
    for (Step step : body) {
      if (step.op == Op::kSplit || step.op == Op::kJump) {
        step.x = step.x - first + to;
        step.y = step.y - first + to;
      }
      emit(step);
      if (!error_.empty()) return;
    }
  }

  std::string_view pattern_;
  std::int64_t& work_;
  std::size_t at_ = 0;
  bool bounded_ = false;
  std::size_t copied_ = 0;  // steps, by repeats within repeats
  std::string error_;
  Regex regex_;
};

Result<Regex> Regex::compile(std::string_view pattern, std::int64_t& work) {
  return RegexCompiler(pattern, work).run();
}
Result<Regex> Regex::compile(std::string_view pattern) {
  std::int64_t work = kCompileWork;
  return compile(pattern, work);
}

struct Regex::Walk {
  std::vector<std::uint32_t> seen, stack;
  std::uint32_t round = 0;
  std::int64_t& work;
};

// Adds a step and what follows from it without reading; a stack instead of recursion.
void Regex::follow(std::uint32_t at, bool begin, bool end, std::vector<std::uint32_t>& list,
                   Walk& walk) const {
  auto& stack = walk.stack;
  stack.assign(1, at);
  while (!stack.empty()) {
    const std::uint32_t now = stack.back();
    stack.pop_back();
    if (walk.seen[now] == walk.round) continue;
    walk.seen[now] = walk.round;
    --walk.work;
    const Step& step = steps_[now];
    switch (step.op) {
      case Op::kSplit:
        walk.stack.push_back(step.y);
        walk.stack.push_back(step.x);
        break;
      case Op::kJump:
        walk.stack.push_back(step.x);
        break;
      case Op::kBegin:
        if (begin) walk.stack.push_back(now + 1);
        break;
      case Op::kEnd:
        if (end) walk.stack.push_back(now + 1);
        break;
      default:
        list.push_back(now);
    }
  }
}

bool Regex::takes(const Step& step, char32_t rune) const {
  if (step.op == Op::kAny) return rune != '\n';
  if (step.op != Op::kClass) return false;
  const auto first = ranges_.begin() + step.x, last = ranges_.begin() + step.y;
  const auto found =
      std::partition_point(first, last, [rune](const auto& range) { return range.second < rune; });
  return (found != last && found->first <= rune) != step.negated;
}

bool Regex::matches(std::string_view text, std::int64_t& work) const {
  std::vector<std::uint32_t> now;
  std::vector<std::uint32_t> next;
  Walk walk{std::vector<std::uint32_t>(steps_.size(), 0), {}, 0, work};
  std::size_t at = 0;
  while (true) {
    if (at == 0) ++walk.round;
    follow(0, at == 0, at == text.size(), now, walk);
    for (const std::uint32_t step : now) {
      if (steps_[step].op == Op::kMatch) return true;
    }
    work -= 1 + static_cast<std::int64_t>(now.size());
    if (at >= text.size() || work < 0) return false;
    const char32_t rune = next_rune(text, at);
    ++walk.round;
    next.clear();
    for (const std::uint32_t index : now) {
      if (takes(steps_[index], rune)) follow(index + 1, false, at == text.size(), next, walk);
    }
    now.swap(next);
  }
}

bool Regex::matches(std::string_view text) const {
  std::int64_t work = kMatchWork;
  return matches(text, work);
}

}  // namespace berth::sim
