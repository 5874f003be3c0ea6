#include "edge/kube/reflector.h"

#include <algorithm>

namespace berth::kube {
namespace {

bool is_number(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

bool unordered_start(const std::string& version) { return version.empty() || version == "0"; }

const text::Value* metadata_of(const text::Value& object) { return object.find("metadata"); }

std::string_view version_of(const text::Value& object) {
  const text::Value* metadata = metadata_of(object);
  const text::Value* version = metadata ? metadata->find("resourceVersion") : nullptr;
  return version ? version->string() : std::string_view{};
}

bool has_name(const text::Value& object) {
  const text::Value* metadata = metadata_of(object);
  const text::Value* name = metadata ? metadata->find("name") : nullptr;
  return name && !name->string().empty();
}

bool ends_initial(const text::Value& object) {
  const text::Value* metadata = metadata_of(object);
  const text::Value* notes = metadata ? metadata->find("annotations") : nullptr;
  const text::Value* mark = notes ? notes->find("k8s.io/initial-events-end") : nullptr;
  return mark && mark->string() == "true";
}

}  // namespace

bool older_version(std::string_view a, std::string_view b) {
  if (!is_number(a) || !is_number(b)) return false;
  return a.size() != b.size() ? a.size() < b.size() : a < b;
}

WatchType watch_type_of(std::string_view type) {
  if (type == "ADDED") return WatchType::kAdded;
  if (type == "MODIFIED") return WatchType::kModified;
  if (type == "DELETED") return WatchType::kDeleted;
  if (type == "BOOKMARK") return WatchType::kBookmark;
  if (type == "ERROR") return WatchType::kError;
  return WatchType::kUnknown;
}

Reflector::Reflector(ReflectorOptions options, Random random)
    : options_(options),
      random_(random.split("reflector")),
      backoff_(random.split("backoff"), options.backoff) {}

// ---- what to ask ---------------------------------------------------------------------------

NextStep Reflector::sync(const char* why) {
  if (!options_.watch_list || watch_list_known_bad_) return list(why);
  NextStep next = watch(why);
  phase_ = Phase::kInitial;
  recording_ = false;
  next.send_initial = true;
  if (from_store_) next.version.clear();
  next.check_ns = options_.initial_silence_ns;
  return next;
}

NextStep Reflector::list(const char* why) {
  phase_ = Phase::kListing;
  NextStep next;
  next.kind = NextStep::kList;
  next.why = why;
  if (from_store_) {
    next.limit = whole_list_ ? 0 : options_.page_size;
  } else if (version_.empty()) {
    next.version = "0";
    next.limit = options_.page_size;
  } else {
    next.version = version_;
  }
  return next;
}

NextStep Reflector::watch(const char* why) {
  phase_ = Phase::kWatching;
  recording_ = !unordered_start(version_);
  opened_ = -1;
  heard_ = -1;
  heard_count_ = 0;
  opened_version_ = version_;
  NextStep next;
  next.kind = NextStep::kWatch;
  next.why = why;
  next.version = version_;
  next.timeout_s = random_.between(options_.min_timeout_s, options_.max_timeout_s);
  next.idle_ns = next.timeout_s * 1'000'000'000 + options_.idle_margin_ns;
  return next;
}

NextStep Reflector::wait(std::int64_t now, const char* why,
                         NextStep (Reflector::*then)(const char*), std::int64_t at_least) {
  phase_ = Phase::kWaiting;
  after_wait_ = then;
  waits_for_ = why;
  NextStep next;
  next.kind = NextStep::kWait;
  next.why = why;
  next.wait_ns = std::max(backoff_.next(now), at_least);
  return next;
}

// A watch came to nothing: wait, then watch again, and list when that does not help.
NextStep Reflector::again(std::int64_t now, const char* why, std::int64_t at_least) {
  if (++failures_ < options_.failures_before_list) {
    return wait(now, why, &Reflector::watch, at_least);
  }
  failures_ = 0;
  return wait(now, why, &Reflector::sync, at_least);
}

ReflectorStep Reflector::absent() {
  version_.clear();
  from_store_ = whole_list_ = false;
  failures_ = 0;
  phase_ = Phase::kWaiting;
  after_wait_ = &Reflector::sync;
  waits_for_ = "looked_again";
  ReflectorStep step;
  step.change.begin = true;
  step.change.absent = !absent_;  // told once
  absent_ = true;
  step.next.kind = NextStep::kWait;
  step.next.why = "absent";
  step.next.wait_ns = options_.absent_retry_ns;
  return step;
}

// The version we know is of no use for the server.
ReflectorStep Reflector::expired(std::int64_t now, bool too_large) {
  ReflectorStep step;
  step.change.begin = true;
  const char* why = too_large ? "too_large" : "expired";
  const bool tried_store = from_store_;
  from_store_ = true;
  // At once: "" is always answered. If even that was refused, not at once.
  step.next = tried_store                 ? wait(now, why, &Reflector::sync)
              : phase_ == Phase::kListing ? list(why)
                                          : sync(why);
  return step;
}

// ---- lists ---------------------------------------------------------------------------------

ReflectorStep Reflector::start() {
  ReflectorStep step;
  step.change.begin = true;
  step.next = sync("start");
  return step;
}

ReflectorStep Reflector::listed(std::int64_t now, std::string_view version, std::string_view next) {
  ReflectorStep step;
  if (version.empty()) {  // no list at all
    step.change.begin = true;
    step.next = wait(now, "unreadable", &Reflector::sync);
    return step;
  }
  step.change.collect = true;
  if (!next.empty()) {
    step.next.kind = NextStep::kList;
    step.next.why = "page";
    step.next.next = next;
    step.next.limit = options_.page_size;
    return step;
  }
  version_ = version;
  from_store_ = whole_list_ = absent_ = false;
  failures_ = 0;
  step.change.replace = true;
  step.next = watch("listed");
  return step;
}

ReflectorStep Reflector::list_failed(std::int64_t now, const WireFailure& failure) {
  if (failure.status == 404) return absent();
  ReflectorStep step;
  step.change.begin = true;
  if (failure.status == 410 && from_store_ && !whole_list_) {
    whole_list_ = true;  // the continue token expired
    step.next = list("expired");
    return step;
  }
  if (failure.status == 410 || failure.too_large) return expired(now, failure.too_large);
  step.next = wait(now, "list_failed", &Reflector::sync, failure.retry_after_ns);
  return step;
}

// ---- watches -------------------------------------------------------------------------------

void Reflector::watch_opened(std::int64_t now) { opened_ = heard_ = now; }

// The first sync by WatchList did not work out: by LIST then.
NextStep Reflector::give_up_initial(std::int64_t now, const WireFailure& failure) {
  if (failure.status == 400 || failure.status == 422) watch_list_known_bad_ = true;
  const bool refused_by_word = failure.status >= 400 && failure.status < 500;
  if (refused_by_word && failure.status != 401 && failure.status != 403) return list("fallback");
  return wait(now, "fallback", &Reflector::list, failure.retry_after_ns);
}

ReflectorStep Reflector::watch_failed(std::int64_t now, const WireFailure& failure) {
  if (failure.status == 404) return absent();
  const bool initial = phase_ == Phase::kInitial;
  ReflectorStep step;
  step.change.begin = initial;
  if (failure.status == 410 || failure.too_large) {
    if (initial) return expired(now, failure.too_large);
    // The list at the last version comes first: the cache may well have something newer.
    step.change.begin = true;
    const bool useful = heard_count_ > 0 || now - opened_ >= options_.very_short_ns;
    step.next = opened_ >= 0 && useful ? sync("expired") : wait(now, "expired", &Reflector::sync);
    return step;
  }
  if (failure.status == 429 || failure.refused) {
    step.next = wait(now, failure.refused ? "refused" : "busy",
                     initial ? &Reflector::sync : &Reflector::watch, failure.retry_after_ns);
    return step;
  }
  if (initial) {
    step.next = give_up_initial(now, failure);
    return step;
  }
  const bool by_word = failure.status >= 400 && failure.status < 500;
  step.change.begin = true;
  step.next = by_word ? wait(now, "watch_failed", &Reflector::sync, failure.retry_after_ns)
                      : again(now, "watch_failed", failure.retry_after_ns);
  return step;
}

ReflectorStep Reflector::event(std::int64_t now, WatchType type, const text::Value& object,
                               const WireFailure& failure) {
  if (type == WatchType::kError) return watch_failed(now, failure);
  const std::string_view version = version_of(object);
  const bool bookmark = type == WatchType::kBookmark;
  if (type == WatchType::kUnknown || version.empty() || (!bookmark && !has_name(object))) {
    return unreadable(now);
  }
  heard_ = now;
  ++heard_count_;
  failures_ = 0;
  ReflectorStep step;
  if (phase_ == Phase::kInitial) {
    step.change.collect = !bookmark;
    if (bookmark && ends_initial(object)) {
      step.change.replace = true;
      phase_ = Phase::kWatching;
      recording_ = true;
      from_store_ = whole_list_ = absent_ = false;
      version_ = version;
    }
    return step;
  }
  if (type != WatchType::kAdded) recording_ = true;
  if (recording_) version_ = version;
  step.change.apply = !bookmark;
  return step;
}

ReflectorStep Reflector::watch_ended(std::int64_t now, bool broken) {
  ReflectorStep step;
  const bool brief = now - opened_ < options_.very_short_ns;
  if (phase_ == Phase::kInitial) {
    const bool nothing = brief && heard_count_ == 0;
    step.change.begin = true;
    step.next =
        nothing ? wait(now, "fallback", &Reflector::list) : wait(now, "broken", &Reflector::sync);
    return step;
  }
  if (brief && (heard_count_ == 0 || version_ == opened_version_)) {
    step.next = again(now, "very_short");
  } else if (unordered_start(version_)) {
    step.change.begin = true;
    step.next = wait(now, "no_version", &Reflector::sync);
  } else {
    step.next = watch(broken ? "broken" : "ended");
  }
  return step;
}

ReflectorStep Reflector::unreadable(std::int64_t now) {
  ReflectorStep step;
  step.change.begin = true;
  step.next = wait(now, "unreadable", &Reflector::list);
  return step;
}

ReflectorStep Reflector::check_initial(std::int64_t now) {
  ReflectorStep step;
  if (phase_ != Phase::kInitial) return step;
  const std::int64_t quiet = now - heard_;
  if (heard_ >= 0 && quiet < options_.initial_silence_ns) {
    step.next.check_ns = options_.initial_silence_ns - quiet;
    return step;
  }
  watch_list_known_bad_ = heard_ >= 0;  // it answered, and never came to the end
  step.change.begin = true;
  step.next = list("fallback");
  return step;
}

ReflectorStep Reflector::timer(std::int64_t) {
  ReflectorStep step;
  if (phase_ != Phase::kWaiting || after_wait_ == nullptr) return step;
  step.next = (this->*after_wait_)(waits_for_);
  return step;
}

}  // namespace berth::kube
