#include "node/partition/mig_config.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <utility>

#include "kinds/readers.h"
#include "text/decode.h"
#include "text/yaml.h"

namespace berth::partition {

namespace {

using text::Decoder;
using text::Value;

constexpr std::size_t kMaxConfigBytes = 1 << 20, kMaxLayouts = 1'024, kMaxEntries = 256;
constexpr std::size_t kMaxLayoutName = 63;
constexpr int kMaxCount = 64;

// [C c.]G g.M gb[+attribute|-attribute]
bool is_profile_name(std::string_view text) {
  const auto number = [&] {
    const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
    text.remove_prefix(digits);
    return digits > 0 && digits <= 4;
  };
  if (text.size() > 32 || !number()) return false;
  if (text.starts_with("c.")) {
    text.remove_prefix(2);
    if (!number()) return false;
  }
  if (!text.starts_with("g.")) return false;
  text.remove_prefix(2);
  if (!number() || !text.starts_with("gb")) return false;
  text.remove_prefix(2);
  return text.empty() || text == "+me" || text == "-me" || text == "+gfx" || text == "+me.all";
}

void read_filter_word(const Value& v, std::uint32_t& out, Decoder& d) {
  std::string_view digits = v.is_string() ? v.string() : std::string_view();
  if (digits.starts_with("0x") || digits.starts_with("0X")) digits.remove_prefix(2);
  std::uint32_t number = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), number, 16);
  if (digits.empty() || digits.size() > 8 || error != std::errc() ||
      end != digits.data() + digits.size()) {
    return d.mismatch(v, "device and vendor in hex, as \"0x233510DE\"");
  }
  out = number;
}

void read_filter(const Value& v, MigEntry& out, Decoder& d) {
  if (v.is_string() && v.string().empty()) return;
  if (!v.is_array()) return read_filter_word(v, out.filter.emplace_back(), d);
  for (std::size_t i = 0; const Value& item : v.items()) {
    const Decoder::Step step(d, i++);
    if (out.filter.size() == kMaxEntries) return d.mismatch(v, "at most 256 of them");
    read_filter_word(item, out.filter.emplace_back(), d);
  }
}

void read_devices(const Value& v, MigEntry& out, Decoder& d) {
  if (v.is_string() && v.string() == "all") {
    out.all_devices = true;
    return;
  }
  if (!v.is_array() || v.size() > kMaxEntries) return d.mismatch(v, "all, or a list of indices");
  std::set<std::int64_t> seen;
  for (std::size_t i = 0; const Value& item : v.items()) {
    const Decoder::Step step(d, i++);
    std::int64_t index = 0;
    if (!text::decode_int(item, 0, model::kMaxGpuIndex, index, d)) continue;
    if (!seen.insert(index).second) d.mismatch(item, "each index once");
    out.devices.push_back(static_cast<int>(index));
  }
}

void read_instances(const Value& v, MigEntry& out, Decoder& d) {
  if (!v.is_object()) return d.mismatch(v, "profiles and counts, as {\"1g.18gb\": 7}");
  for (const text::Member& member : v.members()) {
    const Decoder::Step step(d, member.key);
    if (!is_profile_name(member.key)) {
      d.error(member.value, kinds::quoted(member.key), "a MIG profile such as 1g.18gb");
      continue;
    }
    std::int64_t count = 0;
    if (!text::decode_int(member.value, 0, kMaxCount, count, d) || count == 0) continue;
    out.wish.devices[std::string(member.key)] = static_cast<int>(count);
  }
}

constexpr text::Field<MigEntry> kEntryFields[] = {
    text::custom<MigEntry>("device-filter", read_filter),
    text::required(text::custom<MigEntry>("devices", read_devices)),
    text::required(text::custom<MigEntry>(
        "mig-enabled",
        [](const Value& v, MigEntry& out, Decoder& d) { decode(v, out.wish.enabled, d); })),
    text::custom<MigEntry>("mig-devices", read_instances),
};

// A name that nobody knows is a mistake here, not something to step over.
void refuse_unknown(const Value& v, std::initializer_list<std::string_view> known, Decoder& d) {
  std::string allowed = "one of ";
  for (const std::string_view name : known) {
    allowed += (name == *known.begin() ? "" : ", ") + std::string(name);
  }
  for (const text::Member& member : v.members()) {
    if (std::find(known.begin(), known.end(), member.key) != known.end()) continue;
    const Decoder::Step step(d, member.key);
    d.error(member.value, "an unknown field", allowed);
  }
}

void read_entry(const Value& v, MigEntry& out, Decoder& d) {
  if (!v.is_object()) return d.mismatch(v, "an object");
  refuse_unknown(v, {"device-filter", "devices", "mig-enabled", "mig-devices"}, d);
  decode_object(v, kEntryFields, out, d);
  if (!out.wish.enabled && !out.wish.devices.empty()) {
    const Decoder::Step step(d, "mig-devices");
    d.error(v, "instances with mig-enabled: false", "none, or mig-enabled: true");
  }
}

void read_layouts(const Value& v, MigConfig& out, Decoder& d) {
  if (!v.is_object()) return d.mismatch(v, "layouts by name");
  if (v.size() > kMaxLayouts) return d.mismatch(v, "at most 1024 layouts");
  for (const text::Member& member : v.members()) {
    const Decoder::Step step(d, member.key);
    if (member.key.empty() || member.key.size() > kMaxLayoutName) {
      d.error(member.value, kinds::quoted(member.key), "a name of 1..63 bytes, as a label has");
      continue;
    }
    if (!member.value.is_array() || member.value.size() > kMaxEntries) {
      d.mismatch(member.value, "a list of at most 256 entries");
      continue;
    }
    MigLayout& layout = out[std::string(member.key)];
    for (std::size_t i = 0; const Value& item : member.value.items()) {
      const Decoder::Step at(d, i++);
      read_entry(item, layout.emplace_back(), d);
    }
  }
}

bool matches(const MigEntry& entry, const MigGpu& gpu) {
  const bool filtered = !entry.filter.empty() && std::find(entry.filter.begin(), entry.filter.end(),
                                                           gpu.pci_device) == entry.filter.end();
  return !filtered && (entry.all_devices || std::find(entry.devices.begin(), entry.devices.end(),
                                                      gpu.index) != entry.devices.end());
}

// Two of the smallest, one of the next, and one of three slices where there are seven.
MigWish balanced(const MigGeometry& geometry) {
  MigWish out;
  out.enabled = true;
  for (const auto& [slices, count] : {std::pair{1, 2}, {2, 1}, {3, 1}}) {
    if (slices == 3 && geometry.slices < 7) continue;
    const MigProfile* chosen = nullptr;
    for (const MigProfile& profile : geometry.profiles) {
      const bool plain = profile.name.find_first_of("+-") == std::string::npos;
      if (!plain || profile.slices != slices) continue;
      if (chosen == nullptr || profile.slots < chosen->slots) chosen = &profile;
    }
    if (chosen != nullptr) out.devices[chosen->name] = count;
  }
  return out;
}

}  // namespace

std::string describe(const MigWish& wish) {
  if (!wish.enabled) return "off";
  std::string out;
  for (const auto& [profile, count] : wish.devices) {
    out += (out.empty() ? "" : ", ") + std::to_string(count) + " x " + profile;
  }
  return out.empty() ? "no instances" : out;
}

Result<MigConfig> read_mig_config(std::string_view text) {
  if (text.size() > kMaxConfigBytes) return Error(Code::kExhausted, "longer than 1 MiB");
  BERTH_TRY(const std::vector<text::Document> documents, text::parse_any(text));
  if (documents.size() != 1) {
    return invalid("found " + std::to_string(documents.size()) + " documents, want one");
  }
  const Value& root = documents.front().root();
  Decoder d;
  MigConfig out;
  if (!root.is_object()) {
    d.mismatch(root, "an object with version and mig-configs");
    return d.to_error();
  }
  refuse_unknown(root, {"version", "mig-configs"}, d);
  const Value* version = root.find("version");
  if (version == nullptr || !version->is_string() || version->string() != "v1") {
    const Decoder::Step step(d, "version");
    d.mismatch(version == nullptr ? root : *version, "v1");
  }
  const Decoder::Step step(d, "mig-configs");
  if (const Value* layouts = root.find("mig-configs")) {
    read_layouts(*layouts, out, d);
  } else {
    d.error(root, "nothing", "layouts by name");
  }
  if (!d.ok()) return d.to_error();
  return out;
}

Result<MigLayout> usual_layout(const std::string& name, const std::vector<MigGpu>& gpus) {
  MigLayout out;
  std::set<std::string> known = {"all-disabled", "all-enabled"};
  for (const MigGpu& gpu : gpus) {
    MigEntry entry;
    entry.devices = {gpu.index};
    bool found = name == "all-disabled";
    if (name == "all-enabled") found = entry.wish.enabled = gpu.capable;
    if (!gpu.geometry.profiles.empty()) known.insert("all-balanced");
    if (name == "all-balanced" && !gpu.geometry.profiles.empty()) {
      entry.wish = balanced(gpu.geometry);
      found = true;
    }
    for (const MigProfile& profile : gpu.geometry.profiles) {
      std::string spelled = "all-" + profile.name;
      std::replace(spelled.begin(), spelled.end(), '+', '.');
      known.insert(spelled);
      if (name != spelled && name != "all-" + profile.name) continue;
      entry.wish = {true, {{profile.name, profile.most}}};
      found = true;
    }
    if (found) out.push_back(std::move(entry));
  }
  if (!out.empty()) return out;
  std::string list;
  for (const std::string& one : known) list += (list.empty() ? "" : ", ") + one;
  return Error(Code::kNotFound, "found layout " + kinds::quoted(name) + ", want one of " + list);
}

Result<std::map<std::string, MigWish>> wishes(const MigLayout& layout,
                                              const std::vector<MigGpu>& gpus) {
  std::map<std::string, MigWish> out;
  std::map<std::string, std::size_t> entry_of;
  for (std::size_t i = 0; i < layout.size(); ++i) {
    for (const int index : layout[i].devices) {
      if (std::none_of(gpus.begin(), gpus.end(),
                       [&](const MigGpu& gpu) { return gpu.index == index; })) {
        return invalid("[" + std::to_string(i) + "].devices: found " + std::to_string(index) +
                       ", want indices of the " + std::to_string(gpus.size()) + " GPUs there are");
      }
    }
    for (const MigGpu& gpu : gpus) {
      if (!matches(layout[i], gpu)) continue;
      const auto [place, fresh] = out.try_emplace(gpu.uuid, layout[i].wish);
      if (fresh) {
        entry_of[gpu.uuid] = i;
      } else if (place->second != layout[i].wish) {
        return invalid("[" + std::to_string(i) + "]: GPU " + std::to_string(gpu.index) +
                       " is to be " + describe(layout[i].wish) + " here and " +
                       describe(place->second) + " in [" + std::to_string(entry_of[gpu.uuid]) +
                       "], want one entry for each GPU");
      }
    }
  }
  return out;
}

}  // namespace berth::partition
