#include "model/match_index.h"

#include <algorithm>
#include <functional>
#include <string>

namespace berth::model {

namespace {

// A counter with more places to stand in than this stands in a wider one.
constexpr std::size_t kMostPlaces = 8;
constexpr std::string_view kEverywhere = "*";  // no namespace is called so

std::uint64_t mixed(std::uint64_t hash, std::string_view part) {
  hash ^= std::hash<std::string_view>{}(part) + 0x9E3779B97F4A7C15ULL + (hash << 6) + (hash >> 2);
  return hash * 0xBF58476D1CE4E5B9ULL;
}
std::uint64_t owner_key(std::string_view owner) { return mixed(1, owner); }
std::uint64_t place_key(std::string_view ns) { return mixed(2, ns); }
std::uint64_t label_key(std::string_view key, std::string_view value) {
  return mixed(mixed(3, key), value);
}
std::uint64_t place_label_key(std::string_view ns, std::uint64_t label) { return mixed(label, ns); }

// A requirement that names the values which a pod's label may have; null: there is none.
const text::Requirement* wanted_label(const text::Selector& selector) {
  const text::Requirement* best = nullptr;
  for (const text::Requirement& r : selector) {
    if (r.op != text::Operator::kIn || r.values.size() > kMostPlaces) continue;
    if (best == nullptr || r.values.size() < best->values.size()) best = &r;
  }
  return best;
}

bool everywhere(const PodSet& pods) {
  return pods.all_namespaces || pods.namespaces.size() > kMostPlaces;
}

void once_each(std::vector<std::uint32_t>& found) {
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
}

}  // namespace

void MatchIndex::Lists::add(Key key, std::uint32_t owner) {
  std::uint32_t at = static_cast<std::uint32_t>(links_.size());
  if (free_.empty()) {
    links_.emplace_back();
  } else {
    at = free_.back();
    free_.pop_back();
  }
  if (owner >= of_.size()) of_.resize(owner + 1, kNone);
  List& list = lists_[key];
  links_[at] = {.key = key, .owner = owner, .after = list.first, .sibling = of_[owner]};
  if (list.first != kNone) links_[list.first].before = at;
  list.first = at;
  ++list.size;
  of_[owner] = at;
}

void MatchIndex::Lists::remove_all(std::uint32_t owner) {
  if (owner >= of_.size()) return;
  for (std::uint32_t at = of_[owner]; at != kNone;) {
    const Link link = links_[at];
    const auto list = lists_.find(link.key);
    if (link.before != kNone) {
      links_[link.before].after = link.after;
    } else {
      list->second.first = link.after;
    }
    if (link.after != kNone) links_[link.after].before = link.before;
    if (--list->second.size == 0) lists_.erase(list);
    free_.push_back(at);
    at = link.sibling;
  }
  of_[owner] = kNone;
}

std::uint32_t MatchIndex::Lists::size(Key key) const {
  const auto it = lists_.find(key);
  return it == lists_.end() ? 0 : it->second.size;
}

void MatchIndex::Lists::append(Key key, std::vector<std::uint32_t>& out) const {
  const auto it = lists_.find(key);
  if (it == lists_.end()) return;
  for (std::uint32_t at = it->second.first; at != kNone; at = links_[at].after) {
    out.push_back(links_[at].owner);
  }
}

void MatchIndex::Lists::append_all(std::vector<std::uint32_t>& out) const {
  for (std::uint32_t owner = 0; owner < of_.size(); ++owner) {
    if (of_[owner] != kNone) out.push_back(owner);
  }
}

std::vector<MatchIndex::Key> MatchIndex::keys_of(const Counter& counter) {
  if (counter.kind == Counter::Kind::kOwner) return {owner_key(counter.owner)};
  if (counter.pods.match_nothing) return {};
  std::vector<std::string> places = counter.pods.namespaces;
  if (everywhere(counter.pods)) places = {std::string(kEverywhere)};
  const text::Requirement* label = wanted_label(counter.pods.selector);
  std::vector<Key> out;
  for (const std::string& ns : places) {
    if (label == nullptr) {
      out.push_back(place_key(ns));
      continue;
    }
    for (const std::string& value : label->values) {
      out.push_back(place_label_key(ns, label_key(label->key, value)));
    }
  }
  return out;
}

void MatchIndex::add(const Counter& counter) {
  for (const Key key : keys_of(counter)) counters_.add(key, counter.index);
}
void MatchIndex::remove(const Counter& counter) { counters_.remove_all(counter.index); }

void MatchIndex::add(const Shape& shape) {
  shapes_.add(place_key(shape.ns), shape.index);
  for (const auto& [key, value] : shape.labels) shapes_.add(label_key(key, value), shape.index);
  if (!shape.owner.empty()) shapes_.add(owner_key(shape.owner), shape.index);
}
void MatchIndex::remove(const Shape& shape) { shapes_.remove_all(shape.index); }

std::vector<std::uint32_t> MatchIndex::counters_for(const Shape& shape) const {
  std::vector<std::uint32_t> out;
  counters_.append(place_key(shape.ns), out);
  counters_.append(place_key(kEverywhere), out);
  for (const auto& [key, value] : shape.labels) {
    const Key label = label_key(key, value);
    counters_.append(place_label_key(shape.ns, label), out);
    counters_.append(place_label_key(kEverywhere, label), out);
  }
  if (!shape.owner.empty()) counters_.append(owner_key(shape.owner), out);
  once_each(out);
  return out;
}

std::vector<std::uint32_t> MatchIndex::shapes_for(const Counter& counter) const {
  std::vector<std::uint32_t> out;
  if (counter.kind == Counter::Kind::kOwner) {
    shapes_.append(owner_key(counter.owner), out);
    once_each(out);
    return out;
  }
  if (counter.pods.match_nothing) return out;
  const text::Requirement* label = wanted_label(counter.pods.selector);
  std::uint64_t by_label = UINT64_MAX, by_place = UINT64_MAX;
  if (label != nullptr) {
    by_label = 0;
    for (const auto& value : label->values) by_label += shapes_.size(label_key(label->key, value));
  }
  if (!everywhere(counter.pods)) {
    by_place = 0;
    for (const auto& ns : counter.pods.namespaces) by_place += shapes_.size(place_key(ns));
  }
  if (label != nullptr && by_label <= by_place) {
    for (const auto& value : label->values) shapes_.append(label_key(label->key, value), out);
  } else if (by_place != UINT64_MAX) {
    for (const auto& ns : counter.pods.namespaces) shapes_.append(place_key(ns), out);
  } else {
    shapes_.append_all(out);
  }
  once_each(out);
  return out;
}

}  // namespace berth::model
