#include "kinds/queued_maker.h"

#include <algorithm>
#include <functional>
#include <span>

#include "kinds/kueue_workload.h"
#include "kinds/names.h"

namespace berth::kinds {

namespace {

using text::Decoder;
using text::Value;

// As an owner of that kind is written; a list does not repeat the kind of its items.
std::string owner_text(const PodMaker& maker, const std::string& name) {
  const auto rows = kind_table();
  const auto row =
      std::find_if(rows.begin(), rows.end(), [&](const KindRow& r) { return r.maker == &maker; });
  return Owner{
      .api_version = row->api_version(), .kind = std::string(row->kind), .name = name, .uid = {}}
      .text();
}

// Reads at the end of the path, with the path as where errors are.
void read_at(const Value& from, std::span<const std::string> path, Decoder& d,
             const std::function<void(const Value&)>& read) {
  if (path.empty()) return read(from);
  const Value* next = text::step_down(from, path.front());
  if (next == nullptr) return;
  const auto go_on = [&] { read_at(*next, path.subspan(1), d, read); };
  if (from.is_array()) {
    Decoder::Step step(d, std::stoul(path.front()));
    go_on();
  } else {
    Decoder::Step step(d, path.front());
    go_on();
  }
}

void read_sets(const Value& v, const PodMaker& maker, QueuedMaker& out, Decoder& d) {
  std::vector<PodSetAt> sets;
  maker.pod_sets(v, sets);
  std::int64_t all = 0;
  const auto wrong = [&](std::string found, std::string want) {
    Decoder::Step spec(d, "spec");
    d.error(at(v, "spec"), std::move(found), std::move(want));
  };
  if (sets.size() > kMostPodSets) {
    return wrong(std::to_string(sets.size()) + " pod sets and more",
                 "at most " + std::to_string(kMostPodSets));
  }
  for (PodSetAt& at_set : sets) {
    if (at_set.count == 0) continue;
    const auto same = [&](const QueuedMaker::Set& other) { return other.name == at_set.name; };
    const Value* made_of = value_at(v, at_set.path);
    if (made_of == nullptr || !at(*made_of, "spec").is_object()) {
      return wrong("no template of pod set " + quoted(at_set.name), "one with a spec");
    }
    all += at_set.count;
    if (all > kMaxJobPods) {
      return wrong(std::to_string(all) + " pods and more",
                   "at most " + std::to_string(kMaxJobPods) + " of one object");
    }
    if (!is_dns_label(at_set.name)) {
      return wrong("pod set " + quoted(at_set.name),
                   "a name that is a DNS label: at most 63 of a-z 0-9 -");
    }
    if (std::any_of(out.sets.begin(), out.sets.end(), same)) {
      return wrong("two pod sets " + quoted(at_set.name), "each name once");
    }
    QueuedMaker::Set set{
        std::move(at_set.name), std::move(at_set.path), static_cast<int>(at_set.count), {}};
    read_at(v, set.path, d, [&](const Value& pod_template) {
      decode_template(pod_template, out.meta.ns, set.pod, d);
    });
    out.sets.push_back(std::move(set));
  }
}

}  // namespace

void decode_queued_maker(const Value& v, const PodMaker& maker, QueuedMaker& out, Decoder& d) {
  read_meta(v, Scope::kNamespaced, out.meta, d);
  out.owner = owner_text(maker, out.meta.name);
  out.rests = rests(maker, v);
  out.ended = maker.ended(v);
  const std::size_t before = d.errors();
  read_sets(v, maker, out, d);
  out.unread = d.errors() != before;
  if (out.unread) out.sets.clear();
}

}  // namespace berth::kinds
