#include "text/json_writer.h"

#include <charconv>
#include <cmath>

#include "base/check.h"
#include "base/utf8.h"

namespace berth::text {

namespace {

void writer_misuse(const char* what) { BERTH_ASSERT(false, what); }

bool plain_in_json(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x20 && byte < 0x7f && c != '"' && c != '\\';
}

void append_escape(std::string& out, unsigned code) {
  constexpr char kHex[] = "0123456789abcdef";
  switch (code) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    case '\b':
      out += "\\b";
      return;
    case '\f':
      out += "\\f";
      return;
    default:
      break;
  }
  out += "\\u";
  for (int shift = 12; shift >= 0; shift -= 4) out += kHex[code >> shift & 0xf];
}

template <class T>
void append_number(std::string& out, T v) {
  char buffer[40];
  const auto [end, code] = std::to_chars(buffer, buffer + sizeof(buffer), v);
  out.append(buffer, end);
}

}  // namespace

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  std::size_t i = 0;
  while (i < text.size()) {
    const std::size_t start = i;
    while (i < text.size() && plain_in_json(text[i])) ++i;
    out.append(text.substr(start, i - start));
    if (i == text.size()) break;
    const Utf8Char c = decode_utf8(text.substr(i));
    if (!c.valid) {
      append_utf8(out, U'\uFFFD');
    } else if (c.code < 0x80 || c.code == 0x2028 || c.code == 0x2029) {
      append_escape(out, static_cast<unsigned>(c.code));  // the last two end a line in JavaScript
    } else {
      out.append(text.substr(i, c.size));
    }
    i += c.size;
  }
  out += '"';
}

void JsonWriter::new_line() {
  if (style_.indent <= 0) return;
  out_ += '\n';
  out_.append(open_.size() * static_cast<std::size_t>(style_.indent), ' ');
}

void JsonWriter::before_value() {
  if (open_.empty()) {
    if (!out_.empty()) writer_misuse("a second value at the top");
    return;
  }
  Level& level = open_.back();
  if (level.bracket == '{') {
    if (!level.has_key) writer_misuse("a value without a key in an object");
    level.has_key = false;
    return;
  }
  if (!level.empty) out_ += ',';
  level.empty = false;
  new_line();
}

void JsonWriter::key(std::string_view name) {
  if (open_.empty() || open_.back().bracket != '{') writer_misuse("a key outside of an object");
  Level& level = open_.back();
  if (level.has_key) writer_misuse("a key after a key");
  if (!level.empty) out_ += ',';
  level.empty = false;
  level.has_key = true;
  new_line();
  append_json_string(out_, name);
  out_ += style_.indent > 0 ? ": " : ":";
}

void JsonWriter::open(char bracket) {
  before_value();
  out_ += bracket;
  open_.push_back({bracket});
}

void JsonWriter::close(char bracket) {
  const char opening = bracket == '}' ? '{' : '[';
  if (open_.empty() || open_.back().bracket != opening) writer_misuse("an end without its begin");
  if (open_.back().has_key) writer_misuse("a key without a value");
  const bool empty = open_.back().empty;
  open_.pop_back();
  if (!empty) new_line();
  out_ += bracket;
}

void JsonWriter::null() { raw("null"); }
void JsonWriter::value(bool v) { raw(v ? "true" : "false"); }

void JsonWriter::value(std::int64_t v) {
  before_value();
  append_number(out_, v);
}

void JsonWriter::value(std::uint64_t v) {
  before_value();
  append_number(out_, v);
}

void JsonWriter::value(double v) {
  if (!std::isfinite(v)) writer_misuse("a double that is not finite");
  before_value();
  append_number(out_, v);
}

void JsonWriter::value(std::string_view v) {
  before_value();
  append_json_string(out_, v);
}

void JsonWriter::raw(std::string_view json) {
  before_value();
  out_ += json;
}

void JsonWriter::value(const Value& v) {
  switch (v.kind()) {
    case Kind::kNull:
      return null();
    case Kind::kBool:
      return value(v.as_bool());
    case Kind::kNumber:
      return raw(v.number_text());
    case Kind::kString:
      return value(v.string());
    case Kind::kArray:
      return list(v.items());
    case Kind::kObject:
      return object([&] {
        for (const Member& member : v.members()) field(member.key, member.value);
      });
  }
}

}  // namespace berth::text
