// The machine's own files: what probes read without a driver. Blocking and short; a root is passed
// in, so that tests give a folder of their own.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "advertise/cdi.h"
#include "base/loop.h"
#include "base/result.h"
#include "model/device.h"

namespace berth::host {

// sysfs, DMI, os-release below root ("/"). What cannot be read is left out.
model::HostFacts read_host(const std::string& root);

// NUMA node and PCIe switch of the GPUs and NICs, from sysfs; switches are numbered from 0 by the
// lowest bus id below them, in one numbering for both.
void place_on_bus(const std::string& root, model::GpuInventory& inventory, model::HostFacts& facts);

// The driver's libraries, binaries and device nodes. driver_root and dev_root as the plugin's;
// simulated: the GPUs have no device nodes, /dev/null stands in for them under their path.
advertise::DriverFiles find_driver_files(const std::string& driver_root,
                                         const std::string& dev_root,
                                         const model::GpuInventory& inventory, bool simulated);

// The whole file or nothing, also after a crash: a temporary file in the same folder, then a
// rename. Folders are made.
Status write_atomically(const std::string& path, std::string_view content, int mode = 0644);
Result<std::string> read_text(const std::string& path, std::size_t at_most = 16 << 20);

// Tells on the loop when something in the folder comes, goes or changes (inotify): the names, each
// once for a burst. The folder may come later or be replaced: it is looked for every second.
class FolderWatch {
 public:
  static std::unique_ptr<FolderWatch> start(Loop& loop, const std::string& folder,
                                            std::function<void(const std::string& name)> changed);
  virtual ~FolderWatch() = default;
};

// Lines of the kernel log from now on, on the loop. An error where it cannot be read (it needs
// CAP_SYSLOG).
class KernelLog {
 public:
  static Result<std::unique_ptr<KernelLog>> start(
      Loop& loop, const std::string& path, std::function<void(const std::string& line)> told);
  virtual ~KernelLog() = default;
};

// The UID of the pod and the id of the container that a process runs in, from /proc/PID/cgroup (v1
// and v2, systemd and cgroupfs names); nothing for others.
struct ContainerOf {
  std::string pod_uid, container_id;
};
std::optional<ContainerOf> container_of(const std::string& root, int pid);

}  // namespace berth::host
