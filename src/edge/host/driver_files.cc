#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <set>

#include "edge/host/fd.h"
#include "edge/host/host.h"
#include "edge/host/host_text.h"
#include "edge/host/paths.h"

namespace berth::host {
namespace {

using advertise::DriverFiles;

constexpr const char* kLibraryFolders[] = {
    "/usr/lib64",
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu/nvidia/current",
    "/usr/lib/aarch64-linux-gnu/nvidia/current",
    "/lib64",
    "/lib/x86_64-linux-gnu",
    "/lib/aarch64-linux-gnu",
    "/usr/lib",
    "/lib",
    "/usr/local/nvidia/lib64",
};
// Where the loaders of images look by themselves: Red Hat's and its kin, Debian's and its kin.
#if defined(__aarch64__)
constexpr const char* kLoaderFolders[] = {"/usr/lib64", "/usr/lib/aarch64-linux-gnu"};
#else
constexpr const char* kLoaderFolders[] = {"/usr/lib64", "/usr/lib/x86_64-linux-gnu"};
#endif
constexpr const char* kBinaryFolders[] = {"/usr/bin",
                                          "/usr/sbin",
                                          "/bin",
                                          "/sbin",
                                          "/usr/local/bin",
                                          "/opt/bin",
                                          "/usr/local/nvidia/bin"};
constexpr const char* kBinaries[] = {
    "nvidia-cuda-mps-control", "nvidia-cuda-mps-server", "nvidia-debugdump", "nvidia-imex",
    "nvidia-imex-ctl",         "nvidia-persistenced",    "nvidia-smi"};
constexpr const char* kConfigs[] = {
    "/etc/OpenCL/vendors/nvidia.icd",
    "/etc/glvnd/egl_vendor.d/10_nvidia.json",
    "/etc/vulkan/icd.d/nvidia_icd.json",
    "/etc/vulkan/implicit_layer.d/nvidia_layers.json",
    "/usr/share/X11/xorg.conf.d/10-nvidia.conf",
    "/usr/share/X11/xorg.conf.d/nvidia-drm-outputclass.conf",
    "/usr/share/egl/egl_external_platform.d/10_nvidia_wayland.json",
    "/usr/share/egl/egl_external_platform.d/15_nvidia_gbm.json",
    "/usr/share/glvnd/egl_vendor.d/10_nvidia.json",
    "/usr/share/nvidia/nvoptix.bin",
    "/usr/share/vulkan/icd.d/nvidia_icd.json",
    "/usr/share/vulkan/implicit_layer.d/nvidia_layers.json",
};
constexpr const char* kSockets[] = {"/run/nvidia-fabricmanager/socket",
                                    "/run/nvidia-persistenced/socket"};
constexpr const char* kControlNodes[] = {"/dev/nvidia-modeset", "/dev/nvidia-uvm",
                                         "/dev/nvidia-uvm-tools", "/dev/nvidiactl"};

// Whatever else a folder holds, these names are safe in a spec, a log line and a shell.
bool plain_name(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-' || c == '+';
  });
}

// Looks below one root, follows links inside it, and names what it finds as the host does.
class Finder {
 public:
  Finder(std::string on_host, const std::string& seen)
      : on_host_(std::move(on_host)), seen_(seen.empty() ? on_host_ : seen) {}

  std::vector<std::string> names(const std::string& folder) const {
    const auto at = resolve_below(seen_, folder);
    return at ? names_in(below(seen_, *at)) : std::vector<std::string>();
  }
  // Where the file of that type ends up; nothing when there is none.
  std::optional<std::string> find(const std::string& path, mode_t type) const {
    auto at = resolve_below(seen_, path);
    struct stat status = {};
    if (!at || ::lstat(below(seen_, *at).c_str(), &status) != 0) return std::nullopt;
    return (status.st_mode & S_IFMT) == type ? std::move(at) : std::nullopt;
  }
  bool exists(const std::string& path) const { return resolve_below(seen_, path).has_value(); }
  std::string on_host(const std::string& path) const { return below(on_host_, path); }
  std::string seen(const std::string& path) const { return below(seen_, path); }

 private:
  std::string on_host_, seen_;
};

void sort_by_container(std::vector<DriverFiles::Mount>& mounts) {
  std::sort(mounts.begin(), mounts.end(),
            [](const auto& a, const auto& b) { return a.container < b.container; });
}

bool begins_with(const std::string& path, std::string_view wanted) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  char start[8] = {};
  if (!fd.open() || wanted.size() > sizeof start) return false;
  const ssize_t count = ::read(fd.get(), start, wanted.size());
  return count == static_cast<ssize_t>(wanted.size()) &&
         std::string_view(start, wanted.size()) == wanted;
}

// A program for 32 bits finds nothing of use in a GPU container, and its library has the same name.
bool is_32_bit(const std::string& path) {
  return begins_with(path,
                     "\x7f"
                     "ELF\x01");
}

bool is_driver_library(std::string_view name, const std::string& version) {
  if (!name.starts_with("lib") || !plain_name(name)) return false;
  if (name.ends_with(".so." + version)) return true;
  // The compiler's library for older CUDA has a version of its own.
  return name.starts_with("libnvidia-nvvm70.so.");
}

// The folders that libraries may be in, each once: /lib is often a link to /usr/lib.
std::vector<std::string> library_folders(const Finder& root) {
  std::vector<std::string> folders;
  std::set<std::string> seen;
  for (const char* top : kLibraryFolders) {
    for (std::string folder : {std::string(top), std::string(top) + "/vdpau"}) {
      const auto at = root.find(folder, S_IFDIR);
      if (at && seen.insert(*at).second) folders.push_back(std::move(folder));
    }
  }
  return folders;
}

// Each library under its own name and under those that links give it ("libcuda.so.1"): without a
// hook nobody would make the links in the container. And where the loader of any image looks:
// without a hook nobody would tell it of another place.
void find_libraries(const Finder& root, const std::string& version, DriverFiles& out) {
  if (version.empty() || !plain_name(version)) return;
  const std::vector<std::string> folders = library_folders(root);
  std::set<std::string> taken;  // by where it ends up
  std::vector<DriverFiles::Mount> extra;
  for (const bool links : {false, true}) {
    for (const std::string& folder : folders) {
      for (const std::string& name : root.names(folder)) {
        if (!name.starts_with("lib") || !plain_name(name)) continue;
        if (links == is_driver_library(name, version)) continue;
        const std::string path = folder + "/" + name;
        const auto file = root.find(path, S_IFREG);
        if (!file) continue;
        if (links ? !taken.contains(*file)
                  : is_32_bit(root.seen(*file)) || !taken.insert(*file).second) {
          continue;
        }
        out.libraries.push_back({root.on_host(*file), path});
        if (folder.ends_with("/vdpau")) continue;  // found by name, not by the loader
        for (const char* place : kLoaderFolders) {
          if (folder != place)
            extra.push_back({root.on_host(*file), std::string(place) + "/" + name});
        }
      }
    }
  }
  sort_by_container(out.libraries);
  std::set<std::string> places;
  for (const DriverFiles::Mount& library : out.libraries) places.insert(library.container);
  for (DriverFiles::Mount& mount : extra) {
    if (places.insert(mount.container).second) out.for_loaders.push_back(std::move(mount));
  }
  sort_by_container(out.for_loaders);
}

void find_firmware(const Finder& root, const std::string& version, DriverFiles& out) {
  if (version.empty() || !plain_name(version)) return;
  std::set<std::string> taken;
  for (const char* top : {"/lib/firmware/nvidia/", "/usr/lib/firmware/nvidia/"}) {
    const std::string folder = top + version;
    for (const std::string& name : root.names(folder)) {
      if (!name.starts_with("gsp") || !name.ends_with(".bin") || !plain_name(name)) continue;
      const auto file = root.find(folder + "/" + name, S_IFREG);
      if (!file || !taken.insert(*file).second) continue;
      out.firmware.push_back({root.on_host(*file), folder + "/" + name});
    }
  }
  sort_by_container(out.firmware);
}

void find_single_files(const Finder& root, DriverFiles& out) {
  for (const char* name : kBinaries) {
    for (const char* folder : kBinaryFolders) {
      const std::string path = std::string(folder) + "/" + name;
      const auto file = root.find(path, S_IFREG);
      // A script that starts the program from elsewhere is of no use without the other.
      if (!file || begins_with(root.seen(*file), "#!")) continue;
      out.binaries.push_back({root.on_host(*file), path});
      if (path.starts_with("/usr/local/") || path.starts_with("/opt/")) {
        out.binaries.push_back({root.on_host(*file), std::string("/usr/bin/") + name});
      }
      break;
    }
  }
  sort_by_container(out.binaries);
  for (const char* path : kConfigs) {
    if (const auto file = root.find(path, S_IFREG)) {
      out.configs.push_back({root.on_host(*file), path});
    }
  }
  for (const char* path : kSockets) {
    if (const auto file = root.find(path, S_IFSOCK)) {
      out.sockets.push_back({root.on_host(*file), path});
    }
  }
}

std::vector<std::string> caps_of(const std::map<std::string, int, std::less<>>& minors, int gpu,
                                 const model::MigInstance& instance) {
  const std::string part =
      "gpu" + std::to_string(gpu) + "/gi" + std::to_string(instance.gpu_instance);
  std::vector<std::string> caps;
  for (const std::string& key :
       {part + "/access", part + "/ci" + std::to_string(instance.compute_instance) + "/access"}) {
    const auto minor = minors.find(key);
    if (minor == minors.end()) continue;
    caps.push_back("/dev/nvidia-caps/nvidia-cap" + std::to_string(minor->second));
  }
  return caps;
}

std::vector<DriverFiles::Mount> drm_nodes(const Finder& dev, const std::string& sys,
                                          const std::string& bus_id) {
  std::vector<DriverFiles::Mount> nodes;
  const std::string id = bus_id_of(bus_id);
  if (id.empty()) return nodes;
  for (const std::string& name : names_in(below(sys, "/bus/pci/devices/" + id + "/drm"))) {
    const std::string path = "/dev/dri/" + name;
    const bool node = name.starts_with("card") || name.starts_with("renderD");
    if (node && plain_name(name) && dev.exists(path)) nodes.push_back({dev.on_host(path), path});
  }
  return nodes;
}

void find_gpu_nodes(const Finder& dev, const SeenAt& seen, const model::GpuInventory& inventory,
                    DriverFiles& out) {
  std::map<std::string, int, std::less<>> minors;
  if (const auto text = read_text(below(seen.proc, "/driver/nvidia-caps/mig-minors")); text.ok()) {
    minors = mig_minors_of(*text);
  }
  for (const model::GpuDevice& gpu : inventory.gpus) {
    DriverFiles::GpuNodes nodes;
    const std::string path = "/dev/nvidia" + std::to_string(gpu.minor);
    nodes.nodes.push_back({dev.on_host(path), path});
    for (auto& node : drm_nodes(dev, seen.sys, gpu.pci_bus_id)) {
      nodes.nodes.push_back(std::move(node));
    }
    for (const model::MigInstance& instance : gpu.mig) {
      nodes.mig_caps.push_back(caps_of(minors, gpu.minor, instance));
    }
    out.gpus.push_back(std::move(nodes));
  }
}

// What moves data to and from GPUs besides the driver. Each is there when a node of it is.
void find_extras(const Finder& root, const Finder& dev, DriverFiles& out) {
  const auto add = [&](DriverFiles::Extra extra, const std::string& folder,
                       std::initializer_list<std::string_view> starts) {
    for (const std::string& name : dev.names(folder)) {
      const bool ours = std::any_of(starts.begin(), starts.end(), [&](std::string_view start) {
        return name.starts_with(start);
      });
      if (!ours || !plain_name(name)) continue;
      const std::string path = folder + "/" + name;
      if (dev.exists(path)) extra.nodes.push_back({dev.on_host(path), path});
    }
    if (!extra.nodes.empty()) out.extras.push_back(std::move(extra));
  };
  DriverFiles::Extra storage{"gds", "all", {}, {}};
  for (const auto& [path, type] : {std::pair<const char*, mode_t>{"/etc/cufile.json", S_IFREG},
                                   std::pair<const char*, mode_t>{"/run/udev", S_IFDIR}}) {
    if (const auto at = root.find(path, type)) storage.files.push_back({root.on_host(*at), path});
  }
  add({"gdrcopy", "all", {}, {}}, "/dev", {"gdrdrv"});
  add(std::move(storage), "/dev", {"nvidia-fs"});
  const std::string channel = "/dev/nvidia-caps-imex-channels/channel0";
  if (dev.exists(channel)) {
    out.extras.push_back({"imex-channel", "0", {{dev.on_host(channel), channel}}, {}});
  }
  add({"mofed", "all", {}, {}}, "/dev/infiniband", {"rdma_cm", "uverbs"});
}

// The same as stand-ins.
void pretend_extras(DriverFiles& out) {
  const auto nodes = [](std::initializer_list<const char*> paths) {
    std::vector<DriverFiles::Mount> made;
    for (const char* path : paths) made.push_back({"/dev/null", path});
    return made;
  };
  out.extras = {
      {"gdrcopy", "all", nodes({"/dev/gdrdrv"}), {}},
      {"gds", "all", nodes({"/dev/nvidia-fs0"}), {}},
      {"imex-channel", "0", nodes({"/dev/nvidia-caps-imex-channels/channel0"}), {}},
      {"mofed", "all", nodes({"/dev/infiniband/rdma_cm", "/dev/infiniband/uverbs0"}), {}},
  };
}

}  // namespace

DriverFiles find_driver_files(const std::string& driver_root, const std::string& dev_root,
                              const model::GpuInventory& inventory, bool simulated,
                              const SeenAt& seen) {
  DriverFiles out;
  if (simulated) {
    for (const model::GpuDevice& gpu : inventory.gpus) {
      DriverFiles::GpuNodes nodes;
      nodes.nodes.push_back({"/dev/null", "/dev/nvidia" + std::to_string(gpu.minor)});
      nodes.mig_caps.resize(gpu.mig.size());
      out.gpus.push_back(std::move(nodes));
    }
    pretend_extras(out);
    return out;
  }
  const Finder root(driver_root, seen.driver_root);
  const bool same = dev_root.empty() || dev_root == driver_root;
  const Finder dev(same ? driver_root : dev_root,
                   same && seen.dev_root.empty() ? seen.driver_root : seen.dev_root);
  find_libraries(root, inventory.driver_version, out);
  find_firmware(root, inventory.driver_version, out);
  find_single_files(root, out);
  if (const std::string host = dev.on_host("/"); host != "/") {
    out.dev_root = host.substr(0, host.size() - 1);
  }
  for (const char* path : kControlNodes) {
    if (dev.exists(path)) out.control_nodes.push_back(path);
  }
  find_gpu_nodes(dev, seen, inventory, out);
  find_extras(root, dev, out);
  return out;
}

}  // namespace berth::host
