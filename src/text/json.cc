#include "text/json.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <string>

#include "base/utf8.h"
#include "text/builder.h"

namespace berth::text {

namespace {

constexpr std::size_t kPadding = 16;  // zero bytes after the text, so that scans need no end test

// Bytes that end the quick scan of a string: quote, backslash, control, not ASCII.
struct StringStops {
  bool stop[256] = {};
  constexpr StringStops() {
    for (int c = 0; c < 256; ++c) stop[c] = c < 0x20 || c == '"' || c == '\\' || c >= 0x80;
  }
};
constexpr StringStops kStringStops;

// The high bit of each byte of the word that is not plain text. A borrow can mark a byte after a
// true one as well, so only the first mark counts.
std::uint64_t string_stop_bits(std::uint64_t w) {
  static_assert(std::endian::native == std::endian::little, "the first byte must be the lowest");
  constexpr std::uint64_t kOnes = 0x0101010101010101u;
  constexpr std::uint64_t kHighs = 0x8080808080808080u;
  const std::uint64_t quote = w ^ (kOnes * '"');
  const std::uint64_t slash = w ^ (kOnes * '\\');
  const std::uint64_t found = (w - kOnes * 0x20) | (quote - kOnes) | (slash - kOnes) | w;
  return found & kHighs;
}

class JsonParser {
 public:
  JsonParser(std::string_view bytes, const JsonOptions& options)
      : builder_(options.limits), line_(options.first_line) {
    char* copy = builder_.arena().allocate<char>(bytes.size() + kPadding);
    if (!bytes.empty()) std::memcpy(copy, bytes.data(), bytes.size());
    std::memset(copy + bytes.size(), 0, kPadding);
    begin(copy, bytes.size());
  }
  JsonParser(std::string& bytes, const JsonOptions& options)
      : builder_(options.limits), line_(options.first_line) {
    const std::size_t size = bytes.size();
    bytes.resize(size + kPadding);
    begin(bytes.data(), size);
  }

  Result<Document> run() {
    skip_space();
    if (p_ == end_) return fail_here("found no value, want one JSON value").take();
    if (!value()) return take();
    skip_space();
    if (p_ != end_) return fail_here("found " + found() + " after the value, want nothing").take();
    return std::move(builder_).finish();
  }

 private:
  void begin(char* text, std::size_t size) {
    text_ = text;
    p_ = text;
    line_start_ = text;
    end_ = text + size;
  }
  bool value();
  bool container();
  bool object_key();
  bool word(std::string_view text);
  bool number();
  bool string(std::string_view& out);
  bool string_rest(const char* start, std::string_view& out);
  bool escape(char*& to);
  bool unicode_escape(char*& to);
  bool hex4(char32_t& out);
  bool utf8_run();

  void skip_space() {
    while (true) {
      const char c = *p_;
      if (c == '\n') {
        ++line_;
        line_start_ = ++p_;
        skip_indent();
      } else if (c == ' ' || c == '\t' || c == '\r') {
        ++p_;
      } else {
        return;
      }
    }
  }
  void skip_indent() {
    constexpr std::uint64_t kSpaces = 0x2020202020202020u;
    std::uint64_t w = 0;
    while (std::memcpy(&w, p_, sizeof(w)), w == kSpaces) p_ += sizeof(w);
  }

  std::string found() const;
  JsonParser& fail_here(const std::string& message) { return fail_at(p_, message); }
  JsonParser& fail_at(const char* at, const std::string& message) {
    if (!error_) {
      error_ = Error(Code::kInvalid, "line " + std::to_string(line_) + " column " +
                                         std::to_string(at - line_start_ + 1) + ": " + message);
    }
    return *this;
  }
  bool no(const std::string& message) { return fail_here(message), false; }
  bool builder_ok();
  Error take() { return std::move(*error_); }

  Builder builder_;
  char* text_ = nullptr;  // ours to write to
  const char* p_ = nullptr;
  const char* end_ = nullptr;
  const char* line_start_ = nullptr;
  int line_ = 1;
  std::string scratch_;  // one character
  std::optional<Error> error_;
};

std::string JsonParser::found() const {
  if (p_ == end_) return "the end of the text";
  const auto byte = static_cast<unsigned char>(*p_);
  if (byte > 0x20 && byte < 0x7f) return std::string("'") + *p_ + "'";
  constexpr char kHex[] = "0123456789abcdef";
  return std::string("byte 0x") + kHex[byte >> 4] + kHex[byte & 15];
}

bool JsonParser::builder_ok() {
  if (!builder_.failed()) return true;
  Error error = builder_.error();
  const bool placed = builder_.failed_line() > 0;
  const int line = placed ? builder_.failed_line() : line_;
  const auto column =
      placed ? static_cast<std::ptrdiff_t>(builder_.failed_column()) : p_ - line_start_ + 1;
  error_ = Error(error.code(), "line " + std::to_string(line) + " column " +
                                   std::to_string(column) + ": " + error.message());
  return false;
}

bool JsonParser::value() {
  switch (*p_) {
    case '{':
    case '[':
      return container();
    case '"': {
      std::string_view text;
      if (!string(text)) return false;
      builder_.string(text, line_);
      break;
    }
    case 't':
      if (!word("true")) return false;
      builder_.boolean(true, line_);
      break;
    case 'f':
      if (!word("false")) return false;
      builder_.boolean(false, line_);
      break;
    case 'n':
      if (!word("null")) return false;
      builder_.null(line_);
      break;
    default:
      if (!number()) return false;
  }
  return !builder_.failed() || builder_ok();
}

// Recursive; the builder refuses a depth over its limit before the stack is in danger.
bool JsonParser::container() {
  const bool object = *p_ == '{';
  const char close = object ? '}' : ']';
  if (object) {
    builder_.begin_object(line_);
  } else {
    builder_.begin_array(line_);
  }
  if (builder_.failed()) return builder_ok();
  ++p_;
  skip_space();
  if (*p_ != close) {
    while (true) {
      if (object && !object_key()) return false;
      if (!value()) return false;
      skip_space();
      if (*p_ != ',') break;
      ++p_;
      skip_space();
    }
    if (*p_ != close) {
      return no("found " + found() + ", want ',' or '" + close + "'");
    }
  }
  ++p_;
  builder_.end();
  return builder_ok();
}

bool JsonParser::object_key() {
  if (*p_ != '"') return no("found " + found() + ", want a key in double quotes");
  const auto column = static_cast<std::uint32_t>(p_ - line_start_ + 1);
  std::string_view key;
  if (!string(key)) return false;
  builder_.key(key, line_, column);
  skip_space();
  if (*p_ != ':') return no("found " + found() + ", want ':' after a key");
  ++p_;
  skip_space();
  return true;
}

bool JsonParser::word(std::string_view text) {
  if (std::memcmp(p_, text.data(), text.size()) != 0) {  // the padding makes this safe
    return no("found a word that is not a JSON value, want true, false or null");
  }
  p_ += text.size();
  return true;
}

bool JsonParser::number() {
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  const char* start = p_;
  const char* p = p_;
  if (*p == '-') ++p;
  if (!digit(*p)) {
    if (p == start) return no("found " + found() + ", want a JSON value");
    return fail_at(p, "want a digit after '-'"), false;
  }
  if (*p == '0' && digit(p[1])) return no("found a number that starts with 0, want no such zeros");
  while (digit(*p)) ++p;
  if (*p == '.') {
    ++p;
    if (!digit(*p)) return fail_at(p, "want a digit after '.'"), false;
    while (digit(*p)) ++p;
  }
  if (*p == 'e' || *p == 'E') {
    ++p;
    if (*p == '+' || *p == '-') ++p;
    if (!digit(*p)) return fail_at(p, "want a digit in the exponent"), false;
    while (digit(*p)) ++p;
  }
  p_ = p;
  builder_.number({start, static_cast<std::size_t>(p - start)}, line_);
  return true;
}

bool JsonParser::string(std::string_view& out) {
  const char* start = p_ + 1;
  const char* p = start;
  while (true) {
    std::uint64_t w = 0;
    std::memcpy(&w, p, sizeof(w));  // the zero padding ends the loop
    const std::uint64_t stops = string_stop_bits(w);
    if (stops != 0) {
      p += std::countr_zero(stops) >> 3;
      break;
    }
    p += sizeof(w);
  }
  p_ = p;
  if (*p == '"') {
    out = {start, static_cast<std::size_t>(p - start)};
    ++p_;
    return true;
  }
  return string_rest(start, out);
}

// A string with escapes or with characters that are not ASCII; p_ is at the first of them. What an
// escape stands for is never longer than the escape, so it is written where the string stands.
bool JsonParser::string_rest(const char* start, std::string_view& out) {
  char* to = text_ + (start - text_);
  const char* run = start;  // what is not yet at its place
  const auto settle = [&] {
    const auto size = static_cast<std::size_t>(p_ - run);
    if (to != run) std::memmove(to, run, size);
    to += size;
  };
  while (true) {
    const auto c = static_cast<unsigned char>(*p_);
    if (!kStringStops.stop[c]) {
      ++p_;
    } else if (c == '"') {
      break;
    } else if (c >= 0x80) {
      if (!utf8_run()) return false;
    } else if (c == '\\') {
      settle();
      if (!escape(to)) return false;
      run = p_;
    } else if (p_ == end_) {
      return no("found the end of the text inside a string");
    } else {
      return no("found control character " + found() + " in a string, want it escaped");
    }
  }
  settle();
  out = {start, static_cast<std::size_t>(to - start)};
  ++p_;
  return true;
}

bool JsonParser::utf8_run() {
  while (static_cast<unsigned char>(*p_) >= 0x80) {
    const Utf8Char c = decode_utf8({p_, static_cast<std::size_t>(end_ - p_)});
    if (!c.valid) return no("found " + found() + ", which is not valid UTF-8");
    p_ += c.size;
  }
  return true;
}

bool JsonParser::escape(char*& to) {
  switch (p_[1]) {
    case '"':
    case '\\':
    case '/':
      *to++ = p_[1];
      break;
    case 'b':
      *to++ = '\b';
      break;
    case 'f':
      *to++ = '\f';
      break;
    case 'n':
      *to++ = '\n';
      break;
    case 'r':
      *to++ = '\r';
      break;
    case 't':
      *to++ = '\t';
      break;
    case 'u':
      return unicode_escape(to);
    default:
      ++p_;
      return no("found " + found() + " after a backslash, want one of \" \\ / b f n r t u");
  }
  p_ += 2;
  return true;
}

bool JsonParser::hex4(char32_t& out) {
  out = 0;
  for (int i = 0; i < 4; ++i) {
    const char c = *p_;
    int digit = 0;
    if (c >= '0' && c <= '9') {
      digit = c - '0';
    } else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f') {
      digit = (c | 0x20) - 'a' + 10;
    } else {
      return no("found " + found() + " in a \\u escape, want four hexadecimal digits");
    }
    out = out << 4 | static_cast<char32_t>(digit);
    ++p_;
  }
  return true;
}

bool JsonParser::unicode_escape(char*& to) {
  const char* start = p_;
  p_ += 2;
  char32_t code = 0;
  if (!hex4(code)) return false;
  if (code >= 0xd800 && code < 0xe000) {
    char32_t low = 0;
    const bool pair = code < 0xdc00 && p_[0] == '\\' && p_[1] == 'u';
    if (pair) {
      p_ += 2;
      if (!hex4(low)) return false;
    }
    if (!pair || low < 0xdc00 || low >= 0xe000) {
      return fail_at(start, "found half of a surrogate pair, want both halves"), false;
    }
    code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
  }
  scratch_.clear();
  append_utf8(scratch_, code);
  to = std::copy(scratch_.begin(), scratch_.end(), to);
  return true;
}

Status check_size(std::size_t bytes, const Limits& limits) {
  const std::size_t most = std::min<std::size_t>(limits.max_bytes, 0xffff'ffffu);
  if (bytes <= most) return {};
  return Error(Code::kExhausted,
               "found " + std::to_string(bytes) + " bytes, want at most " + std::to_string(most));
}

}  // namespace

Result<Document> parse_json(std::string_view bytes, const JsonOptions& options) {
  BERTH_CHECK(check_size(bytes.size(), options.limits));
  return JsonParser(bytes, options).run();
}

Result<Document> parse_json_in_place(std::string& bytes, const JsonOptions& options) {
  BERTH_CHECK(check_size(bytes.size(), options.limits));
  return JsonParser(bytes, options).run();
}

}  // namespace berth::text
