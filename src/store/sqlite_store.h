// A Store in one SQLite file (WAL), written by a thread of its own with group commit.
//
// Durable means: after kill -9 of the process every acknowledged batch is there (synchronous=NORMAL
// in WAL mode keeps the file whole after a power cut, but may lose the last moments; sync_every
// says FULL). A second process on the same file is refused with an error that names the file.
#pragma once

#include <memory>
#include <string>

#include "base/loop.h"
#include "base/metrics.h"
#include "store/store.h"

namespace berth::store {

struct SqliteOptions {
  std::string path;
  bool sync_every = false;
};

Result<std::unique_ptr<Store>> open_sqlite(const SqliteOptions& options, Loop& loop,
                                           MetricsRegistry* metrics = nullptr);

}  // namespace berth::store
