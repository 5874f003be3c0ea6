// Texts that the kernel and the distribution write: pure readers, for this folder and for fuzzing.
// Whatever the text holds they answer; what they do not understand is not there.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "edge/host/host.h"

namespace berth::host {

// One record of /dev/kmsg, "prio,seq,usec,flags[,...];text" with an optional "\n KEY=value..."
// after it: the text. Nothing for other lines, also for those that are not the kernel's own
// (facility 0): any program may write to the log.
std::optional<std::string> kernel_message(std::string_view record);

// /proc/PID/cgroup: as host.h says.
std::vector<model::ContainerPlace> containers_of_cgroups(std::string_view text);

// os-release(5): KEY=value, in shell quotes.
std::map<std::string, std::string> os_release_of(std::string_view text);

// /proc/driver/nvidia-caps/mig-minors: "gpu0/gi1/ci0/access 12" -> 12.
std::map<std::string, int, std::less<>> mig_minors_of(std::string_view text);

// "0000:18:00.0" of "0000:18:00.0" and "00000000:18:00.0", lower case; empty: it is no bus id.
std::string bus_id_of(std::string_view text);

std::vector<std::string_view> lines_of(std::string_view text);
std::string_view trimmed(std::string_view text);  // without blanks and control characters around
std::optional<std::int64_t> number_of(std::string_view text);  // decimal, or hexadecimal after 0x

}  // namespace berth::host
