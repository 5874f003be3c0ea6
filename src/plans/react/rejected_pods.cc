#include "plans/react/rejected_pods.h"

#include <algorithm>

namespace berth::react {

namespace {

constexpr std::int64_t kEvidenceShare = 6;  // of the time, before a change is believed
constexpr std::int64_t kSecondNs = 1'000'000'000;
constexpr int kMostLevels = 16;
constexpr std::size_t kMostRefusals = 64;  // of a node that are remembered

// Whose refusals are one voice: pods of one owner, and those of a namespace that have none.
std::string voice_of(const RejectedPod& pod) {
  return pod.owner.empty() ? pod.name.substr(0, pod.name.find('/')) : pod.owner;
}

}  // namespace

bool speaks_against_node(std::string_view reason) {
  // Out of CPU or memory says nothing about its GPUs: somebody else's pods came in between.
  const bool devices = reason.starts_with("OutOf") && reason.find('/') != std::string_view::npos;
  return devices || reason == "UnexpectedAdmissionError" || reason == "TopologyAffinityError" ||
         reason == "AdmissionFailed" || reason == "ResourceAllocationFailed";
}

bool rejection_reason(std::string_view reason) {
  return speaks_against_node(reason) || reason.starts_with("OutOf") || reason == "NodeAffinity" ||
         reason == "NodeShutdown";
}

std::int64_t RejectedPods::span(int level) const {
  std::int64_t out = policy_.first_ns;
  for (int i = 0; i < level && out < policy_.longest_ns; ++i) out *= 2;
  return std::min(out, policy_.longest_ns);
}

// ---- what is told ----

void RejectedPods::rejected(const RejectedPod& pod, std::int64_t now) {
  if (const auto it = pods_.find(pod.name); it != pods_.end()) {
    if (it->second.what.uid == pod.uid) return;
    gone(pod.name);  // another one of the same name
  }
  pods_.emplace(pod.name, Pod{pod, false});
  if (!pod.owner.empty()) {
    auto& owned = owned_[pod.owner];
    owned.emplace(pod.at, pod.name);
    const std::size_t keep = pod.replaced_beside ? static_cast<std::size_t>(policy_.keep) : 0;
    if (owned.size() > keep) crowded_.insert(pod.owner);
  }
  if (!pod.placed || pod.node.empty() || !speaks_against_node(pod.reason)) return;
  if (now - pod.at > policy_.window_ns) return;
  count(nodes_[pod.node], pod, now);
  troubled_.insert(pod.node);
}

void RejectedPods::count(Node& node, const RejectedPod& pod, std::int64_t now) {
  if (node.before && now - node.last_refusal > policy_.forgiven_ns) node.before = false;
  node.last_refusal = now;
  const std::string voice = voice_of(pod);
  refused_on_[voice][pod.node] = pod.at;
  if (node.avoided) return;  // it was on its way
  node.refusals.emplace_back(pod.at, voice);
  if (node.refusals.size() > kMostRefusals) node.refusals.pop_front();
  node.reason = pod.reason;
  if (voices(node, now) < (node.trial ? 1 : policy_.refusals)) return;
  node.spared = node.paused = avoided_now() >= most_avoided();
  if (!node.spared) avoid(node, now);
}

// How many refusals within the window count: one of each voice, and all of one that was refused on
// few nodes.
int RejectedPods::voices(Node& node, std::int64_t now) {
  const auto old = [&](std::int64_t at) { return now - at > policy_.window_ns; };
  std::erase_if(node.refusals, [&](const auto& refusal) { return old(refusal.first); });
  std::set<std::string_view> heard;
  int out = 0;
  for (const auto& [at, voice] : node.refusals) {
    auto& nodes = refused_on_[voice];
    std::erase_if(nodes, [&](const auto& entry) { return old(entry.second); });
    out += heard.insert(voice).second || nodes.size() <= policy_.owner_nodes ? 1 : 0;
  }
  return out;
}

void RejectedPods::avoid(Node& node, std::int64_t now) {
  node.level = node.before ? std::min(node.level + 1, kMostLevels) : 0;
  node.refused = static_cast<int>(node.refusals.size());
  node.refusals.clear();
  node.avoided = node.before = true;
  node.trial = node.changed = node.spared = node.paused = false;
  node.since = now;
  node.until = now + span(node.level);
}

std::size_t RejectedPods::most_avoided() const {
  return std::max<std::size_t>(
      1, fleet_.size() * static_cast<std::size_t>(policy_.most_percent) / 100);
}

std::size_t RejectedPods::avoided_now() const {
  return static_cast<std::size_t>(
      std::count_if(troubled_.begin(), troubled_.end(),
                    [this](const std::string& name) { return avoids(name); }));
}

void RejectedPods::gone(const std::string& name) {
  const auto it = pods_.find(name);
  if (it == pods_.end()) return;
  const RejectedPod& pod = it->second.what;
  if (const auto owned = owned_.find(pod.owner); owned != owned_.end()) {
    owned->second.erase({pod.at, name});
    if (owned->second.empty()) {
      crowded_.erase(pod.owner);
      owned_.erase(owned);
    }
  }
  pods_.erase(it);
}

void RejectedPods::not_deleted(const std::string& name) {
  const auto it = pods_.find(name);
  if (it == pods_.end() || !it->second.asked) return;
  it->second.asked = false;
  owned_[it->second.what.owner].emplace(it->second.what.at, name);
  crowded_.insert(it->second.what.owner);
}

void RejectedPods::none_deleted() {
  for (const auto& [name, pod] : pods_) not_deleted(name);
}

void RejectedPods::started(const std::string& node, std::int64_t now) {
  const auto it = nodes_.find(node);
  if (it == nodes_.end() || !it->second.trial || now < it->second.since) return;
  it->second.trial = false;
}

void RejectedPods::facts(const std::string& node, Source source, std::uint64_t digest) {
  Node& n = nodes_[node];
  const auto at = static_cast<std::size_t>(source);
  if (n.known[at] && n.digests[at] != digest && n.avoided) n.changed = true;
  n.known[at] = true;
  n.digests[at] = digest;
}

void RejectedPods::in_fleet(const std::string& node, bool yes) {
  if (yes) {
    fleet_.insert(node);
  } else {
    fleet_.erase(node);
  }
}

void RejectedPods::marked(const std::string& node, std::optional<Mark> mark, std::int64_t now) {
  const auto it = nodes_.find(node);
  if (!mark && (it == nodes_.end() || !it->second.marked)) return;
  Node& n = it == nodes_.end() ? nodes_[node] : it->second;
  const bool was = n.marked;
  n.marked = mark.has_value();
  troubled_.insert(node);
  if (mark && !was && !n.avoided && !n.trial) {  // of a controller before us, or of a hand
    n.avoided = n.before = true;
    n.level = std::clamp(mark->level, 0, kMostLevels);
    n.since = now - std::clamp<std::int64_t>(mark->age_ns, 0, span(n.level));
    n.until = n.since + span(n.level);
    n.last_refusal = now;
  }
  if (!mark && was && n.avoided) release(n, now);  // somebody took it away: that is evidence
}

void RejectedPods::node_gone(const std::string& node) {
  nodes_.erase(node);
  troubled_.erase(node);
  fleet_.erase(node);
}

// ---- what is to be done ----

void RejectedPods::release(Node& node, std::int64_t now) {
  node.avoided = node.changed = node.spared = node.paused = false;
  node.trial = true;
  node.since = now;
  node.refusals.clear();
}

bool RejectedPods::take_token(std::int64_t now) {
  const std::int64_t most = std::int64_t{1000} * policy_.deletes_per_second;
  if (tokens_ < 0) tokens_ = most;
  const std::int64_t passed = std::clamp<std::int64_t>(now - tokens_at_, 0, kSecondNs);
  tokens_ = std::min(most, tokens_ + passed * most / kSecondNs);
  tokens_at_ = now;
  if (tokens_ < 1000) return false;
  tokens_ -= 1000;
  return true;
}

Reaction RejectedPods::due(std::int64_t now) {
  Reaction out;
  bool tokens = true;
  for (auto owner = crowded_.begin(); owner != crowded_.end() && tokens;) {
    auto& owned = owned_[*owner];
    while (!owned.empty()) {
      Pod& pod = pods_.at(owned.begin()->second);
      const std::size_t keep =
          pod.what.replaced_beside ? static_cast<std::size_t>(policy_.keep) : 0;
      if (owned.size() <= keep) break;
      tokens = take_token(now);
      if (!tokens) break;
      pod.asked = true;
      owned.erase(owned.begin());
      out.deletes.push_back(
          {pod.what.name, pod.what.uid, pod.what.owner, pod.what.node, pod.what.reason});
    }
    if (tokens) owner = crowded_.erase(owner);
  }
  due_nodes(now, out);
  return out;
}

// Too many nodes were avoided: whether they still are, and whether the node still speaks for it.
void RejectedPods::look_again(const std::string& name, Node& node, bool room, std::int64_t now,
                              Reaction& out) {
  if (now - node.last_refusal >= policy_.pause_ns) node.paused = false;
  if (voices(node, now) < (node.trial ? 1 : policy_.refusals)) {
    node.spared = node.paused = false;
  } else if (room) {
    avoid(node, now);
    out.avoid.push_back({name, node.level, node.reason, node.refused, node.until - now});
  } else {
    out.spared.push_back(name);
  }
}

void RejectedPods::due_nodes(std::int64_t now, Reaction& out) {
  std::size_t taken = avoided_now();
  for (auto it = troubled_.begin(); it != troubled_.end();) {
    Node& node = nodes_[*it];
    if (node.avoided) {
      const bool early = node.changed && now >= node.since + span(node.level) / kEvidenceShare;
      if (early || now >= node.until) {
        if (node.marked) {
          out.release.push_back({*it, early && now < node.until});
        }
        release(node, now);
      } else if (!node.marked) {
        out.avoid.push_back({*it, node.level, node.reason, node.refused, node.until - now});
      }
    } else if (node.marked) {
      out.release.push_back({*it, false});
    } else if (node.spared) {
      look_again(*it, node, taken < most_avoided(), now, out);
      taken += node.avoided ? 1 : 0;
    } else if (node.trial) {
      node.trial = now - node.since <= policy_.forgiven_ns;  // nobody came to try it
    } else if (!node.refusals.empty() && now - node.refusals.back().first > policy_.window_ns) {
      node.refusals.clear();
    }
    it = node.quiet() ? troubled_.erase(it) : std::next(it);
  }
  for (auto voice = refused_on_.begin(); voice != refused_on_.end();) {
    std::erase_if(voice->second,
                  [&](const auto& entry) { return now - entry.second > policy_.window_ns; });
    voice = voice->second.empty() ? refused_on_.erase(voice) : std::next(voice);
  }
}

bool RejectedPods::avoids(const std::string& node) const {
  const auto it = nodes_.find(node);
  return it != nodes_.end() && it->second.avoided;
}

bool RejectedPods::wanders(const std::string& owner) const {
  const auto it = refused_on_.find(owner);
  return it != refused_on_.end() && it->second.size() > policy_.owner_nodes;
}

std::set<std::string> RejectedPods::avoided() const {
  std::set<std::string> out;
  for (const std::string& name : troubled_) {
    const Node& node = nodes_.at(name);
    if (node.avoided || node.paused) out.insert(name);
  }
  return out;
}

}  // namespace berth::react
