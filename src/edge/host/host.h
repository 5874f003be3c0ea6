// The machine's own files: what probes read without a driver. Blocking and short; a root is passed
// in, so that tests give a folder of their own.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/loop.h"
#include "base/result.h"
#include "model/allocation.h"
#include "model/device.h"
#include "node/advertise/cdi.h"

namespace berth::host {

// sysfs, DMI, os-release below root ("/"). What cannot be read is left out. NICs are those with
// RDMA and a place on the PCI bus.
model::HostFacts read_host(const std::string& root);

// NUMA node and PCIe switch of the GPUs and NICs, from sysfs; switches are numbered from 0 by the
// lowest bus id below them, in one numbering for both. A device's switch is the nearest one that it
// shares with another of them, else the nearest; directly at the processor: -1. A device that sysfs
// does not have keeps what it has.
void place_on_bus(const std::string& root, model::GpuInventory& inventory, model::HostFacts& facts);

// Where this process sees what the host has elsewhere; empty: at the host's own path.
struct SeenAt {
  std::string driver_root, dev_root;
  std::string proc = "/proc", sys = "/sys";
};

// The driver's libraries, binaries and device nodes, and those of GDRCopy, GPUDirect Storage, RDMA
// and IMEX. driver_root and dev_root as the plugin's (dev
// root empty: the driver root); simulated: the GPUs have no device nodes, /dev/null stands in for
// them under their path. Links are followed inside the driver root, as in a chroot: none leads out
// of it. Device nodes of GPUs and MIG instances are named whether they exist or not, so that a
// container fails to start instead of starting without them.
advertise::DriverFiles find_driver_files(const std::string& driver_root,
                                         const std::string& dev_root,
                                         const model::GpuInventory& inventory, bool simulated,
                                         const SeenAt& seen = {});

bool is_folder(const std::string& path);

// The whole file or nothing, also after a crash: a temporary file in the same folder (its name
// begins with a dot and does not end as path does), then a rename. Folders are made.
Status write_atomically(const std::string& path, std::string_view content, int mode = 0644);
// Appended as one write: whole, or a torn line that reading drops. For files of our own: made with
// mode 0600 where there is none; a link, a pipe or anything else that is no plain file is refused.
Status append_line(const std::string& path, std::string_view line);
void remove_file(const std::string& path);  // fine when there is none
// kNotFound, kExhausted when it is longer, kUnavailable else. Never waits for a writer.
Result<std::string> read_text(const std::string& path, std::size_t at_most = 16 << 20);

// Tells on the loop when something in the folder comes, goes or changes (inotify): the names, each
// once for a burst. The folder may come later or be replaced: it is looked for every second, and so
// are its entries where the machine has no inotify left. What happens after start() is told.
// Destroyed on the loop's thread; nothing is called afterwards.
class FolderWatch {
 public:
  static std::unique_ptr<FolderWatch> start(Loop& loop, const std::string& folder,
                                            std::function<void(const std::string& name)> changed);
  virtual ~FolderWatch() = default;
};

// Messages of the kernel log (path: /dev/kmsg) from now on, on the loop, without the fields before
// them. When the loop is 10,000 lines behind, further ones are dropped. An error where it cannot be
// read (it needs CAP_SYSLOG). Destroyed on the loop's thread; nothing is called afterwards.
class KernelLog {
 public:
  static Result<std::unique_ptr<KernelLog>> start(
      Loop& loop, const std::string& path, std::function<void(const std::string& line)> told);
  virtual ~KernelLog() = default;
};

// The pods and containers that a process runs in, from /proc/PID/cgroup (v1 and v2, systemd and
// cgroupfs names), the innermost first: a cluster in a pod has several. Nothing for others.
std::vector<model::ContainerPlace> containers_of(const std::string& root, int pid);

}  // namespace berth::host
