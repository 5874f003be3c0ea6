#include "advertise/cdi.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/utf8.h"
#include "text/json_writer.h"

namespace berth::advertise {
namespace {

using text::JsonWriter;

constexpr std::size_t kLongestPath = 4'095;  // the kernel's PATH_MAX without its end

// A device name as the CDI specification allows it.
bool is_device_name(std::string_view name) {
  const auto alphanumeric = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  if (name.empty() || !alphanumeric(name.front()) || !alphanumeric(name.back())) return false;
  return std::all_of(name.begin(), name.end(), [&](char c) {
    return alphanumeric(c) || c == '_' || c == '-' || c == '.' || c == ':';
  });
}

// A path that JSON can carry unchanged and that names one place: a runtime would act on it as root.
bool is_plain_path(std::string_view path) {
  if (!path.starts_with('/') || path.size() > kLongestPath || !is_utf8(path)) return false;
  for (std::string_view rest = path; !rest.empty();) {
    const Utf8Char c = decode_utf8(rest);
    if (is_unprintable(c.code)) return false;
    rest.remove_prefix(c.size);
  }
  return (std::string(path) + "/").find("/../") == std::string::npos;
}

std::string on_host(const DriverFiles& files, const std::string& node) {
  return files.dev_root + node;
}

// The nodes of one device, each once, in the order in which they came.
class Nodes {
 public:
  void add(const std::string& host, const std::string& container) {
    if (!is_plain_path(host) || !is_plain_path(container)) return;
    if (seen_.insert(container).second) nodes_.push_back({host, container});
  }
  bool empty() const { return nodes_.empty(); }
  bool elsewhere() const {  // one has another path on the host
    return std::any_of(nodes_.begin(), nodes_.end(),
                       [](const auto& node) { return node.host != node.container; });
  }

  void write(JsonWriter& out) const {
    out.key("deviceNodes");
    out.begin_array();
    for (const DriverFiles::Mount& node : nodes_) {
      out.begin_object();
      out.field("path", node.container);
      if (node.host != node.container) out.field("hostPath", node.host);
      out.end_object();
    }
    out.end_array();
  }

 private:
  std::vector<DriverFiles::Mount> nodes_;
  std::set<std::string> seen_;  // container paths
};

class Spec {
 public:
  Spec(const model::GpuInventory& inventory, const DriverFiles& files)
      : inventory_(inventory), files_(files) {}

  std::string write() && {
    collect();
    for (const std::string& node : files_.control_nodes) {
      control_.add(on_host(files_, node), node);
    }
    out_.begin_object();
    out_.field("cdiVersion", version());
    out_.field("kind", kCdiKind);
    out_.key("devices");
    out_.begin_array();
    for (const auto& [name, nodes] : devices_) {
      out_.begin_object();
      out_.field("name", name);
      out_.key("containerEdits");
      out_.begin_object();
      nodes.write(out_);
      out_.end_object();
      out_.end_object();
    }
    out_.end_array();
    out_.key("containerEdits");
    write_common();
    out_.end_object();
    return std::move(out_).take() + "\n";
  }

 private:
  void collect() {
    Nodes all;
    for (std::size_t i = 0; i < inventory_.gpus.size(); ++i) {
      const model::GpuDevice& gpu = inventory_.gpus[i];
      const std::string index = std::to_string(gpu.index);
      add_gpu(i, true, all);
      if (!gpu.mig_enabled) {
        Nodes nodes;
        add_gpu(i, true, nodes);
        add_device(index, nodes);
        add_uuid(gpu.uuid, nodes);
        continue;
      }
      for (std::size_t j = 0; j < gpu.mig.size(); ++j) {
        Nodes nodes;
        add_gpu(i, gpu.mig[j].profile.find("+gfx") != std::string::npos, nodes);
        add_caps(i, j, nodes);
        add_caps(i, j, all);
        add_device(index + ":" + std::to_string(j), nodes);
        add_uuid(gpu.mig[j].uuid, nodes);
      }
    }
    add_device("all", all);
  }

  // graphics: with the nodes of the display manager, which MIG instances do not have as a rule.
  void add_gpu(std::size_t i, bool graphics, Nodes& nodes) const {
    if (i >= files_.gpus.size() || files_.gpus[i].nodes.empty()) {
      const std::string path = "/dev/nvidia" + std::to_string(inventory_.gpus[i].minor);
      nodes.add(on_host(files_, path), path);
      return;
    }
    for (const DriverFiles::Mount& node : files_.gpus[i].nodes) {
      if (!graphics && node.container.starts_with("/dev/dri/")) continue;
      nodes.add(node.host, node.container);
    }
  }

  void add_caps(std::size_t i, std::size_t j, Nodes& nodes) const {
    if (i >= files_.gpus.size() || j >= files_.gpus[i].mig_caps.size()) return;
    for (const std::string& cap : files_.gpus[i].mig_caps[j]) {
      nodes.add(on_host(files_, cap), cap);
    }
  }

  // Never under a name that means something else.
  void add_uuid(const std::string& uuid, const Nodes& nodes) {
    const bool index = !uuid.empty() && uuid.front() >= '0' && uuid.front() <= '9';
    if (uuid != "all" && !index) add_device(uuid, nodes);
  }

  // A name twice would make a runtime refuse the whole spec.
  void add_device(const std::string& name, const Nodes& nodes) {
    if (nodes.empty() || !is_device_name(name) || !names_.insert(name).second) return;
    devices_.emplace_back(name, nodes);
  }

  // The lowest that has what is used: an older runtime refuses versions that it does not know.
  const char* version() const {
    const bool later = std::any_of(devices_.begin(), devices_.end(), [](const auto& device) {
      const char first = device.first.front();
      return (first >= '0' && first <= '9') || device.second.elsewhere();
    });
    return later || control_.elsewhere() ? "0.5.0" : "0.3.0";
  }

  void write_common() {
    out_.begin_object();
    out_.key("env");
    out_.begin_array();
    out_.value("NVIDIA_VISIBLE_DEVICES=void");  // or NVIDIA's runtime would add its own devices
    out_.end_array();
    if (!control_.empty()) control_.write(out_);
    write_mounts();
    out_.end_object();
  }

  void write_mounts() {
    std::vector<std::pair<DriverFiles::Mount, bool>> mounts;  // bool: a socket
    for (const auto* list : {&files_.libraries, &files_.binaries, &files_.firmware, &files_.configs,
                             &files_.sockets}) {
      for (const DriverFiles::Mount& mount : *list) {
        if (!is_plain_path(mount.host) || !is_plain_path(mount.container)) continue;
        mounts.emplace_back(mount, list == &files_.sockets);
      }
    }
    std::sort(mounts.begin(), mounts.end(), [](const auto& a, const auto& b) {
      return std::tie(a.first.container, a.first.host, a.second) <
             std::tie(b.first.container, b.first.host, b.second);
    });
    mounts.erase(std::unique(mounts.begin(), mounts.end(),
                             [](const auto& a, const auto& b) {
                               return a.first.container == b.first.container;
                             }),
                 mounts.end());
    if (mounts.empty()) return;
    out_.key("mounts");
    out_.begin_array();
    for (const auto& [mount, socket] : mounts) {
      out_.begin_object();
      out_.field("hostPath", mount.host);
      out_.field("containerPath", mount.container);
      out_.key("options");
      out_.begin_array();
      for (const char* option : {"ro", "nosuid", "nodev", "rbind", "rprivate"}) out_.value(option);
      if (socket) out_.value("noexec");
      out_.end_array();
      out_.end_object();
    }
    out_.end_array();
  }

  const model::GpuInventory& inventory_;
  const DriverFiles& files_;
  JsonWriter out_{{.indent = 2}};
  std::vector<std::pair<std::string, Nodes>> devices_;
  std::set<std::string> names_;  // of devices_
  Nodes control_;
};

}  // namespace

std::string cdi_spec(const model::GpuInventory& inventory, const DriverFiles& files) {
  if (inventory.gpus.empty()) return {};
  return Spec(inventory, files).write();
}

std::string cdi_name(const std::string& device) { return std::string(kCdiKind) + "=" + device; }

}  // namespace berth::advertise
