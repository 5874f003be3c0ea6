// KernelLog with the call that reads it, so that tests can have records overwritten.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>

#include "edge/host/host.h"

namespace berth::host {

using ReadCall = std::function<ssize_t(int fd, void* into, std::size_t bytes)>;  // as read(2)

Result<std::unique_ptr<KernelLog>> read_kernel_log(
    Loop& loop, const std::string& path, std::function<void(const std::string& line)> told,
    ReadCall read);

}  // namespace berth::host
