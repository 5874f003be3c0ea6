#include "node/advertise/plugin_config_file.h"

#include <algorithm>
#include <set>
#include <utility>

#include "kinds/names.h"
#include "kinds/readers.h"
#include "node/advertise/resources.h"
#include "text/decode.h"
#include "text/selector.h"
#include "text/yaml.h"

namespace berth::advertise {
namespace {

using kinds::quoted;
using text::Decoder;
using text::Value;

constexpr std::string_view kPrefix = "nvidia.com/";
constexpr std::size_t kMaxResourceName = 63;
constexpr std::size_t kMaxRules = 256;  // of one list
constexpr std::size_t kMaxFileBytes = 1024 * 1024;

// A name that nobody knows is a mistake here, not something to step over.
template <class T, std::size_t N>
void decode_strict(const Value& v, const text::Field<T> (&fields)[N], T& out, Decoder& d) {
  if (!v.is_object()) return d.mismatch(v, "an object");
  std::string known = "one of ";
  for (const text::Field<T>& f : fields) {
    known += (&f == &fields[0] ? "" : ", ") + std::string(f.name);
  }
  bool unknown = false;
  for (const text::Member& member : v.members()) {
    if (std::any_of(std::begin(fields), std::end(fields),
                    [&](const text::Field<T>& f) { return f.name == member.key; })) {
      continue;
    }
    Decoder::Step step(d, member.key);
    d.error(member.value, "an unknown field", known);
    unknown = true;
  }
  if (!unknown) decode_object(v, fields, out, d);
}

template <const auto& Table>
inline constexpr auto strict =
    [](const Value& v, auto& out, Decoder& d) { decode_strict(v, Table, out, d); };

template <auto Parse>
inline constexpr auto word_of = [](const Value& v, auto& out, Decoder& d) {
  auto read = Parse(v.string());
  if (!v.is_string() || !read.ok())
    return d.mismatch(v, read.ok() ? "a string" : read.error().message());
  out = *read;
};

template <auto Check>
inline constexpr auto checked_text = [](const Value& v, std::string& out, Decoder& d) {
  if (!v.is_string()) return d.mismatch(v, "a string");
  if (auto status = Check(v.string()); !status.ok()) return d.mismatch(v, status.error().message());
  out = v.string();
};

// ---- flags ----

struct FileRead {
  PluginConfig config;
  bool time_slicing = false;
};

void warn(Decoder& d, FileRead& out, std::string_view why) {
  out.config.warnings.push_back(d.path() + ": " + std::string(why));
}

template <auto Member, auto Reader = text::internal::DefaultReader{}>
void into(const Value& v, FileRead& out, Decoder& d) {
  Reader(v, out.config.*Member, d);
}

// A bool or a text without effect here; warned about when it is set to something.
template <const std::string_view& Why>
void idle_bool(const Value& v, FileRead& out, Decoder& d) {
  bool on = false;
  decode(v, on, d);
  if (on) warn(d, out, Why);
}
template <const std::string_view& Why>
void idle_text(const Value& v, FileRead& out, Decoder& d) {
  std::string value;
  decode(v, value, d);
  if (!value.empty()) warn(d, out, Why);
}

constexpr std::string_view kWhyNodeFeature =
    "labels are written to the Node itself, no NodeFeature object is made";
constexpr std::string_view kWhyMpsRoot = kWarnMpsRoot;
constexpr std::string_view kWhyInit =
    "the agent waits for GPUs and driver, and does not end for want of them";
constexpr std::string_view kWhyOneshot = "labels are kept true while the agent runs";
constexpr std::string_view kWhyOutput = "labels are written to the Node itself, not to a file";
constexpr std::string_view kWhyMachine = "the machine type is read from the DMI product name";

void read_device_lists(const Value& v, FileRead& out, Decoder& d) {
  std::vector<DeviceList> lists;
  const auto add = [&](const Value& item) {
    DeviceList list{};
    word_of<device_list_of>(item, list, d);
    if (std::find(lists.begin(), lists.end(), list) == lists.end()) lists.push_back(list);
  };
  if (!v.is_array()) {
    add(v);
  } else {
    for (std::size_t i = 0; const Value& item : v.items()) {
      Decoder::Step step(d, i++);
      add(item);
    }
  }
  if (lists.empty()) return d.mismatch(v, "a strategy or a list of them");
  out.config.device_list = std::move(lists);
}

void read_discovery(const Value& v, FileRead&, Decoder& d) {
  std::string word;
  checked_text<check_discovery>(v, word, d);
}

// Parsed for its mistakes; the agent follows events and has no interval.
void read_sleep(const Value& v, FileRead& out, Decoder& d) {
  if (!v.is_string() || v.string() != "infinite") {
    std::int64_t ns = 0;
    const std::size_t before = d.errors();
    text::read_duration_ns(v, ns, d);
    if (d.errors() != before) return;
  }
  warn(d, out, "labels follow changes at once, there is no interval");
}

using F = FileRead;
using C = PluginConfig;
using text::custom;
constexpr text::Field<F> kPluginFields[] = {
    custom<F>("passDeviceSpecs", into<&C::pass_device_specs>),
    custom<F>("deviceListStrategy", read_device_lists),
    custom<F>("deviceIDStrategy", into<&C::device_id, word_of<device_id_of>>),
    custom<F>("cdiAnnotationPrefix",
              into<&C::cdi_annotation_prefix, checked_text<check_annotation_prefix>>),
    custom<F>("nvidiaCTKPath",
              [](const Value& v, F&, Decoder& d) {
                std::string path;  // CDI specs have no hooks
                decode(v, path, d);
              }),
    custom<F>("containerDriverRoot", into<&C::container_driver_root, checked_text<check_path>>),
    custom<F>("sharedDevicesAllocationPolicy", into<&C::shared_policy, word_of<shared_policy_of>>),
};
constexpr text::Field<F> kGfdFields[] = {
    custom<F>("oneshot", idle_bool<kWhyOneshot>),
    custom<F>("noTimestamp", into<&C::no_timestamp>),
    custom<F>("sleepInterval", read_sleep),
    custom<F>("outputFile", idle_text<kWhyOutput>),
    custom<F>("machineTypeFile", idle_text<kWhyMachine>),
};
constexpr text::Field<F> kFlagFields[] = {
    custom<F>("migStrategy", into<&C::mig, word_of<mig_strategy_of>>),
    custom<F>("failOnInitError", idle_bool<kWhyInit>),
    custom<F>("mpsRoot", idle_text<kWhyMpsRoot>),
    custom<F>("nvidiaDriverRoot", into<&C::driver_root, checked_text<check_path>>),
    custom<F>("nvidiaDevRoot",
              [](const Value& v, F& out, Decoder& d) {
                if (v.is_string() && v.string().empty()) return;  // its default, spelled out
                checked_text<check_path>(v, out.config.dev_root, d);
              }),
    custom<F>("gdrcopyEnabled", into<&C::gdrcopy>),
    custom<F>("gdsEnabled", into<&C::gds>),
    custom<F>("mofedEnabled", into<&C::mofed>),
    custom<F>("useNodeFeatureAPI", idle_bool<kWhyNodeFeature>),
    custom<F>("deviceDiscoveryStrategy", read_discovery),
    custom<F>("plugin", strict<kPluginFields>),
    custom<F>("gfd", strict<kGfdFields>),
};

// ---- resources and sharing ----

// "gpu" is "nvidia.com/gpu"; another domain is part of the name and then wrong.
void read_resource_name(const Value& v, std::string& out, Decoder& d) {
  if (!v.is_string()) return d.mismatch(v, "a resource name, as nvidia.com/gpu");
  std::string name(v.string());
  if (!name.starts_with(kPrefix)) name.insert(0, kPrefix);
  if (!kinds::is_dns_subdomain(std::string_view(name).substr(kPrefix.size())) ||
      name.size() > kMaxResourceName) {
    return d.mismatch(v,
                      "a resource name of nvidia.com/ and lower case letters, digits, - and ., at "
                      "most 63 characters in all");
  }
  out = std::move(name);
}

void read_pattern(const Value& v, std::string& out, Decoder& d) {
  if (!v.is_string() || v.string().empty() || v.string().size() > 128) {
    return d.mismatch(v, "a text of up to 128 characters in which * stands for anything");
  }
  out = v.string();
}

constexpr text::Field<NamedResource> kNamedFields[] = {
    text::required(text::field<&NamedResource::pattern, read_pattern>("pattern")),
    text::required(text::field<&NamedResource::name, read_resource_name>("name")),
};

template <const auto& Reader>
void read_rules(const Value& v, auto& out, Decoder& d) {
  if (v.size() > kMaxRules) {
    return d.error(v, std::to_string(v.size()) + " rules", "at most " + std::to_string(kMaxRules));
  }
  kinds::list_of<Reader>(v, out, d);
}

constexpr auto read_named = strict<kNamedFields>;
constexpr text::Field<F> kResourcesFields[] = {
    custom<F>("gpus", [](const Value& v, F& out,
                         Decoder& d) { read_rules<read_named>(v, out.config.gpus, d); }),
    custom<F>("mig", [](const Value& v, F& out,
                        Decoder& d) { read_rules<read_named>(v, out.config.migs, d); }),
};

bool is_index(std::string_view word) {
  std::int64_t ignored = 0;
  return word.size() <= 4 && kinds::parse_int(word, ignored);
}

// "3", "3:1", "GPU-...", "MIG-...".
bool is_device_ref(std::string_view word) {
  if (word.starts_with("GPU-") || word.starts_with("MIG-")) {
    return word.size() <= 63 &&
           std::all_of(word.begin(), word.end(), [](char c) { return c > ' ' && c < 0x7f; });
  }
  const std::size_t colon = word.find(':');
  return is_index(word.substr(0, colon)) &&
         (colon == std::string_view::npos || is_index(word.substr(colon + 1)));
}

constexpr std::string_view kDevicesAllowed =
    "all, a count from 1, or a list of indices (0), MIG indices (0:1) and UUIDs";

void read_devices(const Value& v, SharedResource& out, Decoder& d) {
  if (v.is_string() && v.string() == "all") return;
  if (v.is_number()) {
    std::int64_t count = 0;
    if (text::decode_int(v, 1, static_cast<std::int64_t>(kMaxOffered), count, d)) {
      out.first = static_cast<int>(count);
    }
    return;
  }
  if (!v.is_array() || v.size() == 0 || v.size() > kMaxRules) {
    return d.mismatch(v, std::string(kDevicesAllowed));
  }
  for (std::size_t i = 0; const Value& item : v.items()) {
    Decoder::Step step(d, i++);
    const std::string word(item.is_number() ? item.number_text() : item.string());
    if (!is_device_ref(word)) {
      d.mismatch(item, "an index (0), a MIG index (0:1) or a UUID (GPU-..., MIG-...)");
    } else {
      out.devices.push_back(word);
    }
  }
}

constexpr auto read_replicas = text::int_between<2, static_cast<std::int64_t>(kMaxOffered)>;
constexpr text::Field<SharedResource> kSharedFields[] = {
    text::required(text::field<&SharedResource::name, read_resource_name>("name")),
    text::field<&SharedResource::rename, read_resource_name>("rename"),
    custom<SharedResource>("devices", read_devices),
    text::required(text::field<&SharedResource::replicas, read_replicas>("replicas")),
};

constexpr auto read_shared = strict<kSharedFields>;
constexpr text::Field<C> kShareFields[] = {
    text::field<&C::rename_by_default>("renameByDefault"),
    text::field<&C::fail_requests_over_one>("failRequestsGreaterThanOne"),
    text::required(custom<C>(
        "resources",
        [](const Value& v, C& out, Decoder& d) { read_rules<read_shared>(v, out.shared, d); })),
};

constexpr text::Field<F> kSharingFields[] = {
    custom<F>("timeSlicing",
              [](const Value& v, F& out, Decoder& d) {
                decode_strict(v, kShareFields, out.config, d);
                if (out.config.shared.empty() && d.ok()) {
                  warn(d, out, "resources is empty, so nothing is shared");
                }
                out.time_slicing = !out.config.shared.empty();
              }),
    custom<F>("mps",
              [](const Value& v, F&, Decoder& d) {
                C mps;  // read for its mistakes alone
                decode_strict(v, kShareFields, mps, d);
                if (!mps.shared.empty()) d.error(v, "MPS, which is not yet served", "timeSlicing");
              }),
};

void read_channels(const Value& v, FileRead& out, Decoder& d) {
  std::vector<int> channels;
  const std::size_t before = d.errors();
  decode(v, channels, d);
  if (d.errors() != before) return;
  if (auto status = check_imex_channels(channels); !status.ok()) {
    return d.mismatch(v, status.error().message());
  }
  out.config.imex_channels = std::move(channels);
}

constexpr text::Field<F> kImexFields[] = {
    custom<F>("channelIDs", read_channels),
    custom<F>("required", into<&C::imex_required>),
};

void read_version(const Value& v, FileRead&, Decoder& d) {
  if (!v.is_string() || v.string() != "v1") d.mismatch(v, "v1");
}

constexpr text::Field<F> kFileFields[] = {
    custom<F>("version", read_version),
    custom<F>("flags", strict<kFlagFields>),
    custom<F>("resources", strict<kResourcesFields>),
    custom<F>("sharing", strict<kSharingFields>),
    custom<F>("imex", strict<kImexFields>),
};

template <class E, std::size_t N>
Result<E> find_word(std::string_view word, const std::pair<std::string_view, E> (&words)[N]) {
  std::string allowed = "one of ";
  for (const auto& [known, value] : words) {
    if (known == word) return value;
    allowed += (&known == &words[0].first ? "" : ", ") + std::string(known);
  }
  return invalid(std::move(allowed));
}

constexpr std::pair<std::string_view, MigStrategy> kMigStrategies[] = {
    {"none", MigStrategy::kNone}, {"single", MigStrategy::kSingle}, {"mixed", MigStrategy::kMixed}};
constexpr std::pair<std::string_view, DeviceId> kDeviceIds[] = {{"uuid", DeviceId::kUuid},
                                                                {"index", DeviceId::kIndex}};
constexpr std::pair<std::string_view, SharedPolicy> kSharedPolicies[] = {
    {"distributed", SharedPolicy::kDistributed}, {"packed", SharedPolicy::kPacked}};
constexpr std::pair<std::string_view, DeviceList> kDeviceLists[] = {
    {"envvar", DeviceList::kEnvVar},
    {"volume-mounts", DeviceList::kVolumeMounts},
    {"cdi-annotations", DeviceList::kCdiAnnotations},
    {"cdi-cri", DeviceList::kCdiCri}};

}  // namespace

Result<MigStrategy> mig_strategy_of(std::string_view word) {
  return find_word(word, kMigStrategies);
}
Result<DeviceId> device_id_of(std::string_view word) { return find_word(word, kDeviceIds); }
Result<SharedPolicy> shared_policy_of(std::string_view word) {
  return find_word(word, kSharedPolicies);
}
Result<DeviceList> device_list_of(std::string_view word) { return find_word(word, kDeviceLists); }

Status check_discovery(std::string_view word) {
  if (word == "auto" || word == "nvml" || word.empty()) return {};
  return invalid("auto or nvml, the only discovery there is here");
}

Status check_path(std::string_view path) {
  if (!path.empty() && path.size() <= 4096 && path[0] == '/' &&
      path.find('\0') == std::string_view::npos) {
    return {};
  }
  return invalid("an absolute path");
}

Status check_annotation_prefix(std::string_view prefix) {
  // As long as the names that follow it: nvidia-device-plugin_ and a UUID.
  const std::string key = std::string(prefix) + "nvidia-device-plugin_" + std::string(36, '0');
  if (text::validate_label_key(key).ok()) return {};
  return invalid("the first part of an annotation's name, as cdi.k8s.io/");
}

Status check_imex_channels(const std::vector<int>& channels) {
  if (channels.empty() || channels == std::vector<int>{0}) return {};
  return invalid("no channel or channel 0 alone");
}

Status read_config_file(std::string_view file, PluginConfig& out) {
  text::YamlOptions options;
  options.limits.max_bytes = kMaxFileBytes;
  BERTH_TRY(const std::vector<text::Document> documents, text::parse_any(file, {}, options));
  if (documents.empty()) return {};
  if (documents.size() > 1) {
    return invalid("found " + std::to_string(documents.size()) + " documents, want one");
  }
  const Value& root = documents[0].root();
  if (root.is_null()) return {};
  Decoder d;
  FileRead read;
  read.config = out;
  decode_strict(root, kFileFields, read, d);
  if (!d.ok()) return d.to_error();
  if (read.time_slicing) read.config.sharing = Sharing::kTimeSlicing;
  out = std::move(read.config);
  return {};
}

}  // namespace berth::advertise
