#include "app/views/cluster_view.h"

#include <algorithm>
#include <optional>
#include <tuple>

#include "app/input.h"
#include "app/next_step.h"
#include "app/views/cluster_lister.h"
#include "app/views/snapshot_text.h"
#include "edge/kube/config.h"
#include "kinds/queue_marks.h"
#include "kinds/readers.h"
#include "text/escape.h"
#include "text/path.h"
#include "text/rfc3339.h"

namespace berth::app {

namespace {

using text::Value;

constexpr int kMaxListDepth = 4;

bool cluster_wide(std::string_view kind) {
  constexpr std::string_view kKinds[] = {"AdmissionCheck",
                                         "ClusterQueue",
                                         "Cohort",
                                         "CustomResourceDefinition",
                                         "GpuNode",
                                         "MutatingWebhookConfiguration",
                                         "Namespace",
                                         "Node",
                                         "PersistentVolume",
                                         "PriorityClass",
                                         "Queue",
                                         "ResourceFlavor",
                                         "Topology",
                                         "ValidatingWebhookConfiguration",
                                         "WorkloadPriorityClass"};
  return std::find(std::begin(kKinds), std::end(kKinds), kind) != std::end(kKinds);
}

auto order_of(const ObjectFacts& o) { return std::tie(o.kind, o.ns, o.name, o.api_version); }

// A pod that another scheduler has yet to place; those of queues count.
bool waits_for_others(const Value& pod, const std::vector<std::string>& ours) {
  if (!text_at(pod, "spec.nodeName").empty()) return false;
  if (!at(pod, "metadata.labels")[kinds::kQueueLabel].string().empty()) return false;
  std::string_view name = text_at(pod, "spec.schedulerName");
  if (name.empty()) name = "default-scheduler";
  return std::find(ours.begin(), ours.end(), name) == ours.end();
}

// Collects documents, then makes the view of them.
class ViewMaker {
 public:
  ViewMaker(const ViewOptions& options, ClusterView& out) : options_(options), out_(out) {}

  void add(std::string source, int number, std::shared_ptr<const text::Document> document) {
    index(document->root(), "", "", 0);
    kept_.push_back({std::move(source), number, std::move(document)});
  }

  void finish() {
    kinds::ManifestReader reader({.live = out_.live});
    for (const Kept& kept : kept_) {
      if (out_.live) {
        reader.add(kept.source, kept.number, without_strangers(kept.document->root()));
      } else {
        reader.add(kept.source, kept.number, *kept.document);
      }
      out_.documents.push_back(kept.document);
    }
    out_.inputs = reader.finish();
    std::sort(out_.objects.begin(), out_.objects.end(),
              [](const ObjectFacts& a, const ObjectFacts& b) { return order_of(a) < order_of(b); });
  }

  // All documents are Lists that say when they were taken; the latest of these times.
  std::optional<std::int64_t> taken_ns() const {
    std::optional<std::int64_t> latest;
    for (const Kept& kept : kept_) {
      const Result<std::int64_t> taken = text::parse_rfc3339(annotation(kept, kTakenAnnotation));
      if (!taken.ok()) return std::nullopt;
      latest = std::max(latest.value_or(*taken), *taken);
    }
    return latest;
  }

  void take_marks() {
    for (const Kept& kept : kept_) {
      split_lines(annotation(kept, kUnseenAnnotation), out_.unseen);
      split_lines(annotation(kept, kAbsentAnnotation), out_.absent);
      out_.server_version = annotation(kept, kVersionAnnotation);
      if (const std::string_view server = annotation(kept, kServerAnnotation); !server.empty()) {
        out_.source += " (" + text::terminal_safe(server) + ')';
      }
    }
  }

 private:
  struct Kept {
    std::string source;
    int number = 0;
    std::shared_ptr<const text::Document> document;
  };

  static std::string_view annotation(const Kept& kept, std::string_view name) {
    const Value& root = kept.document->root();
    if (text_at(root, "kind") != "List") return {};
    return at(root, "metadata.annotations")[name].string();
  }

  static void split_lines(std::string_view text, std::vector<std::string>& out) {
    while (!text.empty()) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      if (end > 0) out.emplace_back(text.substr(0, end));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
  }

  void index(const Value& v, std::string_view version, std::string_view kind, int depth) {
    if (!v.is_object()) return;
    if (const std::string_view given = text_at(v, "apiVersion"); !given.empty()) {
      version = given;
    }
    if (const std::string_view given = text_at(v, "kind"); !given.empty()) kind = given;
    const Value* items = v.find("items");
    if (kind.ends_with("List") && items != nullptr) {
      if (depth >= kMaxListDepth) return;
      const bool typed = kind != "List";
      for (const Value& item : items->items()) {
        index(item, typed ? version : "", typed ? kind.substr(0, kind.size() - 4) : "", depth + 1);
      }
      return;
    }
    const std::string_view name = text_at(v, "metadata.name");
    if (kind.empty() || name.empty()) return;
    std::string_view ns = text_at(v, "metadata.namespace");
    if (cluster_wide(kind)) {
      ns = {};
    } else if (ns.empty()) {
      ns = "default";
    }
    out_.objects.push_back({std::string(version), std::string(kind), std::string(ns),
                            std::string(name), std::string(text_at(v, "metadata.uid")),
                            std::string(text_at(v, "metadata.resourceVersion")), &v});
  }

  // The same list without what a controller does not look at; values stay where they are.
  text::Document without_strangers(const Value& list) const {
    const Value* items = list.find("items");
    if (items == nullptr || !items->is_array()) return text::Document({}, list);
    const bool pods = text_at(list, "kind") == "PodList";
    text::Arena arena;
    Value* kept = arena.allocate<Value>(items->size());
    std::size_t count = 0;
    for (const Value& item : items->items()) {
      const bool is_pod = pods || text_at(item, "kind") == "Pod";
      if (is_pod && waits_for_others(item, options_.scheduler_names)) continue;
      new (kept + count++) Value(item);
    }
    text::Member* members = arena.allocate<text::Member>(list.size());
    std::size_t at = 0;
    for (const text::Member& member : list.members()) {
      const bool is_items = member.key == "items";
      new (members + at++) text::Member{
          member.key, is_items ? Value::make_array({kept, count}, items->line()) : member.value};
    }
    const Value root = Value::make_object({members, at}, list.line());
    return {std::move(arena), root};
  }

  const ViewOptions& options_;
  ClusterView& out_;
  std::vector<Kept> kept_;
};

Error unreadable(const std::vector<kinds::Note>& notes) {
  constexpr std::size_t kMost = 5;
  std::string out;
  for (std::size_t i = 0; i < notes.size() && i < kMost; ++i) {
    const kinds::Note& note = notes[i];
    if (!out.empty()) out += "; ";
    out += note.source;
    if (note.line > 0) out += ":" + std::to_string(note.line);
    out += ": " + note.message;
  }
  if (notes.size() > kMost) out += "; +" + std::to_string(notes.size() - kMost) + " more";
  return invalid(std::move(out));
}

Result<ClusterView> look_at_files(const ViewOptions& options, Terminal& terminal) {
  ClusterView view;
  view.saved = true;
  view.ns = options.ns.empty() ? "default" : options.ns;
  view.now_ns = terminal.wall.now_ns();
  ViewMaker maker(options, view);
  Progress progress(terminal.err_is_terminal ? &terminal.err : nullptr, terminal.monotonic);
  InputOptions input;
  input.paths = options.files;
  input.keep = [&maker](const std::string& file, int number, text::Document document) {
    maker.add(file, number, std::make_shared<const text::Document>(std::move(document)));
  };
  const Input read = read_input(input, terminal.in, progress);
  if (!read.unreadable.empty()) return unreadable(read.unreadable);
  view.source =
      options.files.size() == 1 ? options.files.front() : std::to_string(read.files) + " files";
  if (const std::optional<std::int64_t> taken = maker.taken_ns()) {
    view.live = true;
    view.now_ns = *taken;
    maker.take_marks();
  }
  maker.finish();
  if (view.objects.empty() && !view.inputs.invalid.empty()) return unreadable(view.inputs.invalid);
  return view;
}

Result<kube::Config> config_for(const ViewOptions& options, const Terminal& terminal) {
  Result<kube::Config> config = kube::find_config(options, terminal.environment);
  if (config.ok()) return config;
  return no_config(config.error(), InputKind::kClusterOrFiles);
}

Result<ClusterView> look_at_cluster(const ViewOptions& options, Terminal& terminal) {
  BERTH_TRY(const kube::Config config, config_for(options, terminal));
  ClusterView view;
  view.live = true;
  view.ns = options.ns.empty() ? config.ns : options.ns;
  Result<Listed> listed = list_cluster(config, view.ns, terminal,
                                       options.for_why ? ListExtent::kWhy : ListExtent::kDecided);
  if (!listed.ok()) return no_answer(listed.error(), InputKind::kClusterOrFiles);
  view.source = "cluster " + config.server;
  view.now_ns = terminal.wall.now_ns();
  view.unseen = std::move(listed->unseen);
  view.absent = std::move(listed->absent);
  view.server_version = listed->version.text;
  ViewMaker maker(options, view);
  int number = 0;
  for (ListedPage& page : listed->pages) maker.add("cluster", ++number, std::move(page.document));
  maker.finish();
  return view;
}

}  // namespace

const ObjectFacts* ClusterView::find(std::string_view kind, std::string_view space,
                                     std::string_view name) const {
  const auto wanted = std::tie(kind, space, name);
  const auto it = std::lower_bound(
      objects.begin(), objects.end(), wanted, [](const ObjectFacts& o, const auto& key) {
        return std::tuple<std::string_view, std::string_view, std::string_view>(o.kind, o.ns,
                                                                                o.name) < key;
      });
  if (it == objects.end() || it->kind != kind || it->ns != space || it->name != name)
    return nullptr;
  return &*it;
}

std::span<const ObjectFacts> ClusterView::of_kind(std::string_view kind) const {
  const auto first = std::lower_bound(
      objects.begin(), objects.end(), kind,
      [](const ObjectFacts& o, std::string_view wanted) { return o.kind < wanted; });
  auto last = first;
  while (last != objects.end() && last->kind == kind) ++last;
  return {first, last};
}

bool ClusterView::hides(std::string_view what) const {
  return std::any_of(unseen.begin(), unseen.end(), [what](const std::string& name) {
    return name.starts_with(what) && (name.size() == what.size() || name[what.size()] == ' ');
  });
}

Status ClusterView::sees(std::string_view what) const {
  for (const std::string& name : unseen) {
    if (!name.starts_with(what)) continue;
    const std::string_view rest = std::string_view(name).substr(what.size());
    if (!rest.empty() && !rest.starts_with(" (")) continue;  // some were seen
    return Error(Code::kUnavailable, rest.empty() ? "you may not list " + name +
                                                        "; kubectl auth can-i --list says what "
                                                        "you may, a snapshot of somebody who "
                                                        "may helps as well (-f)"
                                                  : "not seen: " + name);
  }
  return {};
}

Result<ClusterView> look(const ViewOptions& options, Terminal& terminal) {
  std::optional<std::int64_t> now;
  if (!options.now.empty()) {
    Result<std::int64_t> given = text::parse_rfc3339(options.now);
    if (!given.ok()) return invalid("--now: " + given.error().to_string());
    now = *given;
  }
  Result<ClusterView> view =
      options.files.empty() ? look_at_cluster(options, terminal) : look_at_files(options, terminal);
  if (view.ok() && now) view->now_ns = *now;
  return view;
}

Result<std::string> snapshot_of(const ViewOptions& options, bool arguments, Terminal& terminal) {
  BERTH_TRY(const kube::Config config, config_for(options, terminal));
  Result<Listed> listed = list_cluster(config, options.ns.empty() ? config.ns : options.ns,
                                       terminal, ListExtent::kWhole);
  if (!listed.ok()) return no_answer(listed.error(), InputKind::kCluster);
  return snapshot_text(*listed, config.server, terminal.wall.now_ns(), arguments);
}

}  // namespace berth::app
