// Whether Kueue itself is at work: its leader's lease is held and renewed.
//
// Judged by when we saw it change, never by comparing clocks. A lease seen for the first time
// counts for one duration.
#pragma once

#include <cstdint>
#include <string>

#include "text/value.h"

namespace berth::control {

inline constexpr const char* kKueueNamespace = "kueue-system";
inline constexpr const char* kKueueLease = "c1f6bfd2.kueue.x-k8s.io";
inline constexpr const char* kKueueConfigMap = "kueue-manager-config";

class KueueLease {
 public:
  void seen(const text::Value& lease, std::int64_t ticks) {
    const text::Value* spec = lease.find("spec");
    const auto text = [&](std::string_view key) -> std::string {
      const text::Value* found = spec == nullptr ? nullptr : spec->find(key);
      return found == nullptr ? std::string() : std::string(found->string());
    };
    const std::string renewed = text("renewTime");
    holder_ = text("holderIdentity");
    const text::Value* seconds = spec == nullptr ? nullptr : spec->find("leaseDurationSeconds");
    const std::int64_t s = seconds == nullptr ? 15 : seconds->as_int64().value_or(15);
    duration_ns_ = (s < 1 ? 15 : s) * 1'000'000'000;
    if (renewed != renewed_ || last_ < 0) last_ = ticks;
    renewed_ = renewed;
  }
  void gone() {
    holder_.clear();
    last_ = -1;
  }
  bool live(std::int64_t ticks) const {
    return !holder_.empty() && last_ >= 0 && ticks - last_ <= duration_ns_;
  }
  const std::string& holder() const { return holder_; }

 private:
  std::string holder_, renewed_;
  std::int64_t duration_ns_ = 15'000'000'000;
  std::int64_t last_ = -1;
};

}  // namespace berth::control
