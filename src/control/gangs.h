// Gangs that have to start over: a kubelet refused one of their pods, or some of them run and the
// others find no place for a long time.
//
// Those that run make way and the gang waits, longer each time; pods that nobody would make again
// stay. On the loop's thread. Memory: an entry for each gang that is partly bound.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "control/binder.h"
#include "control/part.h"

namespace berth::control {

class Gangs final : public Part {
 public:
  Gangs(const Common& common, Binder& binder, std::int64_t bind_timeout_ns);

  bool changed(const Change& change) override;
  void decided(const Decided& what) override;
  bool tick(std::int64_t now) override;  // true: one is partly bound
  void clear() override { partial_since_.clear(); }

 private:
  void rejected(const std::string& pod, const std::string& gang, const text::Value& object);
  std::vector<std::string> bound_of(std::int32_t gang) const;

  const Common& common_;
  Binder& binder_;
  const std::int64_t bind_timeout_ns_;
  Counter rejected_metric_;
  std::map<std::string, std::int64_t> partial_since_;
};

}  // namespace berth::control
