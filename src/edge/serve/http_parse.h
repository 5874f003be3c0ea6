// Requests out of bytes: HTTP/1.0 and 1.1 as RFC 9112 has it, strictly, within bounds. No I/O.
//
// Beast's parser does the reading, so that two readers of one stream cannot disagree about where a
// request ends; what it takes for wrong is refused with a status for the peer. It sees a head only
// when it is whole and its lines are plain: CRLF, no control characters, no folding. Where others
// may read a request differently it is refused: a Transfer-Encoding that is not the one word
// "chunked", lengths more than once, no Host or two, targets that are not a path, chunk extensions,
// trailers. One owner, one thread. Cost: two passes over a head, one over a body; memory follows
// what has arrived, never what Content-Length says will.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
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

struct ParseLimits {
  std::size_t head_bytes = 64 * 1024;
  std::size_t body_bytes = 16 * 1024 * 1024;
  // Of this request's body, of which nothing is there yet; at most body_bytes. Absent: body_bytes.
  std::function<std::size_t(const text::HttpRequest& head)> body_bytes_of = nullptr;
};

class HttpParser {
 public:
  static constexpr std::size_t kMaxHeaders = 512;
  enum class State : std::uint8_t { kMore, kDone, kFailed };

  explicit HttpParser(ParseLimits limits);
  ~HttpParser();

  // Reads a request's bytes and says how many it used; the rest is given again, with more behind.
  State feed(std::string_view bytes, std::size_t& used);
  ParsedRequest take();  // after kDone; the next request may follow
  void drop();           // what has come of a request, and its memory

  bool idle() const;         // nothing of a request has come
  bool head_done() const;    // the body is what is missing
  std::size_t held() const;  // bytes of memory that the unfinished request takes
  bool asks_to_continue();   // the head came with "Expect: 100-continue"; true only once
  int status() const;        // after kFailed: 400, 413, 431, 501, 503, 505
  std::string_view problem() const;

 private:
  struct Reader;
  std::unique_ptr<Reader> reader_;
};

}  // namespace berth::serve
