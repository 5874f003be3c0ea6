#include "control/notices.h"

#include <functional>

#include "edge/kube/events.h"
#include "kinds/pod_writes.h"

namespace berth::control {

namespace {

constexpr std::int64_t kNoticeSecond = 1'000'000'000;
constexpr std::int64_t kSameEvent = 600 * kNoticeSecond;
constexpr std::int64_t kSameReason = 60 * kNoticeSecond;
const kube::EventSource kBy{"berth.dev/controller", "berth"};

}  // namespace

Regarding of_gang(const std::string& name) {
  const std::size_t slash = name.find('/');
  return {"v1", "PodGroup", name.substr(0, slash), name.substr(slash + 1), ""};
}

Notices::Notices(Loop& loop, Random random, Writer& writer)
    : loop_(loop), random_(random), writer_(writer) {}

void Notices::event(const Regarding& about, std::string_view type, std::string_view reason,
                    std::string_view action, std::string_view note) {
  const std::int64_t now = loop_.monotonic().ticks_ns();
  while (!recent_order_.empty() &&
         (now - recent_order_.front().first >= kSameEvent || recent_order_.size() >= kMostRecent)) {
    recent_.erase(recent_order_.front().second);
    recent_order_.pop_front();
  }
  std::string key = about.kind + '|' + about.ns + '|' + about.name + '|' + about.uid + '|';
  key.append(reason).append("|").append(note);
  if (recent_.contains(key) || !writer_.may_tell() || !events_.take(now, writer_.answer_ns()))
    return;
  recent_.emplace(key, now);
  recent_order_.emplace_back(now, std::move(key));
  const kube::EventNote said{about.version,       about.kind,        {about.ns, about.name},
                             about.uid,           type == "Warning", std::string(reason),
                             std::string(action), std::string(note)};
  const kube::Key at = kube::event_key(said, random_.next());
  Write write = write_create(kube::resources::events(), at.ns,
                             kube::event_body(said, at, kBy, loop_.wall().now_ns()));
  write.kind = WriteClass::kTell;
  writer_.add(std::move(write));
}

void Notices::waits(const std::string& pod, const std::string& uid, const Wait& why) {
  const std::int64_t now = loop_.monotonic().ticks_ns();
  const std::size_t words = std::hash<std::string>()(why.message);
  const auto it = told_.find(pod);
  if (it != told_.end() && it->second.uid == uid && it->second.reason == why.reason &&
      it->second.queued == why.queued) {
    if (it->second.message == words || now - it->second.at < kSameReason) return;
  }
  if (told_.size() >= kMostTold || !writer_.may_tell()) return;
  if (!conditions_.take(now, writer_.answer_ns())) return;
  told_.insert_or_assign(pod, Told{uid, std::string(why.reason), why.queued, words, now});
  std::string said(why.reason);
  if (!why.message.empty()) said += ": " + why.message;
  std::string body = kinds::pod_condition_patch("PodScheduled", "False",
                                                why.queued ? "WaitsInQueue" : "Unschedulable", said,
                                                loop_.wall().now_ns());
  const std::size_t slash = pod.find('/');
  const kube::Key key{pod.substr(0, slash), pod.substr(slash + 1)};
  Write write = write_patch(kube::resources::pods(), key, kube::PatchType::kStrategic,
                            std::move(body), "status");
  write.kind = WriteClass::kTell;
  write.done = [this, pod](const kube::Answer& answer) {
    if (!answer.ok()) told_.erase(pod);  // the next cycle tries again
  };
  writer_.add(std::move(write));
  event({"v1", "Pod", key.ns, key.name, uid}, "Warning", "FailedScheduling", "Scheduling", said);
}

}  // namespace berth::control
