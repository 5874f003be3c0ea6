#include "kinds/kueue_config.h"

#include <algorithm>
#include <limits>

#include "text/path.h"
#include "text/yaml.h"

namespace berth::kinds {

namespace {

using model::QueueConfig;
using text::Decoder;
using text::Field;
using text::Value;
using C = QueueConfigObject;

// ---- durations: strict, never negative ----

bool read_nanoseconds(const Value& v, std::int64_t& out, Decoder& d) {
  const std::size_t before = d.errors();
  text::read_duration_ns(v, out, d);
  if (d.errors() != before) return false;
  if (out >= 0) return true;
  d.mismatch(v, "a duration of at least 0s");
  return false;
}
constexpr std::int64_t kNsPerSecond = 1'000'000'000;

void read_seconds(const Value& v, std::optional<int>& out, Decoder& d) {  // rounded up
  std::int64_t ns = 0;
  if (!read_nanoseconds(v, ns, d)) return;
  const std::int64_t seconds = ns / kNsPerSecond + (ns % kNsPerSecond == 0 ? 0 : 1);
  out = static_cast<int>(std::min<std::int64_t>(seconds, std::numeric_limits<std::int32_t>::max()));
}
void read_half_life(const Value& v, QueueConfig& out, Decoder& d) {
  std::int64_t ns = 0;
  if (read_nanoseconds(v, ns, d)) out.half_life_s = static_cast<double>(ns) / 1e9;
}
void read_sampling(const Value& v, double& out, Decoder& d) {
  std::int64_t ns = 0;
  if (read_nanoseconds(v, ns, d) && ns > 0) out = static_cast<double>(ns) / 1e9;
}

// ---- waitForPodsReady ----

struct WaitForPods {
  std::optional<bool> enable, block;
  std::optional<int> timeout, recovery, limit;
  std::optional<int> base, most;
  bool by_creation = false;
};
constexpr std::pair<std::string_view, bool> kTimestamps[] = {{"Eviction", false},
                                                             {"Creation", true}};
void read_backoff(const Value& v, std::optional<int>& out, Decoder& d) {
  std::int64_t value = 0;
  if (text::decode_int(v, 0, std::numeric_limits<std::int32_t>::max(), value, d)) {
    out = static_cast<int>(value);
  }
}
constexpr Field<WaitForPods> kRequeuingFields[] = {
    text::field<&WaitForPods::base, read_backoff>("backoffBaseSeconds"),
    text::field<&WaitForPods::limit, read_backoff>("backoffLimitCount"),
    text::field<&WaitForPods::most, read_backoff>("backoffMaxSeconds"),
    text::field<&WaitForPods::by_creation, text::one_of<kTimestamps>>("timestamp"),
};
constexpr Field<WaitForPods> kWait1Fields[] = {
    text::field<&WaitForPods::block>("blockAdmission"),
    text::field<&WaitForPods::enable>("enable"),
    text::field<&WaitForPods::recovery, read_seconds>("recoveryTimeout"),
    text::inlined<kRequeuingFields>("requeuingStrategy"),
    text::field<&WaitForPods::timeout, read_seconds>("timeout"),
};
constexpr Field<WaitForPods> kWait2Fields[] = {
    text::field<&WaitForPods::block>("blockAdmission"),
    text::field<&WaitForPods::recovery, read_seconds>("recoveryTimeout"),
    text::inlined<kRequeuingFields>("requeuingStrategy"),
    text::field<&WaitForPods::timeout, read_seconds>("timeout"),
};
template <const auto& Fields, bool First>
void read_wait(const Value& v, C& out, Decoder& d) {
  WaitForPods raw;
  decode_object(v, Fields, raw, d);
  QueueConfig& config = out.config;
  config.wait_for_pods_ready = First ? raw.enable.value_or(false) : true;
  config.block_admission = raw.block.value_or(First && config.wait_for_pods_ready);
  config.pods_ready_timeout_s = raw.timeout.value_or(config.pods_ready_timeout_s);
  config.recovery_timeout_s = raw.recovery.value_or(config.pods_ready_timeout_s);
  config.requeue_by_creation = raw.by_creation;
  config.backoff_limit = raw.limit;
  config.backoff_base_s = raw.base.value_or(config.backoff_base_s);
  config.backoff_max_s = raw.most.value_or(config.backoff_max_s);
}

// ---- fair sharing ----

struct Sharing {
  std::optional<bool> enable;
  std::optional<std::vector<QueueConfig::Strategy>> strategies;
};
constexpr std::pair<std::string_view, QueueConfig::Strategy> kShareStrategies[] = {
    {"LessThanOrEqualToFinalShare", QueueConfig::Strategy::kLessThanOrEqualToFinalShare},
    {"LessThanInitialShare", QueueConfig::Strategy::kLessThanInitialShare}};
constexpr auto read_share_strategy = text::one_of<kShareStrategies>;
void read_share_strategies(const Value& v, Sharing& out, Decoder& d) {
  std::vector<QueueConfig::Strategy> list;
  const std::size_t before = d.errors();
  list_of<read_share_strategy>(v, list, d);
  if (d.errors() != before || list.empty()) return;
  if (!std::is_sorted(list.begin(), list.end()) ||
      std::adjacent_find(list.begin(), list.end()) != list.end()) {
    return d.error(v, "strategies twice or in another order",
                   "LessThanOrEqualToFinalShare, then LessThanInitialShare, or one of them");
  }
  out.strategies = std::move(list);
}
constexpr Field<Sharing> kSharing1Fields[] = {
    text::field<&Sharing::enable>("enable"),
    text::custom<Sharing>("preemptionStrategies", read_share_strategies),
};
constexpr Field<Sharing> kSharing2Fields[] = {
    text::custom<Sharing>("preemptionStrategies", read_share_strategies),
};
template <const auto& Fields, bool First>
void read_sharing(const Value& v, C& out, Decoder& d) {
  Sharing raw;
  decode_object(v, Fields, raw, d);
  out.config.fair_sharing = First ? raw.enable.value_or(false) : true;
  if (raw.strategies) out.config.strategies = std::move(*raw.strategies);
}

void read_resource_weights(const Value& v, std::map<std::string, double>& out, Decoder& d) {
  decode(v, out, d);
  for (const text::Member& member : v.members()) {
    const auto it = out.find(std::string(member.key));
    if (it == out.end() || it->second >= 0) continue;
    Decoder::Step step(d, member.key);
    d.mismatch(member.value, "at least 0");
  }
}
constexpr Field<QueueConfig> kAdmissionSharingFields[] = {
    text::field<&QueueConfig::resource_weights, read_resource_weights>("resourceWeights"),
    text::required(text::custom<QueueConfig>("usageHalfLifeTime", read_half_life)),
    text::field<&QueueConfig::sampling_s, read_sampling>("usageSamplingInterval"),
};

// ---- resources ----

using Transformation = QueueConfig::Transformation;
constexpr std::pair<std::string_view, bool> kTransformStrategies[] = {{"Retain", true},
                                                                      {"Replace", false}};
void read_outputs(const Value& v, std::map<std::string, double>& out, Decoder& d) {
  std::map<std::string, text::Quantity> quantities;
  decode(v, quantities, d);
  for (const auto& [name, quantity] : quantities) out[name] = quantity.to_double();
}
constexpr Field<Transformation> kTransformationFields[] = {
    text::required(text::field<&Transformation::input>("input")),
    text::field<&Transformation::multiply_by>("multiplyBy"),
    text::field<&Transformation::outputs, read_outputs>("outputs"),
    text::field<&Transformation::keep_input, text::one_of<kTransformStrategies>>("strategy"),
};
constexpr auto read_transformation = object_of<kTransformationFields>;
void read_transformations(const Value& v, std::vector<Transformation>& out, Decoder& d) {
  list_of<read_transformation>(v, out, d);
  for (std::size_t i = 0; i < out.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (out[i].input != out[j].input) continue;
      Decoder::Step step(d, i);
      d.error(v.items()[i], "input " + quoted(out[i].input) + " twice", "each input once");
    }
  }
}
constexpr std::pair<std::string_view, bool> kQuotaChecks[] = {{"BlockUndeclared", false},
                                                              {"IgnoreUndeclared", true}};
void warn_not_read(const Value& v, QueueConfig&, Decoder& d) {
  if (v.size() > 0) d.warning(v, "a setting that is not read", "none");
}
constexpr Field<QueueConfig> kResourcesFields[] = {
    text::custom<QueueConfig>("deviceClassMappings", warn_not_read),
    text::field<&QueueConfig::excluded_prefixes>("excludeResourcePrefixes"),
    text::field<&QueueConfig::ignore_undeclared, text::one_of<kQuotaChecks>>("quotaCheckStrategy"),
    text::field<&QueueConfig::transformations, read_transformations>("transformations"),
};

// ---- the whole ----

template <const auto& Table>
constexpr Field<C> in_config(std::string_view name) {
  return text::custom<C>(
      name, [](const Value& v, C& out, Decoder& d) { decode_object(v, Table, out.config, d); });
}
void read_managed(const Value& v, C& out, Decoder& d) {
  LabelSelector selector;
  decode(v, selector, d);
  if (selector.present) out.managed_namespaces = std::move(selector.requirements);
}

void read_frameworks(const Value& v, C& out, Decoder& d) {
  std::vector<std::string> names;
  decode(v, names, d);
  out.frameworks = std::move(names);
}
constexpr Field<C> kIntegrationFields[] = {
    text::skip<C>("externalFrameworks"),
    text::custom<C>("frameworks", read_frameworks),
    text::skip<C>("labelKeysToCopy"),
    text::skip<C>("podOptions"),
};

template <bool First>
inline constexpr Field<C> kConfigFields[] = {
    text::skip<C>("apiVersion"),
    text::skip<C>("kind"),
    text::skip<C>("metadata"),
    in_config<kAdmissionSharingFields>("admissionFairSharing"),
    text::skip<C>("cacheNamespace"),
    text::skip<C>("clientConnection"),
    text::skip<C>("controller"),
    text::custom<C>("fairSharing", First ? read_sharing<kSharing1Fields, true>
                                         : read_sharing<kSharing2Fields, false>),
    text::custom<C>("featureGates",
                    [](const Value& v, C& out, Decoder& d) { decode(v, out.config.gates, d); }),
    text::skip<C>("gracefulShutDown"),
    text::skip<C>("health"),
    text::inlined<kIntegrationFields>("integrations"),
    text::skip<C>("internalCertManagement"),
    text::skip<C>("leaderElection"),
    text::custom<C>(
        "manageJobsWithoutQueueName",
        [](const Value& v, C& out, Decoder& d) { decode(v, out.config.manage_without_queue, d); }),
    text::custom<C>("managedJobsNamespaceSelector", read_managed),
    text::skip<C>("metrics"),
    text::skip<C>("multiKueue"),
    text::skip<C>("namespace"),
    text::skip<C>("objectRetentionPolicies"),
    text::skip<C>("pprofBindAddress"),
    text::skip<C>("queueVisibility"),
    in_config<kResourcesFields>("resources"),
    text::skip<C>("syncPeriod"),
    text::skip<C>("tls"),
    text::skip<C>("visibilityServer"),
    text::custom<C>("waitForPodsReady",
                    First ? read_wait<kWait1Fields, true> : read_wait<kWait2Fields, false>),
    text::skip<C>("webhook"),
};

}  // namespace

void decode_queue_config(const Value& v, KueueVersion version, QueueConfigObject& out, Decoder& d) {
  if (version == KueueVersion::kV1beta1) {
    decode_object(v, kConfigFields<true>, out, d);
  } else {
    decode_object(v, kConfigFields<false>, out, d);
  }
  if (out.config.gate("DisableWaitForPodsReady", false)) out.config.wait_for_pods_ready = false;
}

bool QueueConfigObject::manages(std::string_view framework) const {
  return !frameworks ||
         std::find(frameworks->begin(), frameworks->end(), framework) != frameworks->end();
}

bool holds_queue_config(const Value& config_map) {
  return at(config_map, "data").find(kConfigKey) != nullptr;
}

void decode_config_map(const Value& v, QueueConfigObject& out, Decoder& d) {
  const Value& written = *at(v, "data").find(kConfigKey);
  Decoder::Step data(d, "data");
  Decoder::Step step(d, kConfigKey);
  const auto documents = text::parse_yaml(written.string());
  if (!documents.ok())
    return d.error(written, documents.error().message(), "YAML of a Configuration");
  if (documents->size() != 1 || !documents->front().root().is_object()) {
    return d.error(written, std::to_string(documents->size()) + " documents", "one Configuration");
  }
  const Value& root = documents->front().root();
  const Value* version = root.find("apiVersion");
  const std::string_view name = version == nullptr ? std::string_view() : version->string();
  const bool first = name == "config.kueue.x-k8s.io/v1beta1";
  if (!first && name != "config.kueue.x-k8s.io/v1beta2") {
    return d.error(written, "apiVersion " + quoted(name),
                   "config.kueue.x-k8s.io/v1beta1 or config.kueue.x-k8s.io/v1beta2");
  }
  decode_queue_config(root, first ? KueueVersion::kV1beta1 : KueueVersion::kV1beta2, out, d);
}

}  // namespace berth::kinds
