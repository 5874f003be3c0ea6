#include "node/monitor/exporter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <set>
#include <utility>

#include "base/utf8.h"
#include "node/monitor/exporter_fields.h"
#include "node/monitor/xid.h"

namespace berth::monitor {
namespace {

// A device as one holder sees it: one line in every family.
struct ExportLine {
  ExportDevice device;
  std::string labels, old_labels;     // without the closing brace
  std::optional<double> utilization;  // the holder's own, where the GPU is shared
  std::optional<std::uint64_t> memory_used;
};

void append_escaped(std::string& out, std::string_view text) {
  if (!is_utf8(text)) {
    std::string valid;
    append_valid_utf8(valid, text);
    return append_escaped(out, valid);
  }
  for (char c : text) {
    if (c == '\\' || c == '"') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
}

void add_label(std::string& labels, std::string_view label, std::string_view value) {
  labels += labels.empty() ? '{' : ',';
  labels += label;
  labels += "=\"";
  append_escaped(labels, value);
  labels += '"';
}

void append_number(std::string& out, const ExportNumber& number) {
  if (const auto* count = std::get_if<std::uint64_t>(&number)) {
    fmt::format_to(std::back_inserter(out), "{}", *count);
  } else if (const auto* real = std::get_if<double>(&number)) {
    if (std::isnan(*real)) {
      out += "NaN";
    } else if (std::isinf(*real)) {
      out += *real > 0 ? "+Inf" : "-Inf";
    } else {
      fmt::format_to(std::back_inserter(out), "{}", *real);
    }
  }
}

void append_header(std::string& out, std::string_view family, std::string_view help,
                   std::string_view type) {
  out += "# HELP ";
  out += family;
  out += ' ';
  for (char c : help) {
    if (c == '\\') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  out += "\n# TYPE ";
  out += family;
  out += ' ';
  out += type;
  out += '\n';
}

// The driver's own spelling, which DCGM shows: "00000000:18:00.0".
std::string driver_bus_id(std::string_view bus_id) {
  std::string out = bus_id.find(':') == 4 ? "0000" : "";
  for (char c : bus_id) out += c >= 'a' && c <= 'f' ? static_cast<char>(c - 'a' + 'A') : c;
  return out;
}

std::string identity_labels(const model::GpuDevice& gpu) {
  std::string labels;
  add_label(labels, "gpu", std::to_string(gpu.index));
  add_label(labels, "UUID", gpu.uuid);
  add_label(labels, "pci_bus_id", driver_bus_id(gpu.pci_bus_id));
  add_label(labels, "device", "nvidia" + std::to_string(gpu.minor));
  add_label(labels, "modelName", gpu.name);
  return labels;
}

void add_hostname(std::string& labels, const ExportOptions& options) {
  if (options.hostname.empty()) return;
  add_label(labels, "hostname", options.hostname);
  if (options.old_hostname) add_label(labels, "Hostname", options.hostname);
}

void add_instance(std::string& labels, const model::GpuDevice& gpu, const model::MigInstance* mig) {
  if (mig == nullptr) return;
  add_label(labels, "GPU_I_PROFILE", mig->profile);
  add_label(labels, "GPU_I_ID", std::to_string(mig->gpu_instance));
  auto same = std::count_if(gpu.mig.begin(), gpu.mig.end(), [&](const auto& other) {
    return other.gpu_instance == mig->gpu_instance;
  });
  if (same > 1) add_label(labels, "GPU_CI_ID", std::to_string(mig->compute_instance));
}

std::string_view replica_of(std::string_view id) {
  std::size_t at = id.find("::");
  return at == std::string_view::npos ? std::string_view() : id.substr(at + 2);
}

void add_holder(ExportLine& line, const Holder& holder, const ExportOptions& options) {
  add_label(line.labels, "container", holder.container);
  add_label(line.labels, "namespace", holder.ns);
  add_label(line.labels, "pod", holder.pod);
  if (options.pod_uid) add_label(line.labels, "pod_uid", holder.pod_uid);
  std::string_view replica = replica_of(holder.device);
  if (!replica.empty()) add_label(line.labels, "vgpu", replica);
  if (!options.old_names) return;
  add_label(line.old_labels, "container_name", holder.container);
  add_label(line.old_labels, "pod_name", holder.pod);
  add_label(line.old_labels, "pod_namespace", holder.ns);
}

bool same_container(const Holder& a, const Holder& b) {
  return a.ns == b.ns && a.pod == b.pod && a.container == b.container;
}

// What one of several holders uses itself, from the processes whose container is known. When none
// is, nothing can be said of any holder.
void split_usage(ExportLine& line, const Holder& holder, const std::map<int, Holder>& containers) {
  std::string_view instance;
  if (line.device.mig != nullptr) instance = line.device.mig->uuid;
  double utilization = 0;
  bool all_tell = true, some_known = false;
  std::uint64_t memory = 0;
  for (const auto& process : line.device.reading->processes) {
    auto found = containers.find(process.pid);
    if (process.mig_uuid != instance || found == containers.end()) continue;
    some_known = true;
    if (!same_container(found->second, holder)) continue;
    memory += process.memory_mib;
    utilization += process.utilization.value_or(0);
    all_tell = all_tell && process.utilization.has_value();
  }
  if (!some_known) return;
  line.memory_used = memory;
  if (all_tell) line.utilization = utilization;
}

class ExportPage {
 public:
  ExportPage(const ExportInput& input, const ExportOptions& options, std::string& out)
      : input_(input), options_(options), out_(out) {
    for (const auto& reading : *input.readings) readings_[reading.uuid] = &reading;
    for (const auto& row : options.rows) {
      const ExportField* field = find_export_field(row.field);
      if (field == nullptr) continue;
      if (field->label != nullptr) {
        label_fields_.push_back(field);
      } else {
        fields_.emplace_back(&row, field);
      }
    }
    for (const auto& gpu : input.inventory->gpus) add_gpu(gpu);
  }

  void write() {
    for (const auto& [row, field] : fields_) {
      family(field->name, *row, *field, false);
      if (options_.old_names && !field->old_name.empty()) {
        family(field->old_name, *row, *field, true);
      }
    }
    health();
    xid_counts();
    sample_age();
  }

 private:
  void add_gpu(const model::GpuDevice& gpu) {
    auto found = readings_.find(gpu.uuid);
    if (found == readings_.end()) return;
    ExportDevice device{&gpu,
                        nullptr,
                        found->second,
                        nullptr,
                        input_.health != nullptr ? input_.health->last_xid(gpu.uuid) : 0,
                        found->second->answer == model::GpuAnswer::kFine};
    if (!gpu.mig_enabled || gpu.mig.empty()) {
      device.own = &device.reading->counters;
      return add_device(device, gpu.uuid);
    }
    for (const auto& mig : gpu.mig) {
      device.mig = &mig;
      device.own = nullptr;
      for (const auto& [uuid, counters] : device.reading->mig) {
        if (uuid == mig.uuid) device.own = &counters;
      }
      add_device(device, mig.uuid);
    }
  }

  void add_device(const ExportDevice& device, const std::string& uuid) {
    ExportLine line;
    line.device = device;
    line.labels = identity_labels(*device.gpu);
    add_instance(line.labels, *device.gpu, device.mig);
    add_hostname(line.labels, options_);
    for (const ExportField* field : label_fields_) {
      add_label(line.labels, field->name, field->label(*input_.inventory, *device.gpu));
    }
    if (options_.old_names) {
      add_label(line.old_labels, "gpu", std::to_string(device.gpu->index));
      add_label(line.old_labels, "uuid", device.gpu->uuid);
      add_instance(line.old_labels, *device.gpu, device.mig);
    }
    const std::vector<Holder> holders = holders_by_container(uuid);
    if (holders.empty()) return lines_.push_back(std::move(line));
    for (const Holder& holder : holders) {
      ExportLine held = line;
      add_holder(held, holder, options_);
      if (holders.size() > 1 && input_.processes != nullptr) {
        split_usage(held, holder, *input_.processes);
      }
      lines_.push_back(std::move(held));
    }
  }

  // A container with several replicas of one GPU is one holder, under its first replica.
  std::vector<Holder> holders_by_container(const std::string& uuid) const {
    std::vector<Holder> out;
    if (input_.holders == nullptr) return out;
    auto found = input_.holders->find(uuid);
    if (found == input_.holders->end()) return out;
    out = found->second;
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end(), same_container), out.end());
    return out;
  }

  void family(std::string_view family_name, const CounterRow& row, const ExportField& field,
              bool old) {
    bool first = true;
    for (const ExportLine& line : lines_) {
      if (!line.device.answers && field.name != kXidField) continue;
      ExportNumber number = field.value(line.device);
      if (field.name == kUtilizationField && line.utilization) number = *line.utilization;
      if (field.name == kMemoryUsedField && line.memory_used) number = *line.memory_used;
      if (std::holds_alternative<std::monostate>(number)) continue;
      if (std::exchange(first, false)) append_header(out_, family_name, row.help, row.type);
      out_ += family_name;
      out_ += old ? line.old_labels : line.labels;
      if (field.name == kXidField && !old) error_labels(line.device.last_xid);
      out_ += "} ";
      append_number(out_, number);
      out_ += '\n';
    }
  }

  void error_labels(int xid) {
    const XidFact* fact = find_xid(xid);
    out_ += ",err_code=\"";
    fmt::format_to(std::back_inserter(out_), "{}", xid);
    out_ += "\",err_msg=\"";
    append_escaped(out_, xid == 0 ? "No Error" : fact != nullptr ? fact->text : "Unknown Error");
    out_ += '"';
  }

  void health() {
    if (input_.health == nullptr || input_.inventory->gpus.empty()) return;
    append_header(out_, "berth_gpu_health", "1: the GPU takes pods; 0: it does not, code says why.",
                  "gauge");
    for (const auto& gpu : input_.inventory->gpus) {
      const Verdict& verdict = input_.health->verdict(gpu.uuid);
      std::string labels = identity_labels(gpu);
      add_hostname(labels, options_);
      add_label(labels, "code", verdict.code);
      add_label(labels, "severity", name(verdict.severity));
      add_label(labels, "heals", name(verdict.heals));
      out_ += "berth_gpu_health" + labels + (verdict.healthy ? "} 1\n" : "} 0\n");
    }
    append_header(out_, "berth_gpu_known", "1: the driver answers for the GPU.", "gauge");
    for (const auto& gpu : input_.inventory->gpus) {
      std::string labels = identity_labels(gpu);
      add_hostname(labels, options_);
      out_ +=
          "berth_gpu_known" + labels + (input_.health->verdict(gpu.uuid).known ? "} 1\n" : "} 0\n");
    }
  }

  void xid_counts() {
    if (input_.health == nullptr) return;
    bool first = true;
    for (const auto& gpu : input_.inventory->gpus) {
      const auto& counts = input_.health->xid_counts();
      for (auto it = counts.lower_bound({gpu.uuid, 0});
           it != counts.end() && it->first.first == gpu.uuid; ++it) {
        if (std::exchange(first, false)) {
          append_header(out_, "berth_gpu_xid_total", "Xid errors since the agent started.",
                        "counter");
        }
        std::string labels = identity_labels(gpu);
        add_hostname(labels, options_);
        add_label(labels, "xid", std::to_string(it->first.second));
        fmt::format_to(std::back_inserter(out_), "berth_gpu_xid_total{}}} {}\n", labels,
                       it->second);
      }
    }
  }

  void sample_age() {
    append_header(out_, "berth_gpu_sample_age_seconds", "Age of the values on this page.", "gauge");
    std::string labels;
    add_hostname(labels, options_);
    const double age =
        static_cast<double>(std::max<std::int64_t>(input_.now_ns - input_.sampled_ns, 0)) / 1e9;
    fmt::format_to(std::back_inserter(out_), "berth_gpu_sample_age_seconds{}{} {}\n", labels,
                   labels.empty() ? "" : "}", age);
  }

  const ExportInput& input_;
  const ExportOptions& options_;
  std::string& out_;
  std::map<std::string_view, const model::GpuReading*> readings_;
  std::vector<std::pair<const CounterRow*, const ExportField*>> fields_;
  std::vector<const ExportField*> label_fields_;
  std::vector<ExportLine> lines_;
};

}  // namespace

Holders holders_of(const std::vector<model::HeldDevices>& held,
                   const std::vector<model::OfferedResource>& resources) {
  std::set<std::string_view> names, uuids;
  for (const auto& resource : resources) {
    names.insert(resource.name);
    for (const auto& device : resource.devices) uuids.insert(device.uuid);
  }
  Holders out;
  for (const auto& one : held) {
    for (const auto& id : one.ids) {
      std::string uuid = id.substr(0, id.find("::"));
      // A pod keeps what it got when the resource was renamed since.
      if (!names.contains(one.resource) && !uuids.contains(uuid)) continue;
      out[std::move(uuid)].push_back({one.ns, one.pod, one.container, "", id});
    }
  }
  for (auto& [uuid, holders] : out) {
    std::sort(holders.begin(), holders.end());
    holders.erase(std::unique(holders.begin(), holders.end()), holders.end());
  }
  return out;
}

const Holder* holder_at(const Holders& holders, const std::vector<model::ContainerPlace>& places,
                        const std::map<std::string, std::string>& containers) {
  for (const model::ContainerPlace& place : places) {
    const auto named = containers.find(place.container_id);
    const Holder* found = nullptr;
    bool several = false;
    for (const auto& [device, list] : holders) {
      for (const Holder& holder : list) {
        if (holder.pod_uid != place.pod_uid) continue;
        if (named != containers.end() && named->second == holder.container) return &holder;
        several = several || (found != nullptr && found->container != holder.container);
        if (found == nullptr) found = &holder;
      }
    }
    if (found == nullptr) continue;
    // A container that is known and holds nothing uses what another of its pod holds.
    return several || named != containers.end() ? nullptr : found;
  }
  return nullptr;
}

void export_metrics(const ExportInput& input, const ExportOptions& options, std::string& out) {
  out.clear();
  static const model::GpuInventory kNoInventory;
  static const std::vector<model::GpuReading> kNoReadings;
  ExportInput whole = input;
  if (whole.inventory == nullptr) whole.inventory = &kNoInventory;
  if (whole.readings == nullptr) whole.readings = &kNoReadings;
  ExportPage(whole, options, out).write();
}

std::string export_metrics(const ExportInput& input, const ExportOptions& options) {
  std::string out;
  export_metrics(input, options, out);
  return out;
}

}  // namespace berth::monitor
