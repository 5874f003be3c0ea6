#include "kinds/waiting_lanes.h"

#include <algorithm>

#include "text/path.h"

namespace berth::kinds {

using text::Value;

namespace {

constexpr std::size_t kFewestOfALane = 8;

bool stands_as_made(const model::WorkloadSpec& w) {
  return !w.admission && !w.finished && w.active && w.evicted.empty() && w.not_requeued.empty() &&
         w.requeue_at_ns == 0 && w.checks.empty() && w.replaces.empty() &&
         w.allowed_flavors.empty() && !w.preemption_gated && w.held_by.empty() &&
         w.preempted.empty() && w.preempted_by.empty() && w.preemptions_ns.empty() &&
         w.reclaimable.empty() && w.unhealthy_nodes.empty();
}

void add_member(BodyHash& h, const Value* outer, std::string_view key) {
  const Value* found = outer == nullptr ? nullptr : outer->find(key);
  if (found != nullptr) h.add(*found);
  h.mix(7);
}

}  // namespace

void WaitingLanes::put(const std::string& key, const WorkloadObject& workload,
                       const Value& object) {
  erase(key);
  const model::WorkloadSpec& spec = workload.spec;
  if (!spec.variant_of.empty()) variants_.insert(key);
  if (!stands_as_made(spec)) return;
  BodyHash lane{seed_ ^ 0x452821e638d01377u, seed_ ^ 0xbe5466cf34e90c6cu};
  lane.add(spec.ns);
  add_member(lane, object.find("metadata"), "annotations");
  add_member(lane, &object, "spec");
  Place place{spec.created_ns, spec.uid, key};
  lanes_[lane].insert(place);
  at_.emplace(key, std::pair(lane, std::move(place)));
}

void WaitingLanes::erase(const std::string& key) {
  variants_.erase(key);
  const auto it = at_.find(key);
  if (it == at_.end()) return;
  const auto lane = lanes_.find(it->second.first);
  lane->second.erase(it->second.second);
  if (lane->second.empty()) lanes_.erase(lane);
  at_.erase(it);
}

std::set<std::string_view> WaitingLanes::behind(std::size_t most) const {
  std::set<std::string_view> out;
  if (at_.size() <= most || !variants_.empty()) return out;
  const std::size_t each = std::max(kFewestOfALane, most / lanes_.size());
  for (const auto& [hash, lane] : lanes_) {
    std::size_t seen = 0;
    for (const Place& place : lane) {
      if (++seen > each) out.insert(std::get<2>(place));
    }
  }
  return out;
}

BodyHash hash_of_decided(std::string_view kind, const Value& object, std::uint64_t seed) {
  BodyHash h{seed ^ 0xc0ac29b7c97c50ddu, seed ^ 0x3f84d5b5b5470917u};
  const Value* meta = object.find("metadata");
  for (const std::string_view key : {"annotations", "creationTimestamp", "deletionTimestamp",
                                     "labels", "ownerReferences", "uid"}) {
    add_member(h, meta, key);
  }
  add_member(h, &object, "spec");
  const Value* status = object.find("status");
  if (status == nullptr || kind == "ClusterQueue") return h;
  if (kind == "LocalQueue") {
    add_member(h, status, "fairSharing");
    return h;
  }
  const bool holds = status->find("admission") != nullptr;
  for (const text::Member& member : status->members()) {
    if (member.key != "conditions") {
      h.add(member.key);
      h.add(member.value);
      continue;
    }
    for (const Value& c : member.value.items()) {
      const bool waits = text_at(c, "type") == "QuotaReserved" && text_at(c, "status") != "True";
      if (!waits || holds) h.add(c);
    }
  }
  return h;
}

}  // namespace berth::kinds
