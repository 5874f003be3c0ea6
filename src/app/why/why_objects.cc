#include "app/why/why_objects.h"

#include <map>
#include <set>
#include <vector>

#include "app/why/why_kinds.h"
#include "kinds/readers.h"
#include "text/path.h"

namespace berth::app {

namespace {

constexpr int kFetchedPage = 500;

class FetchedPages : public people::ObjectSource {
 public:
  void add(const kube::Resource& resource, text::Document list) {
    documents_.push_back(std::make_unique<const text::Document>(std::move(list)));
    const text::Value* items = documents_.back()->root().find("items");
    if (items == nullptr) return;
    std::vector<people::RawObject>& objects = objects_[resource.kind];
    for (const text::Value& item : items->items()) {
      objects.push_back(
          {resource.api_version(), resource.kind, std::string(text_at(item, "metadata.namespace")),
           std::string(text_at(item, "metadata.name")), std::string(text_at(item, "uid")),
           std::string(text_at(item, "metadata.resourceVersion")), &item});
    }
  }

  std::size_t count(const std::string& kind) const {
    const auto it = objects_.find(kind);
    return it == objects_.end() ? 0 : it->second.size();
  }
  void drop(const std::string& kind) { objects_.erase(kind); }

  std::optional<people::RawObject> find(std::string_view kind, std::string_view ns,
                                        std::string_view name) const override {
    const auto it = objects_.find(kind);
    if (it == objects_.end()) return std::nullopt;
    for (const people::RawObject& object : it->second) {
      if (object.ns == ns && object.name == name) return object;
    }
    return std::nullopt;
  }

  std::vector<people::RawObject> of_kind(std::string_view kind) const override {
    const auto it = objects_.find(kind);
    return it == objects_.end() ? std::vector<people::RawObject>() : it->second;
  }

 private:
  std::vector<std::unique_ptr<const text::Document>> documents_;
  std::map<std::string, std::vector<people::RawObject>, std::less<>> objects_;  // by kind
};

struct WantedList {
  kube::Resource resource;
  std::string ns = {}, field_selector = {};
};

std::vector<WantedList> wanted_for_why(const std::string& ns) {
  namespace r = kube::resources;
  std::vector<WantedList> out = {
      {r::pods(), ns},         {r::jobs(), ns},
      {r::workloads(), ns},    {r::volume_claims(), ns},
      {r::volumes()},          {r::namespaces(), "", "metadata.name=" + ns},
      {r::priority_classes()}, {r::config_maps(), kScalerNamespace, kScalerSelector}};
  for (const kube::Resource& each : kinds_asked(kinds::asked::kRule | kinds::asked::kScaler)) {
    out.push_back({each, each.namespaced ? ns : ""});
  }
  return out;
}

// One question's lists, under way.
class Fetching : public std::enable_shared_from_this<Fetching> {
 public:
  Fetching(kube::Client& client, std::string ns, std::function<void(FetchedObjects)> done)
      : client_(client), ns_(std::move(ns)), done_(std::move(done)) {}

  void start() {
    const std::vector<WantedList> lists = wanted_for_why(ns_);
    open_ = lists.size();
    for (const WantedList& list : lists) ask(list, {});
  }

 private:
  void ask(const WantedList& list, const std::string& next) {
    kube::ListOptions options;
    options.ns = list.ns;
    options.field_selector = list.field_selector;
    options.limit = kFetchedPage;
    options.next = next;
    client_.list(list.resource, options, [self = shared_from_this(), list](kube::Answer answer) {
      self->answered(list, std::move(answer));
    });
  }

  void answered(const WantedList& list, kube::Answer answer) {
    const kube::Resource& resource = list.resource;
    if (!answer.ok()) return close(resource, false);
    std::string next;
    if (const text::Value* token = find(answer.body.root(), "metadata.continue")) {
      next = token->string();
    }
    pages_->add(resource, std::move(answer.body));
    if (next.empty()) return close(resource, true);
    if (pages_->count(resource.kind) >= kMostFetched) return close(resource, false);
    ask(list, next);
  }

  void close(const kube::Resource& resource, bool whole) {
    if (!whole) partial_.insert(resource.kind);
    if (--open_ > 0) return;
    for (const std::string& kind : partial_) {
      // What is asked about may be in the part that came.
      const bool own = kind == "Pod" || kind == "Job" || kind == "Workload";
      if (!own) pages_->drop(kind);
    }
    // Who uses a quota, and which volumes are free, cannot be told from some of them.
    if (partial_.contains("Pod")) pages_->drop("ResourceQuota");
    if (partial_.contains("PersistentVolume")) pages_->drop("StorageClass");
    done_(pages_);
  }

  kube::Client& client_;
  std::string ns_;
  std::function<void(FetchedObjects)> done_;
  std::shared_ptr<FetchedPages> pages_ = std::make_shared<FetchedPages>();
  std::set<std::string> partial_;
  std::size_t open_ = 0;
};

}  // namespace

void fetch_why_objects(kube::Client& client, const std::string& ns,
                       std::function<void(FetchedObjects)> done) {
  std::make_shared<Fetching>(client, ns, std::move(done))->start();
}

}  // namespace berth::app
