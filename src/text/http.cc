#include "text/http.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

namespace berth::text {
namespace {

constexpr std::size_t kMaxTarget = 8 * 1024;

char small_letter(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool same_header_name(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (small_letter(a[i]) != small_letter(b[i])) return false;
  }
  return true;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char small = small_letter(c);
  return small >= 'a' && small <= 'f' ? small - 'a' + 10 : -1;
}

Result<std::string> percent_decode(std::string_view in, bool plus_is_space) {
  std::string out;
  out.reserve(in.size());
  for (std::size_t i = 0; i < in.size(); ++i) {
    char c = in[i];
    if (c == '%') {
      const int high = i + 1 < in.size() ? hex_digit(in[i + 1]) : -1;
      const int low = i + 2 < in.size() ? hex_digit(in[i + 2]) : -1;
      if (high < 0 || low < 0) return invalid("% must be followed by two hex digits");
      c = static_cast<char>(high * 16 + low);
      i += 2;
    } else if (c == '+' && plus_is_space) {
      c = ' ';
    }
    if (c == '\0') return invalid("a NUL byte is not allowed");
    out += c;
  }
  return out;
}

Status decode_query(std::string_view query, HttpTarget& out) {
  while (!query.empty()) {
    const std::size_t end = std::min(query.find('&'), query.size());
    const std::string_view item = query.substr(0, end);
    query.remove_prefix(std::min(end + 1, query.size()));
    if (item.empty()) continue;
    const std::size_t equals = std::min(item.find('='), item.size());
    BERTH_TRY(std::string name, percent_decode(item.substr(0, equals), true));
    BERTH_TRY(std::string value,
              percent_decode(item.substr(std::min(equals + 1, item.size())), true));
    out.query.emplace_back(std::move(name), std::move(value));
  }
  return {};
}

}  // namespace

std::optional<std::string_view> find_header(const HttpHeaders& headers, std::string_view name) {
  for (const HttpHeader& header : headers) {
    if (same_header_name(header.name, name)) return header.value;
  }
  return std::nullopt;
}

std::optional<std::string_view> HttpTarget::get(std::string_view name) const {
  for (const auto& [key, value] : query) {
    if (key == name) return value;
  }
  return std::nullopt;
}

Result<HttpTarget> parse_http_target(std::string_view target) {
  if (target.size() > kMaxTarget) {
    return Error(Code::kExhausted, fmt::format("the URL has {} bytes, at most {} are allowed",
                                               target.size(), kMaxTarget));
  }
  if (target.empty() || target.front() != '/') return invalid("the path must begin with /");
  HttpTarget out;
  const std::size_t question = std::min(target.find('?'), target.size());
  std::string_view path = target.substr(0, question);
  while (!path.empty()) {
    path.remove_prefix(1);  // the slash
    const std::size_t end = std::min(path.find('/'), path.size());
    BERTH_TRY(std::string segment, percent_decode(path.substr(0, end), false));
    if (segment == "." || segment == "..") return invalid("the path may not hold . or ..");
    if (!segment.empty()) out.path.push_back(std::move(segment));
    path.remove_prefix(end);
  }
  BERTH_CHECK(decode_query(target.substr(std::min(question + 1, target.size())), out));
  return out;
}

std::string percent_encode(std::string_view in) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string out;
  out.reserve(in.size());
  for (const char c : in) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '.' || c == '_' || c == '~';
    if (plain) {
      out += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    out += '%';
    out += kHex[byte >> 4];
    out += kHex[byte & 15];
  }
  return out;
}

std::string_view http_reason(int status) {
  switch (status) {
    case 101:
      return "Switching Protocols";
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 202:
      return "Accepted";
    case 204:
      return "No Content";
    case 304:
      return "Not Modified";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 406:
      return "Not Acceptable";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 410:
      return "Gone";
    case 413:
      return "Request Entity Too Large";
    case 415:
      return "Unsupported Media Type";
    case 422:
      return "Unprocessable Entity";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    default:
      return "Unknown";
  }
}

}  // namespace berth::text
