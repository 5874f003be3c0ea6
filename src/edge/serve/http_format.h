// The head of an answer and the frame of a chunk, as bytes. Pure functions.
//
// What frames the message (Content-Length, Transfer-Encoding, Connection, Date) is written here and
// taken from nobody; line breaks and other control characters in a value become spaces, so that a
// value cannot add a header.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "text/http.h"

namespace berth::serve {

enum class Framing : std::uint8_t {
  kLength,   // Content-Length: body_size
  kChunked,  // chunks follow
  kClose,    // up to the end of the connection: streams for HTTP/1.0
};

struct HeadOptions {
  Framing framing = Framing::kLength;
  std::size_t body_size = 0;
  bool keep_alive = true;
  bool http10 = false;
  std::string_view date;  // as http_date() writes it
};

void append_head(std::string& out, const text::HttpResponse& response, const HeadOptions& options);
void append_chunk_size(std::string& out, std::size_t size);  // "1f\r\n"
std::string http_date(std::int64_t seconds);                 // "Sun, 06 Nov 1994 08:49:37 GMT"
bool has_body(int status);                                   // 1xx, 204 and 304 have none

}  // namespace berth::serve
