#include "control/writer.h"

#include <memory>
#include <utility>

#include "base/crash_point.h"

namespace berth::control {

namespace {

CounterFamily& writes_metric(MetricsRegistry& metrics) {
  return metrics.counter({.name = "berth_controller_writes_total",
                          .help = "Writes sent to the API server, by what they are for.",
                          .labels = {"for"}});
}

}  // namespace

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

void Writer::add(WriteClass kind, std::string_view ns, Send send, Done done) {
  queues_[index(kind)].push(ns, {std::move(send), std::move(done)});
  pump();
}

void Writer::clear() {
  for (auto& queue : queues_) queue.clear();
}

std::size_t Writer::waiting() const {
  std::size_t sum = 0;
  for (const auto& queue : queues_) sum += queue.size();
  return sum;
}

// What is for people and for status has a quarter of the places, so that it never delays a binding
// much.
void Writer::pump() {
  if (pumping_) return;
  pumping_ = true;
  for (std::size_t kind = 0; kind < kKinds; ++kind) {
    const bool minor = kind >= index(WriteClass::kStatus);
    const std::size_t most = minor ? std::max<std::size_t>(1, max_at_once_ / 4) : max_at_once_;
    while (!queues_[kind].empty() && calls_.size() < max_at_once_ && under_way_[kind] < most) {
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
  ++under_way_[kind];
  auto number = std::make_shared<kube::Call>(0);
  const std::int64_t sent = clock_.ticks_ns();
  *number = write.send(
      client_, [this, kind, number, sent, done = std::move(write.done)](kube::Answer answer) {
        if (kind == index(WriteClass::kBind)) BERTH_CRASH_POINT("controller-after-bind");
        const std::int64_t took = clock_.ticks_ns() - sent;
        answer_ns_ = answer_ns_ == 0 ? took : answer_ns_ + (took - answer_ns_) / 16;
        calls_.erase(*number);
        --under_way_[kind];
        silent_ = answer.status == 0 || answer.status >= 500 ? silent_ + 1 : 0;
        if (!answer.ok()) {
          ++failed_;
          failures_.add();
        }
        if (done) done(std::move(answer));
        pump();
      });
  calls_.insert(*number);
}

}  // namespace berth::control
