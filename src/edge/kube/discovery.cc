#include "edge/kube/discovery.h"

#include <charconv>
#include <memory>
#include <optional>

#include "text/path.h"

namespace berth::kube {
namespace {

constexpr const char* kAggregated =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";
constexpr std::size_t kMaxResources = 100'000;

std::vector<std::string> texts_in(const text::Value& object, std::string_view key) {
  std::vector<std::string> out;
  const text::Value* found = object.find(key);
  if (!found) return out;
  for (const text::Value& item : found->items()) out.emplace_back(item.string());
  return out;
}

int leading_number(std::string_view text) {  // "37+" is 37
  int number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

text::HttpRequest discovery_request(std::string target, const char* accept) {
  return {"GET", std::move(target), {{"Accept", accept}}, {}};
}

// One round of questions; the last answer ends it.
struct Asking : std::enable_shared_from_this<Asking> {
  Asking(Client& client_in, std::function<void(Result<ServerResources>)> done_in)
      : client(client_in), done(std::move(done_in)) {}

  void ask(const std::string& target, const char* accept,
           void (Asking::*then)(const text::Value&)) {
    ++open;
    client.raw(discovery_request(target, accept), {.timeout_ns = client.options().timeout_ns},
               [self = shared_from_this(), then, target](const Answer& answer) {
                 if (answer.ok()) {
                   ((*self).*then)(answer.body.root());
                 } else if (!self->problem && !answer.not_found()) {
                   self->problem = answer.error().context(target);
                 }
                 self->closed();
               });
  }
  void closed() {
    if (--open > 0) return;
    if (problem && found.all().empty()) return done(std::move(*problem));
    done(std::move(found));
  }
  void groups(const text::Value& answer) {
    if (read_group_discovery(answer, found)) return;
    for (std::string& version : texts_in(answer, "versions")) {  // APIVersions of /api
      ask("/api/" + version, "application/json", &Asking::resources);
    }
    const text::Value* list = answer.find("groups");
    if (!list) return;
    for (const text::Value& group : list->items()) {
      const text::Value* versions = group.find("versions");
      if (!versions) continue;
      for (const text::Value& version : versions->items()) {
        std::string name(text_at(version, "groupVersion"));
        if (!name.empty()) ask("/apis/" + name, "application/json", &Asking::resources);
      }
    }
  }
  void resources(const text::Value& answer) { read_resource_list(answer, found); }

  Client& client;
  std::function<void(Result<ServerResources>)> done;
  ServerResources found;
  std::optional<Error> problem;
  int open = 0;
};

}  // namespace

void ask_version(Client& client, std::function<void(Result<ServerVersion>)> done) {
  client.raw(discovery_request("/version", "application/json"),
             {.timeout_ns = client.options().timeout_ns},
             [done = std::move(done)](const Answer& answer) {
               if (!answer.ok()) return done(answer.error().context("/version"));
               const text::Value& root = answer.body.root();
               ServerVersion version;
               version.major = leading_number(text_at(root, "major"));
               version.minor = leading_number(text_at(root, "minor"));
               version.text = text_at(root, "gitVersion");
               if (version.major == 0) return done(invalid("/version: this is no Kubernetes"));
               done(std::move(version));
             });
}

void ask_resources(Client& client, std::function<void(Result<ServerResources>)> done) {
  auto asking = std::make_shared<Asking>(client, std::move(done));
  asking->ask("/api", kAggregated, &Asking::groups);
  asking->ask("/apis", kAggregated, &Asking::groups);
}

bool read_group_discovery(const text::Value& list, ServerResources& out) {
  if (text_at(list, "kind") != "APIGroupDiscoveryList") return false;
  const text::Value* items = list.find("items");
  if (!items) return true;
  for (const text::Value& group : items->items()) {
    const text::Value* metadata = group.find("metadata");
    const std::string group_name(metadata ? text_at(*metadata, "name") : "");
    const text::Value* versions = group.find("versions");
    if (!versions) continue;
    for (const text::Value& version : versions->items()) {
      const text::Value* resources = version.find("resources");
      if (!resources) continue;
      for (const text::Value& resource : resources->items()) {
        FoundResource found;
        found.resource.group = group_name;
        found.resource.version = text_at(version, "version");
        found.resource.plural = text_at(resource, "resource");
        if (const text::Value* kind = resource.find("responseKind")) {
          found.resource.kind = text_at(*kind, "kind");
        }
        found.resource.namespaced = text_at(resource, "scope") == "Namespaced";
        found.verbs = texts_in(resource, "verbs");
        if (const text::Value* subs = resource.find("subresources")) {
          for (const text::Value& sub : subs->items()) {
            found.subresources.emplace_back(text_at(sub, "subresource"));
          }
        }
        out.add(std::move(found));
      }
    }
  }
  return true;
}

void read_resource_list(const text::Value& list, ServerResources& out) {
  const std::string_view name = text_at(list, "groupVersion");
  const std::size_t slash = name.find('/');
  const text::Value* resources = list.find("resources");
  if (!resources) return;
  for (const text::Value& resource : resources->items()) {
    FoundResource found;
    found.resource.group =
        slash == std::string_view::npos ? "" : std::string(name.substr(0, slash));
    found.resource.version = slash == std::string_view::npos ? name : name.substr(slash + 1);
    found.resource.plural = text_at(resource, "name");
    if (found.resource.plural.find('/') != std::string::npos) continue;  // a subresource
    found.resource.kind = text_at(resource, "kind");
    const text::Value* namespaced = resource.find("namespaced");
    found.resource.namespaced = namespaced && namespaced->as_bool();
    found.verbs = texts_in(resource, "verbs");
    for (const text::Value& other : resources->items()) {
      std::string_view full = text_at(other, "name");
      if (full.starts_with(found.resource.plural + "/")) {
        found.subresources.emplace_back(full.substr(found.resource.plural.size() + 1));
      }
    }
    out.add(std::move(found));
  }
}

void ServerResources::add(FoundResource found) {
  const Resource& r = found.resource;
  if (r.plural.empty() || r.version.empty() || all_.size() >= kMaxResources) return;
  if (!names_.insert(r.group + "/" + r.version + "/" + r.plural).second) return;
  groups_.insert(r.group + "/" + r.version);
  all_.push_back(std::move(found));
}

bool ServerResources::has(const Resource& r) const {
  return names_.contains(r.group + "/" + r.version + "/" + r.plural);
}

bool ServerResources::has_group(const std::string& group, const std::string& version) const {
  return groups_.contains(group + "/" + version);
}

const FoundResource* ServerResources::find(const std::string& group,
                                           const std::string& plural) const {
  for (const FoundResource& found : all_) {
    if (found.resource.group == group && found.resource.plural == plural) return &found;
  }
  return nullptr;
}

bool ServerResources::pod_groups() const {
  return find("scheduling.k8s.io", "podgroups") || find("scheduling.k8s.io", "workloads");
}

}  // namespace berth::kube
