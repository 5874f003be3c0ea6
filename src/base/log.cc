#include "base/log.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <iterator>

#include "base/check.h"
#include "base/utf8.h"

namespace berth {
namespace {

constexpr std::size_t kRoomForCutNote = 48;  // `,"fields_left_out":18446744073709551615}` and spare
constexpr std::size_t kMaxKeyBytes = 64;

template <class... Args>
void append_format(std::string& out, fmt::format_string<Args...> format, Args&&... args) {
  fmt::format_to(std::back_inserter(out), format, std::forward<Args>(args)...);
}

void append_timestamp(std::string& out, std::int64_t now_ns) {
  using namespace std::chrono;
  auto since_epoch = floor<milliseconds>(nanoseconds(now_ns));
  auto day = floor<days>(since_epoch);
  year_month_day date{sys_days(day)};
  hh_mm_ss time(since_epoch - day);
  append_format(out, "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", static_cast<int>(date.year()),
                static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                time.hours().count(), time.minutes().count(), time.seconds().count(),
                time.subseconds().count());
}

void append_escaped_char(std::string& out, std::string_view text, const Utf8Char& next,
                         LogFormat format) {
  if (!next.valid) {
    if (format == LogFormat::kJson) {
      out += "\\ufffd";
    } else {
      append_format(out, "\\x{:02x}", static_cast<unsigned char>(text[0]));
    }
  } else if (next.code == '"' || next.code == '\\') {
    out += '\\';
    out += text[0];
  } else if (next.code == '\n') {
    out += "\\n";
  } else if (next.code == '\t') {
    out += "\\t";
  } else if (is_unprintable(next.code)) {  // all of them lie below U+10000
    append_format(out, "\\u{:04x}", static_cast<std::uint32_t>(next.code));
  } else {
    out.append(text.substr(0, next.size));
  }
}

// In quotes; cut between characters once `limit` bytes are written, saying how many were left.
void append_quoted(std::string& out, std::string_view text, std::size_t limit, LogFormat format) {
  out += '"';
  std::size_t start = out.size();
  while (!text.empty()) {
    Utf8Char next = decode_utf8(text);
    std::size_t before = out.size();
    append_escaped_char(out, text, next, format);
    if (out.size() - start > limit) {
      out.resize(before);
      append_format(out, "...(+{} bytes)", text.size());
      break;
    }
    text.remove_prefix(next.size);
  }
  out += '"';
}

bool reads_as_one_word(std::string_view text) {
  if (text.empty()) return false;
  for (char c : text) {
    bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                 std::string_view("-_./:+@%,").find(c) != std::string_view::npos;
    if (!plain) return false;
  }
  return true;
}

// Keys are ours, yet a key that came from elsewhere must not forge a field either.
void append_key(std::string& out, std::string_view key) {
  if (key.empty()) out += '_';
  for (char c : key.substr(0, kMaxKeyBytes)) {
    bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                 c == '_' || c == '-' || c == '.' || c == '/';
    out += plain ? c : '_';
  }
}

void append_value(std::string& out, const LogField::Value& value, const LogOptions& options) {
  if (const auto* text = std::get_if<std::string_view>(&value)) {
    bool bare = options.format == LogFormat::kText && text->size() <= options.max_value_bytes &&
                reads_as_one_word(*text);
    if (bare) {
      out += *text;
    } else {
      append_quoted(out, *text, options.max_value_bytes, options.format);
    }
  } else if (const auto* number = std::get_if<double>(&value)) {
    bool quoted = options.format == LogFormat::kJson && !std::isfinite(*number);  // JSON has no NaN
    append_format(out, "{0}{1}{0}", quoted ? "\"" : "", *number);
  } else if (const auto* whole = std::get_if<std::int64_t>(&value)) {
    append_format(out, "{}", *whole);
  } else if (const auto* natural = std::get_if<std::uint64_t>(&value)) {
    append_format(out, "{}", *natural);
  } else {
    out += std::get<bool>(value) ? "true" : "false";
  }
}

void append_field(std::string& out, const LogField& field, const LogOptions& options) {
  bool json = options.format == LogFormat::kJson;
  out += json ? ",\"" : " ";
  append_key(out, field.key());
  out += json ? "\":" : "=";
  append_value(out, field.value(), options);
}

std::string_view short_name(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return "DEBUG";
    case LogLevel::kInfo:
      return "INFO";
    case LogLevel::kWarn:
      return "WARN";
    case LogLevel::kError:
      return "ERROR";
  }
  return "?";
}

}  // namespace

std::string_view name(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return "debug";
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kWarn:
      return "warn";
    case LogLevel::kError:
      return "error";
  }
  return "unknown";
}

Logger::Logger(LogSink& sink, const WallClock& clock, LogOptions options)
    : sink_(sink), clock_(clock), options_(options) {
  BERTH_ASSERT(options.max_line_bytes >= 256, "a line must hold its time, level and message");
}

void Logger::log(LogLevel level, std::string_view message, std::span<const LogField> fields) const {
  if (!enabled(level)) return;
  bool json = options_.format == LogFormat::kJson;
  std::string line;
  line.reserve(256);
  if (json) line += "{\"ts\":\"";
  append_timestamp(line, clock_.now_ns());
  line += json ? "\",\"level\":\"" : " ";
  line += json ? name(level) : short_name(level);
  line += json ? "\",\"msg\":" : " ";
  append_quoted(line, message, options_.max_line_bytes / 4, options_.format);

  std::size_t left_out = 0;
  for (const LogField& field : fields) {
    std::size_t before = line.size();
    append_field(line, field, options_);
    if (line.size() + kRoomForCutNote > options_.max_line_bytes) {
      line.resize(before);
      ++left_out;
    }
  }
  if (left_out > 0) append_field(line, {"fields_left_out", left_out}, options_);
  if (json) line += '}';
  sink_.write(level, line);
}

}  // namespace berth
