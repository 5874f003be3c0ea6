// FolderWatch with what tests choose: without inotify, and how often it looks.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "edge/host/host.h"

namespace berth::host {

struct FolderWatchOptions {
  bool inotify = true;  // false: as on a machine that has none left
  int look_every_ms = 1'000;
  int burst_ms = 10;  // events that follow within so long belong together
};

std::unique_ptr<FolderWatch> watch_folder(Loop& loop, const std::string& folder,
                                          std::function<void(const std::string& name)> changed,
                                          const FolderWatchOptions& options);

}  // namespace berth::host
