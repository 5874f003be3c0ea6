// The Exchange of the HTTP server, and the queue that carries answers from any thread to its own.
// For edge/serve/ alone.
//
// Whatever a handler says becomes an event; the server's thread takes all that wait at once, so a
// burst of small writes costs one wake-up and one system call per connection. Exchanges may outlive
// the server: the queue is shared and closed when it stops.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "edge/serve/byte_budget.h"
#include "edge/serve/exchange.h"

namespace berth::serve {

class HttpExchange;

struct ServerEvent {
  enum class Kind : std::uint8_t {
    kRespond,
    kBegin,
    kWrite,
    kEnd,
    kDropped,   // without an answer, or without an end
    kOverflow,  // more waits for the peer than it may
    kTellGone,  // on_gone() came after the peer went
    kDrain,
    kStop,
  };
  Kind kind = Kind::kStop;
  std::uint64_t connection = 0, sequence = 0;
  text::HttpResponse response = {};
  std::shared_ptr<const std::string> bytes = {};
  std::function<void()> gone = {};
  std::int64_t at_most_ns = 0;
};

class EventQueue {
 public:
  EventQueue(std::size_t max_backlog_bytes, std::function<void()> wake)
      : max_backlog_bytes_(max_backlog_bytes), wake_(std::move(wake)) {}

  void push(ServerEvent event) BERTH_EXCLUDES(mutex_);
  // Swaps all that waits into `into`, which must be empty; false: nothing.
  bool take(std::vector<ServerEvent>& into) BERTH_EXCLUDES(mutex_);
  void close() BERTH_EXCLUDES(mutex_);  // nothing is taken in any more
  bool closed() const { return closed_.load(); }
  // Called by the server's thread: its own events wake nobody, it looks again before it waits.
  void set_owner() { owner_.store(std::this_thread::get_id()); }
  bool on_owner() const { return owner_.load() == std::this_thread::get_id(); }

  std::size_t max_backlog_bytes() const { return max_backlog_bytes_; }

 private:
  const std::size_t max_backlog_bytes_;
  const std::function<void()> wake_;
  std::atomic<std::thread::id> owner_;
  std::atomic<bool> closed_{false};  // changed under the lock
  Mutex mutex_;
  std::vector<ServerEvent> events_ BERTH_GUARDED_BY(mutex_);
};

class HttpExchange final : public Exchange {
 public:
  // held: by the request, until the last one lets the exchange go.
  HttpExchange(std::shared_ptr<EventQueue> queue, std::uint64_t connection, std::uint64_t sequence,
               HeldBytes held)
      : queue_(std::move(queue)),
        connection_(connection),
        sequence_(sequence),
        held_(std::move(held)) {}
  ~HttpExchange() override;

  void respond(text::HttpResponse response) override;
  void begin(text::HttpResponse head) override;
  void write(std::shared_ptr<const std::string> bytes) override;
  void end() override;
  std::size_t backlog() const override;
  bool gone() const override;
  void on_gone(std::function<void()> gone) override BERTH_EXCLUDES(mutex_);

  // For the server's thread: the peer went; calls what on_gone() gave.
  void lose() BERTH_EXCLUDES(mutex_);
  // The answer is complete: nobody will be told, and what on_gone() gave is let go.
  void settle() BERTH_EXCLUDES(mutex_);
  // Bytes left the queue for the connection; bytes that the connection still has.
  void moved(std::size_t bytes) { queued_.fetch_sub(bytes); }
  void set_unsent(std::size_t bytes) { unsent_.store(bytes); }
  void add_unsent(std::size_t bytes) { unsent_.fetch_add(bytes); }

 private:
  enum class Phase : std::uint8_t { kOpen, kStream, kDone };
  void push(ServerEvent::Kind kind, text::HttpResponse response = {},
            std::shared_ptr<const std::string> bytes = {});

  const std::shared_ptr<EventQueue> queue_;
  const std::uint64_t connection_, sequence_;
  const HeldBytes held_;
  std::atomic<Phase> phase_{Phase::kOpen};
  std::atomic<bool> gone_{false};
  std::atomic<std::size_t> queued_{0}, unsent_{0};
  Mutex mutex_;
  std::function<void()> on_gone_ BERTH_GUARDED_BY(mutex_);
};

}  // namespace berth::serve
