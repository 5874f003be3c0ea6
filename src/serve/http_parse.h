// Requests out of bytes: HTTP/1.0 and 1.1 as RFC 9112 has it, strictly, within bounds. No I/O.
//
// Beast's parser does the reading, so that two readers of one stream cannot disagree about where a
// request ends; what it takes for wrong is refused with a status for the peer. One owner, one
// thread. Cost: one pass over the bytes; strings of the request are made once and moved out.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "text/http.h"

namespace berth::serve {

struct ParsedRequest {
  text::HttpRequest request;
  bool keep_alive = true;
  bool http10 = false;
};

class HttpParser {
 public:
  enum class State : std::uint8_t { kMore, kDone, kFailed };

  HttpParser(std::size_t max_head_bytes, std::size_t max_body_bytes);
  ~HttpParser();

  // Reads a request's bytes and says how many it used; the rest is given again, with more behind.
  State feed(std::string_view bytes, std::size_t& used);
  ParsedRequest take();  // after kDone; the next request may follow

  bool idle() const;        // nothing of a request has come
  bool asks_to_continue();  // the head came with "Expect: 100-continue"; true only once
  int status() const;       // after kFailed: 400, 413, 431, 505
  std::string_view problem() const;

 private:
  struct Reader;
  std::unique_ptr<Reader> reader_;
};

}  // namespace berth::serve
