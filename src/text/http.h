// HTTP messages as values, shared by the client, the server and the simulated cluster; no I/O.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace berth::text {

struct HttpHeader {
  std::string name, value;
  friend bool operator==(const HttpHeader&, const HttpHeader&) = default;
};
using HttpHeaders = std::vector<HttpHeader>;

struct HttpRequest {
  std::string method;  // "GET"
  std::string target;  // "/api/v1/pods?limit=5", percent-encoded
  HttpHeaders headers;
  std::string body;
};

struct HttpResponse {
  int status = 0;
  HttpHeaders headers;
  std::string body;
};

// Names are compared without regard to case; the first one counts. nullopt: not there.
std::optional<std::string_view> find_header(const HttpHeaders& headers, std::string_view name);

// A path and a query, decoded. A path keeps its slashes; "+" in a query is a space.
struct HttpTarget {
  std::vector<std::string> path;                           // segments, without empty ones
  std::vector<std::pair<std::string, std::string>> query;  // in order, repeated names kept

  // The first value of that name; nullopt: not there. A name without "=" has the value "".
  std::optional<std::string_view> get(std::string_view name) const;
};
// Refused: no leading slash, a percent sign without two hex digits, a NUL, "." or ".." segments,
// more than 8 KiB.
Result<HttpTarget> parse_http_target(std::string_view target);

// For one path segment or one query value: everything but the unreserved characters is encoded.
std::string percent_encode(std::string_view text);

// "OK", "Not Found"; "Unknown" for codes without a name.
std::string_view http_reason(int status);

}  // namespace berth::text
