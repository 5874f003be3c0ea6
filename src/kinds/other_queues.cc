#include "kinds/other_queues.h"

#include <algorithm>
#include <set>

#include "kinds/names.h"

namespace berth::kinds {

namespace {

using text::Decoder;
using text::Field;
using text::Value;

// Known there, without a meaning here.
template <class T>
constexpr Field<T> no_equivalent(std::string_view name) {
  return text::custom<T>(name, [](const Value& v, T&, Decoder& d) {
    const bool empty = (v.is_object() || v.is_array()) && v.size() == 0;
    if (!empty) d.warning(v, "a field that has no equivalent; it is not used", "none");
  });
}

// ---- Volcano Queue ----

using V = VolcanoQueue;

void read_reclaimable_flag(const Value& v, V&, Decoder& d) {
  bool reclaimable = true;
  decode(v, reclaimable, d);
  if (!reclaimable) {
    d.warning(v,
              "false, which has no equivalent: what the queue uses above its share can be "
              "reclaimed",
              "true");
  }
}
constexpr Field<V> kGuaranteeFields[] = {
    text::field<&V::guarantee, read_amounts>("resource"),
};
constexpr std::pair<std::string_view, bool> kDequeue[] = {
    {"fifo", true}, {"traverse", false}, {"", false}};
constexpr Field<V> kVolcanoQueueSpecFields[] = {
    no_equivalent<V>("affinity"),
    text::field<&V::capability, read_amounts>("capability"),
    text::field<&V::deserved, read_amounts>("deserved"),
    text::field<&V::fifo, text::one_of<kDequeue>>("dequeueStrategy"),
    no_equivalent<V>("extendClusters"),
    text::inlined<kGuaranteeFields>("guarantee"),
    text::field<&V::parent>("parent"),
    no_equivalent<V>("priority"),
    text::custom<V>("reclaimable", read_reclaimable_flag),
    text::skip<V>("type"),
    text::field<&V::weight, text::int_between<1, 65535>>("weight"),
};
void read_queue_state(const Value& v, bool& out, Decoder&) {
  out = v.string() == "Closed" || v.string() == "Closing";
}
constexpr Field<V> kVolcanoQueueStatusFields[] = {
    text::field<&V::closed, read_queue_state>("state"),
};
constexpr Field<V> kVolcanoQueueFields[] = {
    text::skip<V>("apiVersion"),
    text::skip<V>("kind"),
    text::skip<V>("metadata"),
    text::inlined<kVolcanoQueueSpecFields>("spec"),
    text::custom<V>("status",
                    [](const Value& v, V& out, Decoder& d) {
                      decode_lenient(v, kVolcanoQueueStatusFields, out, d);
                    }),
};

// Volcano's webhook wants guarantee <= deserved <= capability where both are given.
void check_order(const Value& at, const model::Amounts& low, const model::Amounts& high,
                 std::string_view low_name, std::string_view high_name, Decoder& d) {
  Decoder::Step spec(d, "spec");
  Decoder::Step step(d, low_name);
  for (const auto& [resource, amount] : low) {
    const auto it = high.find(resource);
    if (it == high.end() || amount <= it->second) continue;
    d.error(at, "more " + resource + " than " + std::string(high_name),
            "at most the " + std::string(high_name));
  }
}

// ---- KAI Queue ----

using K = KaiQueue;

void read_unlimited(const Value& v, std::optional<double>& out, Decoder& d) {
  double amount = 0;
  const std::size_t before = d.errors();
  decode(v, amount, d);
  if (d.errors() != before) return;
  if (amount == -1) {
    out.reset();
  } else if (amount < 0 || amount > static_cast<double>(kMaxAmount)) {
    d.mismatch(v, "at least 0, or -1 for no limit");
  } else {
    out = amount;
  }
}
void read_over_quota(const Value& v, double& out, Decoder& d) {
  decode(v, out, d);
  if (out < 0) d.mismatch(v, "at least 0");
}
constexpr Field<KaiShare> kKaiShareFields[] = {
    text::field<&KaiShare::limit, read_unlimited>("limit"),
    text::field<&KaiShare::weight, read_over_quota>("overQuotaWeight"),
    text::field<&KaiShare::quota, read_unlimited>("quota"),
};
template <int Which>
void read_kai_share(const Value& v, K& out, Decoder& d) {
  constexpr const char* kNames[] = {"gpu", "cpu", "memory"};
  KaiShare& share = out.shares[kNames[Which]];
  share.quota = 0;  // a share without one has none
  decode_object(v, kKaiShareFields, share, d);
}
constexpr Field<K> kKaiResourceFields[] = {
    text::custom<K>("cpu", read_kai_share<1>),
    text::custom<K>("gpu", read_kai_share<0>),
    text::custom<K>("memory", read_kai_share<2>),
};
void read_kai_priority(const Value& v, K&, Decoder& d) {
  int priority = 100;
  decode(v, priority, d);
  if (priority != 100)
    d.warning(v, "a field that has no equivalent; it is not used", "100 or none");
}
constexpr Field<K> kKaiQueueSpecFields[] = {
    text::skip<K>("displayName"),          text::field<&K::parent>("parentQueue"),
    no_equivalent<K>("preemptMinRuntime"), text::custom<K>("priority", read_kai_priority),
    no_equivalent<K>("reclaimMinRuntime"), text::inlined<kKaiResourceFields>("resources"),
};
constexpr Field<K> kKaiQueueFields[] = {
    text::skip<K>("apiVersion"), text::skip<K>("kind"),
    text::skip<K>("metadata"),   text::inlined<kKaiQueueSpecFields>("spec"),
    text::skip<K>("status"),
};

// ---- Volcano Job ----

struct RawTask {
  VolcanoTask task;
  const Value* pod = nullptr;
};
constexpr auto read_replicas = text::int_between<0, kMaxJobPods>;
constexpr Field<RawTask> kTaskFields[] = {
    no_equivalent<RawTask>("dependsOn"),
    text::skip<RawTask>("maxRetry"),
    text::custom<RawTask>("minAvailable",
                          [](const Value& v, RawTask& out, Decoder& d) {
                            int least = 0;
                            const std::size_t before = d.errors();
                            read_replicas(v, least, d);
                            if (d.errors() == before) out.task.min_available = least;
                          }),
    text::custom<RawTask>(
        "name", [](const Value& v, RawTask& out, Decoder& d) { decode(v, out.task.name, d); }),
    no_equivalent<RawTask>("partitionPolicy"),
    text::skip<RawTask>("policies"),
    text::custom<RawTask>("replicas", [](const Value& v, RawTask& out,
                                         Decoder& d) { read_replicas(v, out.task.replicas, d); }),
    text::required(text::custom<RawTask>(
        "template", [](const Value& v, RawTask& out, Decoder&) { out.pod = &v; })),
    no_equivalent<RawTask>("topologyPolicy"),
};

using VJ = VolcanoJob;

void read_tasks(const Value& v, VJ& out, Decoder& d) {
  if (!v.is_array()) return d.mismatch(v, "an array");
  std::set<std::string> names;
  for (std::size_t i = 0; i < v.size(); ++i) {
    const Value& item = v.items()[i];
    Decoder::Step step(d, i);
    RawTask raw;
    decode_object(item, kTaskFields, raw, d);
    VolcanoTask& task = raw.task;
    if (task.name.empty()) task.name = "default" + std::to_string(i);
    if (!is_dns_label(task.name)) d.error(item, "task " + quoted(task.name), "a DNS label as name");
    if (!names.insert(task.name).second) {
      d.error(item, "task " + quoted(task.name) + " twice", "each name once");
    }
    if (task.min_available.value_or(0) > task.replicas) {
      d.error(item, "minAvailable " + std::to_string(*task.min_available),
              "at most the replicas " + std::to_string(task.replicas));
    }
    if (raw.pod != nullptr) {
      Decoder::Step in_template(d, "template");
      decode_template(*raw.pod, out.meta.ns, task.pod, d);
    }
    out.tasks.push_back(std::move(task));
  }
  if (out.tasks.empty()) d.error(v, "no tasks", "at least one");
}
constexpr Field<VJ> kVolcanoJobSpecFields[] = {
    text::skip<VJ>("maxRetry"),
    text::field<&VJ::min_available, read_replicas>("minAvailable"),
    text::skip<VJ>("minSuccess"),
    no_equivalent<VJ>("networkTopology"),
    text::skip<VJ>("plugins"),
    text::skip<VJ>("policies"),
    text::field<&VJ::priority_class>("priorityClassName"),
    text::field<&VJ::queue>("queue"),
    text::skip<VJ>("runningEstimate"),
    text::skip<VJ>("schedulerName"),
    text::required(text::custom<VJ>("tasks", read_tasks)),
    text::skip<VJ>("ttlSecondsAfterFinished"),
    text::skip<VJ>("volumes"),
};
void read_job_phase(const Value& v, bool& out, Decoder&) {
  const Value* phase = v.find("phase");
  if (phase == nullptr) return;
  const std::string_view text = phase->string();
  out = text != "" && text != "Pending" && text != "Running" && text != "Restarting";
}
constexpr Field<VJ> kVolcanoJobStatusFields[] = {
    text::field<&VJ::finished, read_job_phase>("state"),
};
constexpr Field<VJ> kVolcanoJobFields[] = {
    text::skip<VJ>("apiVersion"),
    text::skip<VJ>("kind"),
    text::skip<VJ>("metadata"),
    text::required(text::inlined<kVolcanoJobSpecFields>("spec")),
    text::custom<VJ>("status",
                     [](const Value& v, VJ& out, Decoder& d) {
                       decode_lenient(v, kVolcanoJobStatusFields, out, d);
                     }),
};

// ---- upstream Workload ----

struct GroupTemplate {
  std::string name;
  int min_count = 0;
};
constexpr Field<GroupTemplate> kTemplateGangFields[] = {
    text::required(
        text::field<&GroupTemplate::min_count, text::int_between<1, 1'000'000>>("minCount")),
};
constexpr Field<GroupTemplate> kTemplatePolicyFields[] = {
    text::skip<GroupTemplate>("basic"),
    text::inlined<kTemplateGangFields>("gang"),
};
constexpr Field<GroupTemplate> kGroupTemplateFields[] = {
    text::skip<GroupTemplate>("disruptionMode"),
    text::required(text::field<&GroupTemplate::name>("name")),
    text::skip<GroupTemplate>("preemptionPolicy"),
    text::skip<GroupTemplate>("priority"),
    text::skip<GroupTemplate>("priorityClassName"),
    text::skip<GroupTemplate>("resourceClaims"),
    text::skip<GroupTemplate>("schedulingConstraints"),
    text::required(text::inlined<kTemplatePolicyFields>("schedulingPolicy")),
};
constexpr auto read_group_template = object_of<kGroupTemplateFields>;
using U = UpstreamWorkload;
void read_group_templates(const Value& v, U& out, Decoder& d) {
  std::vector<GroupTemplate> list;
  list_of<read_group_template>(v, list, d);
  if (list.size() > 8) d.error(v, std::to_string(list.size()) + " templates", "at most 8");
  for (std::size_t i = 0; i < list.size(); ++i) {
    Decoder::Step step(d, i);
    if (out.templates.emplace(list[i].name, list[i].min_count).second) continue;
    d.error(v.items()[i], "template " + quoted(list[i].name) + " twice", "each name once");
  }
}
constexpr Field<U> kUpstreamWorkloadSpecFields[] = {
    no_equivalent<U>("compositePodGroupTemplates"),
    text::skip<U>("controllerRef"),
    text::custom<U>("podGroupTemplates", read_group_templates),
};
constexpr Field<U> kUpstreamWorkloadFields[] = {
    text::skip<U>("apiVersion"), text::skip<U>("kind"),
    text::skip<U>("metadata"),   text::required(text::inlined<kUpstreamWorkloadSpecFields>("spec")),
    text::skip<U>("status"),
};

// After errors: a bound that is lower than another one does not count.
void raise_to(model::Amounts& high, const model::Amounts& low) {
  for (auto& [resource, amount] : high) {
    const auto it = low.find(resource);
    if (it != low.end()) amount = std::max(amount, it->second);
  }
}

}  // namespace

void decode(const Value& v, VolcanoQueue& out, Decoder& d) {
  const std::size_t before = d.errors();
  read_meta(v, Scope::kCluster, out.meta, d);
  decode_object(v, kVolcanoQueueFields, out, d);
  if (out.parent == "root") out.parent.clear();
  check_order(v, out.guarantee, out.deserved, "guarantee", "deserved", d);
  check_order(v, out.guarantee, out.capability, "guarantee", "capability", d);
  check_order(v, out.deserved, out.capability, "deserved", "capability", d);
  if (out.parent == out.meta.name) {
    Decoder::Step spec(d, "spec");
    Decoder::Step step(d, "parent");
    d.error(v, "the queue itself", "another queue, or none");
    out.parent.clear();
  }
  if (d.errors() == before) return;
  out.closed = true;
  raise_to(out.deserved, out.guarantee);
  raise_to(out.capability, out.guarantee);
  raise_to(out.capability, out.deserved);
}

void decode(const Value& v, KaiQueue& out, Decoder& d) {
  const std::size_t before = d.errors();
  read_meta(v, Scope::kCluster, out.meta, d);
  decode_object(v, kKaiQueueFields, out, d);
  if (out.parent == out.meta.name) {
    Decoder::Step spec(d, "spec");
    Decoder::Step step(d, "parentQueue");
    d.error(v, "the queue itself", "another queue, or none");
    out.parent.clear();
  }
  out.closed = d.errors() != before;
  const auto gpu = out.shares.find("gpu");
  for (const auto& [name, share] : out.shares) {
    if (gpu == out.shares.end() || share.weight == gpu->second.weight) continue;
    Decoder::Step spec(d, "spec");
    Decoder::Step step(d, "resources");
    d.warning(v, "different overQuotaWeights; a queue has one weight",
              "that of gpu, which is used");
    break;
  }
}

void decode(const Value& v, VolcanoJob& out, Decoder& d) {
  read_meta(v, Scope::kNamespaced, out.meta, d);
  decode_object(v, kVolcanoJobFields, out, d);
  std::int64_t replicas = 0;
  for (const VolcanoTask& task : out.tasks) replicas += task.replicas;
  if (out.min_available > replicas || replicas > kMaxJobPods) {
    Decoder::Step spec(d, "spec");
    Decoder::Step step(d, out.min_available > replicas ? "minAvailable" : "tasks");
    d.error(v, std::to_string(std::max<std::int64_t>(out.min_available, replicas)) + " pods",
            "at most " + std::to_string(std::min<std::int64_t>(replicas, kMaxJobPods)));
  }
  if (out.min_available == 0)
    out.min_available = static_cast<int>(std::min<std::int64_t>(replicas, kMaxJobPods));
}

void decode(const Value& v, UpstreamWorkload& out, Decoder& d) {
  read_meta(v, Scope::kNamespaced, out.meta, d);
  decode_object(v, kUpstreamWorkloadFields, out, d);
}

}  // namespace berth::kinds
