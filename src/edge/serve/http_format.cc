#include "edge/serve/http_format.h"

#include <array>
#include <charconv>
#include <cstdio>
#include <ctime>

namespace berth::serve {
namespace {

bool same_name(std::string_view a, std::string_view lower) {
  if (a.size() != lower.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    char c = a[i];
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if (c != lower[i]) return false;
  }
  return true;
}

bool is_framing(std::string_view name) {
  switch (name.size()) {
    case 4:
      return same_name(name, "date");
    case 10:
      return same_name(name, "connection");
    case 14:
      return same_name(name, "content-length");
    case 17:
      return same_name(name, "transfer-encoding");
    default:
      return false;
  }
}

void append_clean(std::string& out, std::string_view text) {
  std::size_t from = out.size();
  out += text;
  for (std::size_t i = from; i < out.size(); ++i) {
    auto c = static_cast<unsigned char>(out[i]);
    if ((c < 0x20 && c != '\t') || c == 0x7F) out[i] = ' ';
  }
}

void append_number(std::string& out, std::size_t number, int base) {
  std::array<char, 20> digits{};
  auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number, base);
  out.append(digits.data(), end.ptr);
}

}  // namespace

bool has_body(int status) { return status >= 200 && status != 204 && status != 304; }

void append_head(std::string& out, const text::HttpResponse& response, const HeadOptions& options) {
  bool sane = response.status >= 200 && response.status <= 999;
  int status = sane ? response.status : 500;
  out += options.http10 ? "HTTP/1.0 " : "HTTP/1.1 ";
  append_number(out, static_cast<std::size_t>(status), 10);
  out += ' ';
  out += text::http_reason(status);
  out += "\r\n";
  for (const text::HttpHeader& header : response.headers) {
    if (header.name.empty() || is_framing(header.name)) continue;
    append_clean(out, header.name);
    out += ": ";
    append_clean(out, header.value);
    out += "\r\n";
  }
  if (!options.date.empty()) {
    out += "Date: ";
    out += options.date;
    out += "\r\n";
  }
  if (options.framing == Framing::kLength && has_body(status)) {
    out += "Content-Length: ";
    append_number(out, options.body_size, 10);
    out += "\r\n";
  } else if (options.framing == Framing::kChunked) {
    out += "Transfer-Encoding: chunked\r\n";
  }
  if (!options.keep_alive) {
    out += "Connection: close\r\n";
  } else if (options.http10) {
    out += "Connection: keep-alive\r\n";
  }
  out += "\r\n";
}

void append_chunk_size(std::string& out, std::size_t size) {
  append_number(out, size, 16);
  out += "\r\n";
}

std::string http_date(std::int64_t seconds) {
  static constexpr const char* kDays[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  static constexpr const char* kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                            "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  auto when = static_cast<std::time_t>(seconds);
  std::tm parts{};
  if (gmtime_r(&when, &parts) == nullptr) return {};
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%s, %02d %s %d %02d:%02d:%02d GMT", kDays[parts.tm_wday],
                parts.tm_mday, kMonths[parts.tm_mon], parts.tm_year + 1900, parts.tm_hour,
                parts.tm_min, parts.tm_sec);
  return text.data();
}

}  // namespace berth::serve
