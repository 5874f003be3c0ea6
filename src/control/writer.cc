#include "control/writer.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/crash_point.h"

namespace berth::control {

namespace {

constexpr std::int64_t kWriterSecond = 1'000'000'000;

CounterFamily& writes_metric(MetricsRegistry& metrics) {
  return metrics.counter({.name = "berth_controller_writes_total",
                          .help = "Writes sent to the API server, by what they are for.",
                          .labels = {"for"}});
}

}  // namespace

Write write_get(kube::Resource resource, kube::Key at) {
  Write out{.ns = at.ns, .send = {}};
  out.send = [resource = std::move(resource), at = std::move(at)](kube::Client& client,
                                                                  kube::Client::Done done) {
    return client.get(resource, at, std::move(done));
  };
  return out;
}

Write write_create(kube::Resource resource, const std::string& ns, std::string body) {
  return {.ns = ns,
          .send = [resource = std::move(resource), ns, body = std::move(body)](
                      kube::Client& client, kube::Client::Done done) {
            return client.create(resource, ns, body, {}, std::move(done));
          }};
}

Write write_patch(kube::Resource resource, kube::Key at, kube::PatchType type, std::string patch,
                  std::string subresource) {
  Write out{.ns = at.ns, .send = {}};
  out.send = [resource = std::move(resource), at = std::move(at), type, patch = std::move(patch),
              subresource = std::move(subresource)](kube::Client& client, kube::Client::Done done) {
    return client.patch(resource, at, type, patch, {.subresource = subresource}, std::move(done));
  };
  return out;
}

Write write_post(kube::Resource resource, kube::Key at, std::string subresource, std::string body) {
  Write out{.ns = at.ns, .send = {}};
  out.send = [resource = std::move(resource), at = std::move(at),
              subresource = std::move(subresource),
              body = std::move(body)](kube::Client& client, kube::Client::Done done) {
    return client.post(resource, at, subresource, body, std::move(done));
  };
  return out;
}

Write write_remove(kube::Resource resource, kube::Key at, std::string uid) {
  Write out{.ns = at.ns, .send = {}};
  out.send = [resource = std::move(resource), at = std::move(at), uid = std::move(uid)](
                 kube::Client& client, kube::Client::Done done) {
    return client.remove(resource, at, {.uid = uid}, std::move(done));
  };
  return out;
}

Writer::Writer(const MonotonicClock& clock, kube::Client& client, std::function<bool()> leading,
               std::size_t max_at_once, MetricsRegistry& metrics)
    : clock_(clock),
      client_(client),
      leading_(std::move(leading)),
      max_at_once_(std::max<std::size_t>(1, max_at_once)),
      sent_{writes_metric(metrics).with({"bind"}), writes_metric(metrics).with({"act"}),
            writes_metric(metrics).with({"status"}), writes_metric(metrics).with({"tell"})},
      failures_(metrics
                    .counter({.name = "berth_controller_write_failures_total",
                              .help = "Writes that were refused or not answered."})
                    .get()) {}

Writer::~Writer() {
  for (const kube::Call call : calls_) client_.cancel(call);
}

// ---- keys ----

bool Writer::is_free(const std::string& key) const {
  const auto hold = holds_.find(key);
  return !under_way_.contains(key) &&
         (hold == holds_.end() || clock_.ticks_ns() >= hold->second.until);
}

bool Writer::claim(const std::string& key) {
  if (!is_free(key)) return false;
  holds_.erase(key);
  under_way_.insert(key);
  return true;
}

void Writer::failed(const std::string& key, const kube::Answer& answer) {
  release(key);
  const bool soon = answer.conflict() || answer.not_found();
  hold(key, clock_.ticks_ns() + (soon ? 1 : 5) * kWriterSecond);
  holds_[key].soon |= soon;
}

void Writer::hold(const std::string& key, std::int64_t until) {
  std::int64_t& known = holds_[key].until;
  known = std::max(known, until);
}

bool Writer::tick(std::int64_t now) {
  bool again = false;
  std::erase_if(holds_, [&](const auto& entry) {
    const bool over = now >= entry.second.until;
    again = again || (over && entry.second.soon);
    return over;
  });
  return again;
}

// ---- what is sent ----

bool Writer::add(Write write) {
  if (!write.key.empty() && !claim(write.key)) return false;
  const std::string ns = write.ns;
  queues_[index(write.kind)].push(ns, std::move(write));
  pump();
  return true;
}

void Writer::clear() {
  for (auto& queue : queues_) queue.clear();
  under_way_.clear();
  holds_.clear();
  ++reign_;
}

// What is for people and for status has a quarter of the places, so that it never delays a binding
// much.
void Writer::pump() {
  if (pumping_) return;
  pumping_ = true;
  for (std::size_t kind = 0; kind < kKinds; ++kind) {
    const bool minor = kind >= index(WriteClass::kStatus);
    const std::size_t most = minor ? std::max<std::size_t>(1, max_at_once_ / 4) : max_at_once_;
    while (!queues_[kind].empty() && calls_.size() < max_at_once_ && sent_now_[kind] < most) {
      if (!leading_()) {
        clear();
        break;
      }
      start(kind, queues_[kind].pop());
    }
  }
  pumping_ = false;
}

void Writer::start(std::size_t kind, Write write) {
  if (kind == index(WriteClass::kBind)) BERTH_CRASH_POINT("controller-before-bind");
  if (kind == index(WriteClass::kStatus)) BERTH_CRASH_POINT("controller-before-status");
  sent_[kind].add();
  ++sent_now_[kind];
  auto number = std::make_shared<kube::Call>(0);
  const std::int64_t sent = clock_.ticks_ns();
  const auto send = std::move(write.send);
  *number = send(client_, [this, kind, number, sent, reign = reign_,
                           write = std::move(write)](kube::Answer answer) {
    calls_.erase(*number);
    answered(kind, clock_.ticks_ns() - sent, answer);
    if (!write.key.empty() && reign == reign_) {
      answer.ok() ? release(write.key) : failed(write.key, answer);
    }
    if (write.copy != nullptr && answer.ok()) write.copy->absorb(std::move(answer.body));
    if (write.done) write.done(std::move(answer));
    pump();
  });
  calls_.insert(*number);
}

void Writer::answered(std::size_t kind, std::int64_t took, const kube::Answer& answer) {
  if (kind == index(WriteClass::kBind)) BERTH_CRASH_POINT("controller-after-bind");
  answer_ns_ = answer_ns_ == 0 ? took : answer_ns_ + (took - answer_ns_) / 16;
  --sent_now_[kind];
  silent_ = answer.status == 0 || answer.status >= 500 ? silent_ + 1 : 0;
  if (answer.ok()) return;
  ++failed_;
  failures_.add();
}

}  // namespace berth::control
