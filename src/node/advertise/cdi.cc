#include "node/advertise/cdi.h"

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
    out.array("deviceNodes", [&] {
      for (const DriverFiles::Mount& node : nodes_) {
        out.object([&] {
          out.field("path", node.container);
          if (node.host != node.container) out.field("hostPath", node.host);
        });
      }
    });
  }

 private:
  std::vector<DriverFiles::Mount> nodes_;
  std::set<std::string> seen_;  // container paths
};

using Mounts = std::vector<std::pair<DriverFiles::Mount, bool>>;  // bool: a socket

// Each place in the container once, sorted.
void write_mounts(Mounts mounts, JsonWriter& out) {
  std::erase_if(mounts, [](const auto& one) {
    return !is_plain_path(one.first.host) || !is_plain_path(one.first.container);
  });
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
  out.array("mounts", [&] {
    for (const auto& [mount, socket] : mounts) {
      out.object([&] {
        out.field("hostPath", mount.host);
        out.field("containerPath", mount.container);
        out.array("options", [&] {
          for (const char* option : {"ro", "nosuid", "nodev", "rbind", "rprivate"})
            out.value(option);
          if (socket) out.value("noexec");
        });
      });
    }
  });
}

// The lowest that has what is used: an older runtime refuses versions that it does not know.
const char* lowest_version(bool first_is_digit, bool elsewhere) {
  return first_is_digit || elsewhere ? "0.5.0" : "0.3.0";
}

bool starts_with_digit(std::string_view name) {
  return !name.empty() && name.front() >= '0' && name.front() <= '9';
}

std::string vendor_kind(const std::string& what) {
  const std::string_view gpu = kCdiKind;
  return std::string(gpu.substr(0, gpu.find('/') + 1)) + what;
}

class Spec {
 public:
  Spec(const model::GpuInventory& inventory, const DriverFiles& files)
      : inventory_(inventory), files_(files) {}

  std::string write() && {
    collect();
    for (const std::string& node : files_.control_nodes) {
      control_.add(on_host(files_, node), node);
    }
    out_.object([&] {
      out_.field("cdiVersion", version());
      out_.field("kind", kCdiKind);
      out_.array("devices", [&] {
        for (const auto& [name, nodes] : devices_) {
          out_.object([&] {
            out_.field("name", name);
            out_.object("containerEdits", [&] { nodes.write(out_); });
          });
        }
      });
      out_.key("containerEdits");
      write_common();
    });
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
    if (uuid != "all" && !starts_with_digit(uuid)) add_device(uuid, nodes);
  }

  // A name twice would make a runtime refuse the whole spec.
  void add_device(const std::string& name, const Nodes& nodes) {
    if (nodes.empty() || !is_device_name(name) || !names_.insert(name).second) return;
    devices_.emplace_back(name, nodes);
  }

  const char* version() const {
    const auto digit = [](const auto& device) { return starts_with_digit(device.first); };
    const auto elsewhere = [](const auto& device) { return device.second.elsewhere(); };
    return lowest_version(
        std::any_of(devices_.begin(), devices_.end(), digit),
        control_.elsewhere() || std::any_of(devices_.begin(), devices_.end(), elsewhere));
  }

  void write_common() {
    out_.object([&] {
      out_.array("env", [&] {
        out_.value("NVIDIA_VISIBLE_DEVICES=void");  // or NVIDIA's runtime would add its own devices
      });
      if (!control_.empty()) control_.write(out_);
      write_mounts(mounts(), out_);
    });
  }

  Mounts mounts() const {
    Mounts out;
    for (const auto* list : {&files_.libraries, &files_.for_loaders, &files_.binaries,
                             &files_.firmware, &files_.configs, &files_.sockets}) {
      for (const DriverFiles::Mount& mount : *list) {
        out.emplace_back(mount, list == &files_.sockets);
      }
    }
    return out;
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

std::string cdi_spec(const DriverFiles::Extra& extra) {
  Nodes nodes;
  for (const DriverFiles::Mount& node : extra.nodes) nodes.add(node.host, node.container);
  if (nodes.empty() || !is_device_name(extra.device)) return {};
  Mounts mounts;
  for (const DriverFiles::Mount& file : extra.files) mounts.emplace_back(file, false);
  JsonWriter out{{.indent = 2}};
  out.object([&] {
    out.field("cdiVersion", lowest_version(starts_with_digit(extra.device), nodes.elsewhere()));
    out.field("kind", vendor_kind(extra.what));
    out.array("devices", [&] {
      out.object([&] {
        out.field("name", extra.device);
        out.object("containerEdits", [&] {
          nodes.write(out);
          write_mounts(std::move(mounts), out);
        });
      });
    });
  });
  return std::move(out).take() + "\n";
}

Result<Extras> choose_extras(const PluginConfig& config, const DriverFiles& files) {
  struct Wish {
    const char *what, *device, *option, *path;
    bool wanted;
  };
  // In the order of NVIDIA's plugin.
  const Wish wishes[] = {
      {"imex-channel", "0", "imex.channelIDs", "/dev/nvidia-caps-imex-channels/channel0",
       !config.imex_channels.empty()},
      {"gds", "all", "gdsEnabled", "/dev/nvidia-fs*", config.gds},
      {"mofed", "all", "mofedEnabled", "/dev/infiniband/uverbs*", config.mofed},
      {"gdrcopy", "all", "gdrcopyEnabled", "/dev/gdrdrv", config.gdrcopy},
  };
  Extras out;
  for (const Wish& wish : wishes) {
    if (!wish.wanted) continue;
    const auto found =
        std::find_if(files.extras.begin(), files.extras.end(), [&](const DriverFiles::Extra& one) {
          return one.what == wish.what && one.device == wish.device;
        });
    if (found != files.extras.end()) {
      out.served.push_back(*found);
      continue;
    }
    const std::string missing = std::string(wish.option) + ": there is no " + wish.path + " here";
    if (std::string_view(wish.what) == "imex-channel" && config.imex_required) {
      return Error(Code::kNotFound, missing + ", and imex.required is set");
    }
    out.warnings.push_back(missing + "; containers go without it");
  }
  return out;
}

std::string cdi_name(const DriverFiles::Extra& extra) {
  return vendor_kind(extra.what) + "=" + extra.device;
}

std::string cdi_name(const std::string& device) { return std::string(kCdiKind) + "=" + device; }

}  // namespace berth::advertise
