#include "app/why_objects.h"

#include <array>
#include <vector>

#include "objects/readers.h"

namespace berth::app {

namespace {

constexpr int kMostFetched = 500;

std::string text_in(const text::Value& v, std::string_view key) {
  const text::Value* found = objects::find_in(v, {"metadata", key});
  return found == nullptr ? std::string() : std::string(found->string());
}

class FetchedPages : public explain::ObjectSource {
 public:
  void add(const kube::Resource& resource, text::Document list) {
    documents_.push_back(std::make_unique<const text::Document>(std::move(list)));
    const text::Value* items = documents_.back()->root().find("items");
    if (items == nullptr) return;
    for (const text::Value& item : items->items()) {
      objects_.push_back({resource.api_version(), resource.kind, text_in(item, "namespace"),
                          text_in(item, "name"), text_in(item, "uid"),
                          text_in(item, "resourceVersion"), &item});
    }
  }

  std::optional<explain::RawObject> find(std::string_view kind, std::string_view ns,
                                         std::string_view name) const override {
    for (const explain::RawObject& object : objects_) {
      if (object.kind == kind && object.ns == ns && object.name == name) return object;
    }
    return std::nullopt;
  }

  std::vector<explain::RawObject> of_kind(std::string_view kind) const override {
    std::vector<explain::RawObject> out;
    for (const explain::RawObject& object : objects_) {
      if (object.kind == kind) out.push_back(object);
    }
    return out;
  }

 private:
  std::vector<std::unique_ptr<const text::Document>> documents_;
  std::vector<explain::RawObject> objects_;
};

struct Fetching {
  std::shared_ptr<FetchedPages> pages = std::make_shared<FetchedPages>();
  std::size_t open = 0;
  std::function<void(FetchedObjects)> done;
};

}  // namespace

void fetch_why_objects(kube::Client& client, const std::string& ns,
                       std::function<void(FetchedObjects)> done) {
  auto fetching = std::make_shared<Fetching>();
  fetching->done = std::move(done);
  struct Place {
    kube::Resource resource;
    std::string ns, field_selector = {};
  };
  const std::array kinds = {
      Place{kube::resources::pods(), ns},
      Place{kube::resources::jobs(), ns},
      Place{kube::resources::workloads(), ns},
      // What autoscalers write: explain/autoscaler.h.
      Place{kube::resources::config_maps(), "kube-system",
            "metadata.name=cluster-autoscaler-status"},
      Place{{"karpenter.sh", "v1", "nodepools", "NodePool", false}, ""},
      Place{{"karpenter.sh", "v1", "nodeclaims", "NodeClaim", false}, ""},
      Place{{"autoscaling.x-k8s.io", "v1", "provisioningrequests", "ProvisioningRequest", true},
            ns}};
  fetching->open = kinds.size();
  for (const auto& [resource, where, field_selector] : kinds) {
    kube::ListOptions options;
    options.ns = where;
    options.field_selector = field_selector;
    options.limit = kMostFetched;
    client.list(resource, options, [fetching, resource = resource](kube::Answer answer) {
      if (answer.ok()) fetching->pages->add(resource, std::move(answer.body));
      if (--fetching->open == 0) fetching->done(fetching->pages);
    });
  }
}

}  // namespace berth::app
