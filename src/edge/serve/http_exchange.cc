#include "edge/serve/http_exchange.h"

#include <utility>

#include "base/check.h"

namespace berth::serve {

void EventQueue::push(ServerEvent event) {
  bool first = false;
  {
    MutexLock lock(mutex_);
    if (closed_) return;  // the event's destructor runs after the lock is gone
    first = events_.empty();
    events_.push_back(std::move(event));
  }
  if (first && !on_owner()) wake_();
}

bool EventQueue::take(std::vector<ServerEvent>& into) {
  MutexLock lock(mutex_);
  std::swap(into, events_);
  return !into.empty();
}

void EventQueue::close() {
  std::vector<ServerEvent> left;
  MutexLock lock(mutex_);
  closed_ = true;
  std::swap(left, events_);
}

HttpExchange::~HttpExchange() {
  if (phase_.load() != Phase::kDone) push(ServerEvent::Kind::kDropped);
}

void HttpExchange::push(ServerEvent::Kind kind, text::HttpResponse response,
                        std::shared_ptr<const std::string> bytes) {
  if (gone_.load(std::memory_order_relaxed)) return;
  ServerEvent event;
  event.kind = kind;
  event.connection = connection_;
  event.sequence = sequence_;
  event.response = std::move(response);
  event.bytes = std::move(bytes);
  queue_->push(std::move(event));
}

void HttpExchange::respond(text::HttpResponse response) {
  if (phase_.exchange(Phase::kDone) != Phase::kOpen) {
    BERTH_BUG("a request is answered once");
    return;
  }
  push(ServerEvent::Kind::kRespond, std::move(response));
}

void HttpExchange::begin(text::HttpResponse head) {
  Phase open = Phase::kOpen;
  if (!phase_.compare_exchange_strong(open, Phase::kStream)) {
    BERTH_BUG("a stream begins once, and before any other answer");
    return;
  }
  queued_.fetch_add(head.body.size());
  push(ServerEvent::Kind::kBegin, std::move(head));
}

void HttpExchange::write(std::shared_ptr<const std::string> bytes) {
  if (phase_.load() != Phase::kStream) {
    BERTH_BUG("only a stream that began and did not end is written to");
    return;
  }
  if (!bytes || bytes->empty() || gone_.load()) return;  // an empty chunk would be the end
  if (backlog() + bytes->size() > queue_->max_backlog_bytes()) {
    push(ServerEvent::Kind::kOverflow);
    gone_.store(true);  // after the push, which drops what comes after the end
    return;
  }
  queued_.fetch_add(bytes->size());
  push(ServerEvent::Kind::kWrite, {}, std::move(bytes));
}

void HttpExchange::end() {
  if (phase_.exchange(Phase::kDone) != Phase::kStream) {
    BERTH_BUG("only a stream that began is ended");
    return;
  }
  push(ServerEvent::Kind::kEnd);
}

std::size_t HttpExchange::backlog() const { return queued_.load() + unsent_.load(); }

bool HttpExchange::gone() const { return gone_.load() || queue_->closed(); }

void HttpExchange::on_gone(std::function<void()> gone) {
  {
    MutexLock lock(mutex_);
    if (!gone_.load()) {
      on_gone_ = std::move(gone);
      return;
    }
  }
  if (phase_.load() == Phase::kDone) return;
  ServerEvent event;
  event.kind = ServerEvent::Kind::kTellGone;
  event.gone = std::move(gone);
  queue_->push(std::move(event));
}

void HttpExchange::settle() {
  std::function<void()> left;
  MutexLock lock(mutex_);
  left = std::exchange(on_gone_, {});
}

void HttpExchange::lose() {
  std::function<void()> tell;
  {
    MutexLock lock(mutex_);
    gone_.store(true);
    tell = std::exchange(on_gone_, {});
  }
  if (tell && phase_.load() != Phase::kDone) tell();
}

}  // namespace berth::serve
