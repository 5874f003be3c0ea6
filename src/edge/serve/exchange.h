// One request and its answer, as a server hands them out: whole, or as a stream.
//
// The handler answers exactly once, from any thread and at any later time: respond(), or begin(),
// any number of write()s and end(). An Exchange that is dropped without an answer answers 500; a
// stream that is dropped ends. Writes after the peer went away are dropped.
//
// Implementations: the HTTP server of this folder, and the in-process one of sim/api.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "text/http.h"

namespace berth::serve {

class Exchange {
 public:
  virtual ~Exchange() = default;

  virtual void respond(text::HttpResponse response) = 0;
  virtual void begin(text::HttpResponse head) = 0;  // of a stream; a body is its first bytes
  virtual void write(
      std::shared_ptr<const std::string> bytes) = 0;  // may be shared by many streams
  virtual void end() = 0;

  virtual std::size_t backlog() const = 0;  // bytes written and not yet taken by the peer
  virtual bool gone() const = 0;            // the peer closed
  // Called once, from the server's thread, when the peer goes before the answer is complete.
  virtual void on_gone(std::function<void()> gone) = 0;
};

using Handler = std::function<void(text::HttpRequest request, std::shared_ptr<Exchange> exchange)>;

}  // namespace berth::serve
