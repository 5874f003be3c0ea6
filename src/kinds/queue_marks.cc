#include "kinds/queue_marks.h"

#include <algorithm>

#include "kinds/kueue_workload.h"
#include "kinds/names.h"
#include "text/json.h"

namespace berth::kinds {

namespace {

constexpr std::string_view kSliceLevel = "kueue.x-k8s.io/podset-slice-required-topology";
constexpr std::string_view kSliceSize = "kueue.x-k8s.io/podset-slice-size";
constexpr std::string_view kSliceConstraints =
    "kueue.x-k8s.io/podset-slice-required-topology-constraints";
constexpr std::string_view kUnconstrained = "kueue.x-k8s.io/podset-unconstrained-topology";
constexpr std::string_view kPodSetGroup = "kueue.x-k8s.io/podset-group-name";

BadMark bad_annotation(std::string_view key, const std::string& found, std::string want) {
  return {mark_path("annotations", key), "found " + quoted(found) + ", want " + std::move(want)};
}

std::optional<BadMark> read_number(const std::string* text, std::string_view kind,
                                   std::string_view key, std::int64_t most, int& out) {
  if (text == nullptr) return std::nullopt;
  std::int64_t number = 0;
  if (!parse_int(*text, number) || number < 1 || number > most) {
    return BadMark{mark_path(kind, key),
                   "found " + quoted(*text) + ", want a whole number 1.." + std::to_string(most)};
  }
  out = static_cast<int>(number);
  return std::nullopt;
}

// [{"topology": "rack", "size": 4}, ...], outermost first; a size may be written as text.
std::optional<BadMark> read_slice_constraints(const Meta& meta, int count,
                                              model::TopologyAsk& out) {
  const std::string& text = *meta.annotation(kSliceConstraints);
  const auto bad = [&text](std::string want) {
    return bad_annotation(kSliceConstraints, text, std::move(want));
  };
  const auto document = text::parse_json(text);
  const bool list = document.ok() && document->root().is_array();
  if (!list || document->root().size() == 0 || document->root().size() > 3) {
    return bad("a JSON array of 1 to 3 objects with topology and size");
  }
  for (const text::Value& item : document->root().items()) {
    const text::Value* level = item.find("topology");
    const text::Value* size = item.find("size");
    std::int64_t number = 0;
    const bool sized =
        size != nullptr &&
        (size->is_string() ? parse_int(size->string(), number)
                           : size->is_number() && parse_int(size->number_text(), number));
    if (level == nullptr || !is_topology_value(level->string()) || !sized || number < 1 ||
        number > kMaxJobPods || item.size() != 2) {
      return bad("a node label key as topology and a whole number as size in each");
    }
    out.slices.push_back({std::string(level->string()), static_cast<int>(number)});
  }
  const std::string wrong = slices_wrong(out.slices, count);
  if (!wrong.empty()) return bad(wrong);
  return std::nullopt;
}

std::optional<BadMark> read_slices(const Meta& meta, int count, model::TopologyAsk& out) {
  const std::string* level = meta.annotation(kSliceLevel);
  const std::string* size_text = meta.annotation(kSliceSize);
  if (const std::string* text = meta.annotation(kSliceConstraints)) {
    if (level == nullptr && size_text == nullptr) return read_slice_constraints(meta, count, out);
    return bad_annotation(kSliceConstraints, *text,
                          "it, or " + std::string(kSliceLevel) + " with its size, not both");
  }
  if (level == nullptr && size_text == nullptr) return std::nullopt;
  if (level == nullptr || size_text == nullptr) {
    const std::string_view missing = level == nullptr ? kSliceLevel : kSliceSize;
    return BadMark{mark_path("annotations", missing),
                   "found nothing, want it beside " +
                       std::string(level == nullptr ? kSliceSize : kSliceLevel)};
  }
  if (!is_topology_value(*level)) return bad_annotation(kSliceLevel, *level, "a node label key");
  int size = 0;
  if (auto bad = read_number_annotation(meta, kSliceSize, kMaxJobPods, size)) return bad;
  out.slices = {{*level, size}};
  const std::string wrong = slices_wrong(out.slices, count);
  if (!wrong.empty()) return bad_annotation(kSliceSize, *size_text, wrong);
  return std::nullopt;
}

}  // namespace

bool QueueDoor::takes(const std::string& ns) const {
  return all || std::binary_search(names.begin(), names.end(), ns);
}

QueueDoor parse_queue_door(std::string_view text) {
  QueueDoor out{.given = true, .all = text == "*", .bad = false, .names = {}};
  if (out.all) return out;
  std::string_view rest = text;
  while (!out.bad) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    std::string_view name = rest.substr(0, comma);
    while (name.starts_with(' ')) name.remove_prefix(1);
    while (name.ends_with(' ')) name.remove_suffix(1);
    out.bad = !is_dns_label(name);
    out.names.emplace_back(name);
    if (comma == rest.size()) break;
    rest.remove_prefix(comma + 1);
  }
  std::sort(out.names.begin(), out.names.end());
  if (out.bad) out.names.clear();
  return out;
}

std::optional<BadMark> read_queue_door(const Meta& meta, QueueDoor& out) {
  const std::string* text = meta.annotation(kNamespacesAnnotation);
  if (text == nullptr) return std::nullopt;
  out = parse_queue_door(*text);
  if (!out.bad) return std::nullopt;
  return bad_annotation(kNamespacesAnnotation, *text,
                        "names of namespaces with commas between them, or *; the queue takes "
                        "nobody");
}

std::string label_value(const Meta& meta, std::string_view key) {
  const auto it = meta.labels.find(key);
  return it == meta.labels.end() ? "" : it->second;
}

std::string label_or_annotation(const Meta& meta, std::string_view key) {
  const std::string label = label_value(meta, key);
  const std::string* annotation = meta.annotation(key);
  return label.empty() && annotation != nullptr ? *annotation : label;
}

std::string mark_path(std::string_view kind, std::string_view key) {
  return "metadata." + std::string(kind) + "[\"" + std::string(key) + "\"]";
}

std::optional<BadMark> read_topology_ask(const Meta& meta, const TopologyRequest& named, int count,
                                         model::TopologyAsk& out) {
  using Mode = model::TopologyAsk::Mode;
  bool unconstrained = false;
  if (const std::string* text = meta.annotation(kUnconstrained)) {
    if (*text != "true" && *text != "false") {
      return bad_annotation(kUnconstrained, *text, "\"true\" or \"false\"");
    }
    unconstrained = *text == "true";
    if (unconstrained && !named.empty()) {
      return bad_annotation(kUnconstrained, *text, "no required or preferred topology beside it");
    }
  }
  out.mode = !named.required.empty()    ? Mode::kRequired
             : !named.preferred.empty() ? Mode::kPreferred
             : unconstrained            ? Mode::kUnconstrained
                                        : Mode::kNone;
  out.level = named.required.empty() ? named.preferred : named.required;
  if (const std::string* group = meta.annotation(kPodSetGroup)) {
    if (out.level.empty()) {
      return bad_annotation(kPodSetGroup, *group, "a required or preferred topology beside it");
    }
    out.group = *group;
  }
  return read_slices(meta, count, out);
}

void read_charge(std::string_view text, model::PodSpec& out) {
  if (text == "none") text = {};
  // Neither queues nor workloads have a slash in their names.
  const bool of_kueue = text.starts_with(kKueueCharge);
  const std::size_t end =
      std::min(of_kueue ? text.find('/', kKueueCharge.size()) : text.size(), text.size());
  out.charged = text.substr(0, end);
  out.let_in_by = text.substr(std::min(end + 1, text.size()));
}

std::optional<BadMark> read_number_label(const Meta& meta, std::string_view key, std::int64_t most,
                                         int& out) {
  const auto it = meta.labels.find(key);
  return read_number(it == meta.labels.end() ? nullptr : &it->second, "labels", key, most, out);
}

std::optional<BadMark> read_number_annotation(const Meta& meta, std::string_view key,
                                              std::int64_t most, int& out) {
  return read_number(meta.annotation(key), "annotations", key, most, out);
}

}  // namespace berth::kinds
