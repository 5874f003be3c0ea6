#include "explain/server_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "explain/behind.h"
#include "explain/words.h"
#include "objects/pod_spec.h"
#include "text/nearest.h"
#include "text/quantity.h"

namespace berth::explain {

namespace {

using model::Amounts;
using model::Reason;
using text::Value;

constexpr int kMostMade = 256;

const Value* deeper(const Value* at, std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys) {
    if (at == nullptr) return nullptr;
    at = at->find(key);
  }
  return at;
}

std::string text_below(const Value* at, std::initializer_list<std::string_view> keys) {
  const Value* found = deeper(at, keys);
  return found == nullptr ? std::string() : std::string(found->string());
}

std::int64_t number_below(const Value* at, std::initializer_list<std::string_view> keys,
                          std::int64_t otherwise) {
  const Value* found = deeper(at, keys);
  return found == nullptr ? otherwise : found->as_int64().value_or(otherwise);
}

std::span<const Value> items_below(const Value* at, std::initializer_list<std::string_view> keys) {
  const Value* found = deeper(at, keys);
  return found == nullptr ? std::span<const Value>() : found->items();
}

// Of a kind that has no namespace, whatever the source makes of that.
std::optional<RawObject> of_cluster(const ObjectSource& objects, std::string_view kind,
                                    const std::string& name) {
  for (RawObject& raw : objects.of_kind(kind)) {
    if (raw.name == name) return std::move(raw);
  }
  return std::nullopt;
}

// cpu in thousandths, everything else in pieces or bytes, as the model counts.
std::optional<std::int64_t> amount_in(std::string_view resource, const Value& v) {
  const auto parsed = text::parse_quantity(v.is_number() ? v.number_text() : v.string());
  if (!parsed.ok()) return std::nullopt;
  return resource.ends_with("cpu") ? parsed->milli_value() : parsed->value();
}

std::string show_amount(std::string_view resource, std::int64_t amount) {
  if (resource.ends_with("cpu")) return text::Quantity::from_milli(amount).to_string();
  const bool bytes = resource.ends_with("memory") || resource.ends_with("storage") ||
                     resource.find("hugepages-") != std::string_view::npos;
  return text::Quantity::from_units(amount,
                                    bytes ? text::Format::kBinarySI : text::Format::kDecimalSI)
      .to_string();
}

Amounts amounts_below(const Value* at, std::initializer_list<std::string_view> keys) {
  Amounts out;
  const Value* found = deeper(at, keys);
  if (found == nullptr) return out;
  for (const text::Member& member : found->members()) {
    if (const auto amount = amount_in(member.key, member.value)) {
      out.emplace(std::string(member.key), *amount);
    }
  }
  return out;
}

// A template as written, and what its pods ask for.
struct Template {
  const RawObject* object = nullptr;
  const Value* spec = nullptr;
  objects::RawPodSpec pod;
  Amounts requests, limits;
  int fresh = 0;  // pods of it that are yet to be made
};

bool read_spec(const Value& spec, Template& out) {
  text::Decoder decoder;
  decode(spec, out.pod, decoder);
  if (!decoder.ok()) return false;
  const objects::Resources* level = out.pod.pod_level ? &*out.pod.pod_level : nullptr;
  objects::Containers limited = out.pod.containers;
  for (auto* list : {&limited.init, &limited.app}) {
    for (objects::Container& each : *list) each.resources.requests = each.resources.limits;
  }
  return objects::effective_requests(out.pod.containers, level, out.pod.overhead, out.requests) &&
         objects::effective_requests(limited, nullptr, out.pod.overhead, out.limits);
}

bool has_ended(const Value& pod) {
  const std::string phase = text_below(&pod, {"status", "phase"});
  return phase == "Succeeded" || phase == "Failed";
}

bool owned_by(const Value& pod, const RawObject& owner) {
  for (const Value& each : items_below(&pod, {"metadata", "ownerReferences"})) {
    if (text_below(&each, {"kind"}) == owner.kind && text_below(&each, {"name"}) == owner.name) {
      return true;
    }
  }
  return false;
}

// An object of the API server's: a manifest that nobody has applied yet has neither.
bool was_admitted(const RawObject& object) {
  return !object.uid.empty() || deeper(object.value, {"status", "phase"}) != nullptr;
}

const Value* template_at(const RawObject& object, const TemplatePlace& place) {
  const Value* at = object.value;
  for (const std::string& token : place.path) {
    if (at == nullptr) return nullptr;
    const bool index = !token.empty() && token.find_first_not_of("0123456789") == std::string::npos;
    const std::size_t number = index && token.size() < 6 ? std::stoul(token) : 0;
    at = !index ? at->find(token) : number < at->size() ? &at->items()[number] : nullptr;
  }
  return at;
}

// ---- defaults ----

// One item of a LimitRange for containers, with what the API server makes of its gaps.
struct Range {
  std::string name;
  Amounts most, least, limit, request;
};

std::vector<Range> ranges_of(const ObjectSource& objects, const std::string& ns) {
  std::vector<Range> out;
  for (const RawObject& raw : objects.of_kind("LimitRange")) {
    if (raw.ns != ns) continue;
    for (const Value& item : items_below(raw.value, {"spec", "limits"})) {
      if (text_below(&item, {"type"}) != "Container") continue;
      Range range{.name = raw.name,
                  .most = amounts_below(&item, {"max"}),
                  .least = amounts_below(&item, {"min"}),
                  .limit = amounts_below(&item, {"default"}),
                  .request = amounts_below(&item, {"defaultRequest"})};
      range.limit.insert(range.most.begin(), range.most.end());
      range.request.insert(range.limit.begin(), range.limit.end());
      range.request.insert(range.least.begin(), range.least.end());
      out.push_back(std::move(range));
    }
  }
  return out;
}

void fill_container(Tree& container, const Range& range) {
  const bool stated = container.find("resources") != nullptr;
  Tree& resources = container["resources"];
  for (const auto& [resource, amount] : range.limit) {
    if (resources["limits"].find(resource) != nullptr) continue;
    resources["limits"][resource] = Tree::of_text(show_amount(resource, amount));
    // A limit that was stated is the request too; one that is filled in is not.
    const Tree* asked = resources["requests"].find(resource);
    const auto least = range.request.find(resource);
    if (asked == nullptr && least != range.request.end()) {
      resources["requests"][resource] = Tree::of_text(show_amount(resource, least->second));
    }
  }
  for (const auto& [resource, amount] : range.request) {
    if (resources["requests"].find(resource) != nullptr ||
        resources["limits"].find(resource) != nullptr) {
      continue;
    }
    resources["requests"][resource] = Tree::of_text(show_amount(resource, amount));
  }
  for (const char* list : {"limits", "requests"}) {
    if (resources[list].is_null()) resources.erase(list);
  }
  if (!stated && resources.members().empty()) container.erase("resources");
}

void fill_runtime_class(const ObjectSource& objects, Tree& spec) {
  const Tree* name = spec.find("runtimeClassName");
  if (name == nullptr || name->string().empty()) return;
  const auto raw = of_cluster(objects, "RuntimeClass", name->string());
  if (!raw) return;
  const Value* selector = deeper(raw->value, {"scheduling", "nodeSelector"});
  for (const text::Member& label :
       selector == nullptr ? std::span<const text::Member>() : selector->members()) {
    spec["nodeSelector"][label.key] = Tree::of_text(label.value.string());
  }
  for (const Value& toleration : items_below(raw->value, {"scheduling", "tolerations"})) {
    std::vector<Tree>& all = spec["tolerations"].items();
    Tree tree(toleration);
    if (std::find(all.begin(), all.end(), tree) == all.end()) all.push_back(std::move(tree));
  }
  const Value* overhead = deeper(raw->value, {"overhead", "podFixed"});
  if (overhead != nullptr && spec.find("overhead") == nullptr) spec["overhead"] = Tree(*overhead);
}

void fill_ranges(const std::vector<Range>& ranges, Tree& spec) {
  for (const Range& range : ranges) {
    for (const char* list : {"initContainers", "containers"}) {
      if (spec.find(list) == nullptr) continue;
      for (Tree& container : spec[list].items()) fill_container(container, range);
    }
  }
}

Tree pod_of(const RawObject& owner, const Tree& made_of, int number) {
  Tree pod = made_of;
  pod["apiVersion"] = Tree::of_text("v1");
  pod["kind"] = Tree::of_text("Pod");
  Tree& meta = pod["metadata"];
  meta["name"] = Tree::of_text(fmt::format("{}-{}", owner.name, number));
  meta["namespace"] = Tree::of_text(owner.ns);
  const std::string created = text_below(owner.value, {"metadata", "creationTimestamp"});
  if (!created.empty()) meta["creationTimestamp"] = Tree::of_text(created);
  Tree by;
  by["apiVersion"] = Tree::of_text(owner.api_version);
  by["kind"] = Tree::of_text(owner.kind);
  by["name"] = Tree::of_text(owner.name);
  by["uid"] = Tree::of_text(owner.uid.empty() ? owner.name : owner.uid);
  by["controller"] = Tree::of_bool(true);
  meta["ownerReferences"] = Tree();
  meta["ownerReferences"].items().push_back(std::move(by));
  return pod;
}

// ---- ResourceQuota ----

bool in_scope(const Value& selector, const Template& pod) {
  const std::string scope = text_below(&selector, {"scopeName"});
  const std::string op = text_below(&selector, {"operator"});
  if (scope == "BestEffort" || scope == "NotBestEffort") {
    const bool nothing = pod.requests.empty() && pod.limits.empty();
    return nothing == (scope == "BestEffort");
  }
  if (scope == "Terminating" || scope == "NotTerminating") {
    const bool ends = deeper(pod.spec, {"activeDeadlineSeconds"}) != nullptr;
    return ends == (scope == "Terminating");
  }
  if (scope != "PriorityClass") return false;
  const std::string& has = pod.pod.priority_class;
  if (op == "Exists" || op == "DoesNotExist") return has.empty() == (op == "DoesNotExist");
  const auto values = items_below(&selector, {"values"});
  const bool listed =
      std::any_of(values.begin(), values.end(), [&](const Value& v) { return v.string() == has; });
  return listed == (op == "In");
}

bool counts_it(const Value& quota, const Template& pod) {
  for (const Value& scope : items_below(&quota, {"spec", "scopes"})) {
    const std::string_view name = scope.string();
    const bool nothing = pod.requests.empty() && pod.limits.empty();
    const bool ends = deeper(pod.spec, {"activeDeadlineSeconds"}) != nullptr;
    if (name == "BestEffort" && !nothing) return false;
    if (name == "NotBestEffort" && nothing) return false;
    if (name == "Terminating" && !ends) return false;
    if (name == "NotTerminating" && ends) return false;
    if (name == "PriorityClass" && pod.pod.priority_class.empty()) return false;
  }
  const auto selectors = items_below(&quota, {"spec", "scopeSelector", "matchExpressions"});
  return std::all_of(selectors.begin(), selectors.end(),
                     [&](const Value& each) { return in_scope(each, pod); });
}

// What one pod takes of a line of a quota; absent: the line is not about pods.
std::optional<std::int64_t> taken_of(std::string_view line, const Template& pod) {
  const auto in = [](const Amounts& amounts, std::string_view resource) {
    const auto it = amounts.find(resource);
    return it == amounts.end() ? 0 : it->second;
  };
  if (line == "pods" || line == "count/pods") return 1;
  if (line == "requests.storage" || line.starts_with("count/")) return std::nullopt;
  if (line.starts_with("requests.")) return in(pod.requests, line.substr(9));
  if (line.starts_with("limits.")) return in(pod.limits, line.substr(7));
  if (line == "cpu" || line == "memory" || line == "ephemeral-storage" ||
      line.starts_with("hugepages-")) {
    return in(pod.requests, line);
  }
  return std::nullopt;
}

// cpu and memory that a quota counts must be stated by every container.
bool must_be_stated(std::string_view line) {
  return line == "cpu" || line == "memory" || line == "requests.cpu" || line == "requests.memory" ||
         line == "limits.cpu" || line == "limits.memory";
}

Held short_of(const RawObject& quota, std::string_view line, std::int64_t hard, std::int64_t used,
              std::int64_t each, int pods) {
  Held out{.by = Held::By::kQuota,
           .reason = each > hard ? Reason::kExceedsMaxQuota : Reason::kWaitingForQuota,
           .never = each > hard,
           .object = quota.name,
           .resource = std::string(line),
           .enough = show_amount(line, used + each * pods)};
  out.too_many = pods - static_cast<int>(std::max<std::int64_t>(0, hard - used) / each);
  const std::string asks = pods == 1
                               ? "its pod asks for " + show_amount(line, each)
                               : fmt::format("{} that are yet to be made ask for {} each",
                                             show_count(pods, "pod"), show_amount(line, each));
  out.message =
      out.never ? fmt::format("the ResourceQuota {} allows {} {} in the namespace {}, and {}",
                              quota.name, show_amount(line, hard), line, quota.ns, asks)
                : fmt::format("the ResourceQuota {} allows {} {} in the namespace {}, {} used; {}",
                              quota.name, show_amount(line, hard), line, quota.ns,
                              show_amount(line, used) + (used == 1 ? " is" : " are"), asks);
  return out;
}

std::optional<Held> by_quotas(const ObjectSource& objects, const Template& mine) {
  const std::string& ns = mine.object->ns;
  std::vector<RawObject> quotas;
  for (RawObject& raw : objects.of_kind("ResourceQuota")) {
    if (raw.ns == ns && counts_it(*raw.value, mine)) quotas.push_back(std::move(raw));
  }
  if (quotas.empty()) return std::nullopt;
  std::vector<Template> others;
  const std::vector<RawObject> pods = objects.of_kind("Pod");
  for (const RawObject& raw : pods) {
    const Value* spec = raw.ns == ns ? deeper(raw.value, {"spec"}) : nullptr;
    if (spec == nullptr || has_ended(*raw.value) || raw.value == mine.object->value) continue;
    Template other;
    other.spec = spec;
    if (read_spec(*spec, other)) others.push_back(std::move(other));
  }
  for (const RawObject& quota : quotas) {
    const Amounts hard = amounts_below(quota.value, {"spec", "hard"});
    const Amounts told = amounts_below(quota.value, {"status", "used"});
    for (const auto& [line, most] : hard) {
      const auto each = taken_of(line, mine);
      if (!each) continue;
      if (*each == 0 && must_be_stated(line)) {
        return Held{.by = Held::By::kNoAmount,
                    .message = fmt::format(
                        "the ResourceQuota {} counts {}, which its containers do not state",
                        quota.name, line),
                    .object = quota.name,
                    .resource = line};
      }
      std::int64_t used = 0;
      for (const Template& other : others) {
        if (counts_it(*quota.value, other)) used += taken_of(line, other).value_or(0);
      }
      const auto written = told.find(line);
      if (pods.empty() && written != told.end()) used = written->second;  // pods are not shown
      if (*each > 0 && used + *each * mine.fresh > most) {
        return short_of(quota, line, most, used, *each, mine.fresh);
      }
    }
  }
  return std::nullopt;
}

// ---- the rest ----

std::optional<Held> by_range(const Range& range, const objects::Container& container) {
  const auto say = [&](const std::string& resource, std::int64_t has, std::int64_t bound,
                       const char* rule) {
    return Held{.by = Held::By::kLimitRange,
                .message = fmt::format(
                    "the LimitRange {} allows a container {} {} {}, and container {} asks for {}",
                    range.name, rule, show_amount(resource, bound), resource, container.name,
                    show_amount(resource, has)),
                .object = range.name,
                .resource = resource,
                .enough = show_amount(resource, bound),
                .asked = show_amount(resource, has)};
  };
  for (const auto& [resource, most] : range.most) {
    for (const Amounts* amounts : {&container.resources.limits, &container.resources.requests}) {
      const auto it = amounts->find(resource);
      if (it != amounts->end() && it->second > most) {
        return say(resource, it->second, most, "at most");
      }
    }
  }
  for (const auto& [resource, least] : range.least) {
    const auto it = container.resources.requests.find(resource);
    if (it != container.resources.requests.end() && it->second < least) {
      return say(resource, it->second, least, "at least");
    }
  }
  return std::nullopt;
}

std::optional<Held> by_ranges(const ObjectSource& objects, const Template& mine) {
  for (const Range& range : ranges_of(objects, mine.object->ns)) {
    for (const auto* list : {&mine.pod.containers.init, &mine.pod.containers.app}) {
      for (const objects::Container& container : *list) {
        if (auto held = by_range(range, container)) return held;
      }
    }
  }
  return std::nullopt;
}

std::optional<Held> by_runtime_class(const ObjectSource& objects, const Template& mine) {
  const std::string name = text_below(mine.spec, {"runtimeClassName"});
  const std::vector<RawObject> classes = objects.of_kind("RuntimeClass");
  if (name.empty() || classes.empty() || of_cluster(objects, "RuntimeClass", name)) {
    return std::nullopt;
  }
  std::vector<std::string> names;
  for (const RawObject& raw : classes) names.push_back(raw.name);
  return Held{.by = Held::By::kRuntimeClass,
              .message = "the RuntimeClass " + name + " does not exist",
              .object = name,
              .name = text::nearest(name, names)};
}

std::optional<Held> by_scheduler(const Template& mine) {
  static const std::vector<std::string> kSchedulers = {"default-scheduler", "berth", "volcano",
                                                       "kai-scheduler"};
  const std::string name = text_below(mine.spec, {"schedulerName"});
  if (name.empty() ||
      std::find(kSchedulers.begin(), kSchedulers.end(), name) != kSchedulers.end()) {
    return std::nullopt;
  }
  const std::string meant = text::nearest(name, kSchedulers);
  // "my-berth" may well exist; "default-schedular" does not.
  if (meant.empty() || text::edits_between(name, meant, 3) > 2) return std::nullopt;
  return Held{.by = Held::By::kScheduler,
              .message = fmt::format("its schedulerName is {}, which reads like {}", name, meant),
              .object = name,
              .name = meant};
}

bool is_bound(const ObjectSource& objects, const RawObject& claim) {
  if (!text_below(claim.value, {"spec", "volumeName"}).empty() ||
      text_below(claim.value, {"status", "phase"}) == "Bound") {
    return true;
  }
  for (const RawObject& volume : objects.of_kind("PersistentVolume")) {
    if (text_below(volume.value, {"spec", "claimRef", "name"}) == claim.name &&
        text_below(volume.value, {"spec", "claimRef", "namespace"}) == claim.ns) {
      return true;
    }
  }
  return false;
}

// Why nobody makes a volume of the class for a claim; empty: somebody does, or it is not known.
std::string no_volume_of(const ObjectSource& objects, const std::string& storage) {
  const std::vector<RawObject> classes = objects.of_kind("StorageClass");
  if (storage.empty() || classes.empty()) return "";
  const auto raw = of_cluster(objects, "StorageClass", storage);
  if (!raw) return "its storage class " + storage + " does not exist";
  if (text_below(raw->value, {"volumeBindingMode"}) != "WaitForFirstConsumer") {
    return fmt::format("its storage class {} binds claims at once, and did not bind this one",
                       storage);
  }
  if (text_below(raw->value, {"provisioner"}) != "kubernetes.io/no-provisioner") return "";
  for (const RawObject& volume : objects.of_kind("PersistentVolume")) {
    if (text_below(volume.value, {"spec", "storageClassName"}) == storage &&
        deeper(volume.value, {"spec", "claimRef"}) == nullptr) {
      return "";
    }
  }
  return fmt::format("no PersistentVolume of its storage class {} is free, and nobody makes one",
                     storage);
}

Held unbound(const std::string& claim, const std::string& why) {
  return {.by = Held::By::kStorage,
          .reason = Reason::kVolumeMissing,
          .message = fmt::format("the claim {} is not bound: {}", claim, why),
          .object = claim};
}

std::optional<Held> by_claim(const ObjectSource& objects, const Template& mine,
                             const std::string& name) {
  const auto claim = objects.find("PersistentVolumeClaim", mine.object->ns, name);
  if (!claim) return std::nullopt;  // the model says so
  if (!is_bound(objects, *claim) && text_below(claim->value, {"status", "phase"}) != "Lost") {
    const std::string why =
        no_volume_of(objects, text_below(claim->value, {"spec", "storageClassName"}));
    if (!why.empty()) return unbound(name, why);
  }
  const auto modes = items_below(claim->value, {"spec", "accessModes"});
  const bool alone = std::any_of(modes.begin(), modes.end(), [](const Value& mode) {
    return mode.string() == "ReadWriteOncePod";
  });
  if (!alone) return std::nullopt;
  for (const RawObject& pod : objects.of_kind("Pod")) {
    const bool runs = pod.ns == mine.object->ns && !has_ended(*pod.value) &&
                      !text_below(pod.value, {"spec", "nodeName"}).empty();
    if (!runs || pod.value == mine.object->value) continue;
    for (const Value& volume : items_below(pod.value, {"spec", "volumes"})) {
      if (text_below(&volume, {"persistentVolumeClaim", "claimName"}) != name) continue;
      return Held{.by = Held::By::kClaimInUse,
                  .reason = Reason::kVolumeUnreachable,
                  .message = fmt::format(
                      "the claim {} is for one pod at a time (ReadWriteOncePod), and {}/{} has it",
                      name, pod.ns, pod.name),
                  .object = name,
                  .name = pod.name};
    }
  }
  return std::nullopt;
}

std::optional<Held> by_claims(const ObjectSource& objects, const Template& mine) {
  for (const Value& volume : items_below(mine.spec, {"volumes"})) {
    const std::string name = text_below(&volume, {"persistentVolumeClaim", "claimName"});
    if (!name.empty()) {
      if (auto held = by_claim(objects, mine, name)) return held;
      continue;
    }
    const Value* made = deeper(&volume, {"ephemeral", "volumeClaimTemplate"});
    const std::string storage = text_below(made, {"spec", "storageClassName"});
    const bool gone = !storage.empty() && !objects.of_kind("StorageClass").empty() &&
                      !of_cluster(objects, "StorageClass", storage);
    if (gone) return unbound(text_below(&volume, {"name"}), no_volume_of(objects, storage));
  }
  return std::nullopt;
}

}  // namespace

int pods_wanted(const RawObject& object) {
  if (object.kind == "Deployment" || object.kind == "ReplicaSet" || object.kind == "StatefulSet") {
    return static_cast<int>(std::clamp<std::int64_t>(
        number_below(object.value, {"spec", "replicas"}, 1), 0, kMostMade));
  }
  if (object.kind != "Job" || deeper(object.value, {"spec", "template"}) == nullptr) return 0;
  const std::int64_t parallel = number_below(object.value, {"spec", "parallelism"}, 1);
  const std::int64_t completions = number_below(object.value, {"spec", "completions"}, parallel) -
                                   number_below(object.value, {"status", "succeeded"}, 0);
  const Value* suspend = deeper(object.value, {"spec", "suspend"});
  if (suspend != nullptr && suspend->as_bool()) return 0;
  return static_cast<int>(std::clamp<std::int64_t>(std::min(parallel, completions), 0, kMostMade));
}

std::optional<Held> ServerRules::held() const {
  const std::vector<ObjectChange> filled = filled_in(false);
  for (const TemplatePlace& place : places_) {
    const auto raw = objects_.find(place.kind, place.ns, place.name);
    const bool may = raw && (place.kind == "Pod" || place.path.back() == "template");
    if (!may || place.kind == "Workload") continue;
    // As the API server would store it.
    const ChangedObjects stored(objects_, filled);
    const auto now = stored.find(place.kind, place.ns, place.name);
    const Value* at = now ? template_at(*now, place) : nullptr;
    Template mine;
    mine.object = &*raw;
    mine.spec = deeper(at, {"spec"});
    if (mine.spec == nullptr || !read_spec(*mine.spec, mine)) {
      // A default limit below what is asked for: the range itself says so of what is written.
      const Value* written = template_at(*raw, place);
      mine.pod = {};
      mine.spec = deeper(written, {"spec"});
      if (mine.spec == nullptr || !read_spec(*mine.spec, mine)) continue;
    }
    if (place.kind == "Pod") {
      mine.fresh = was_admitted(*raw) ? 0 : 1;
    } else {
      mine.fresh = pods_wanted(*raw);
      for (const RawObject& pod : objects_.of_kind("Pod")) {
        if (mine.fresh == 0) break;
        if (pod.ns == raw->ns && owned_by(*pod.value, *raw) && !has_ended(*pod.value)) --mine.fresh;
      }
    }
    std::optional<Held> out;
    const bool bound = !text_below(mine.spec, {"nodeName"}).empty();
    if (!bound) out = by_runtime_class(objects_, mine);
    if (!out && mine.fresh > 0) out = by_ranges(objects_, mine);
    if (!out && mine.fresh > 0) out = by_quotas(objects_, mine);
    if (!out && !bound) out = by_claims(objects_, mine);
    if (!out && !bound) out = by_scheduler(mine);
    if (out) return out;
  }
  return std::nullopt;
}

std::vector<ObjectChange> ServerRules::filled_in(bool with_pods) const {
  Draft draft;
  for (const TemplatePlace& place : places_) {
    const auto raw = objects_.find(place.kind, place.ns, place.name);
    if (!raw || place.kind == "Workload") continue;
    Tree* at = below(draft.edit(&objects_, place.kind, place.ns, place.name), place.path);
    if (at == nullptr || at->find("spec") == nullptr) continue;
    fill_runtime_class(objects_, (*at)["spec"]);
    // A pod that exists went through this; its class may have been changed since.
    if (place.kind == "Pod" && was_admitted(*raw)) continue;
    fill_ranges(ranges_of(objects_, place.ns), (*at)["spec"]);
    if (!with_pods) continue;
    const Tree made_of = *at;
    const int pods = pods_wanted(*raw);
    for (int i = 0; i < pods; ++i) {
      if (objects_.find("Pod", raw->ns, fmt::format("{}-{}", raw->name, i))) continue;
      draft.create(pod_of(*raw, made_of, i));
    }
  }
  std::erase_if(draft.objects,
                [](const ObjectChange& c) { return c.before && c.after && *c.before == *c.after; });
  return std::move(draft.objects);
}

}  // namespace berth::explain
