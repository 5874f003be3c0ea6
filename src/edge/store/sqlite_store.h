// A Store in one SQLite file (WAL), written by a thread of its own with group commit.
//
// Durable means: after kill -9 of the process every acknowledged batch is there (synchronous=NORMAL
// in WAL mode keeps the file whole after a power cut, but may lose the last moments; sync_every
// says FULL). A second process on the same file is refused with an error that names the file; so is
// a file that is damaged, of another program, or of a later version of berth. Damaged: SQLite finds
// its pages torn or missing, or an entry does not match the checksum that was written with it.
//
// All batches that wait while a commit runs go into the next one. What waits is bounded: past
// max_queued_bytes the disk does not keep up, and batches are refused as they are when it is full.
// The destructor writes what waits; answers that were not given by then are given no more.
#pragma once

#include <memory>
#include <string>

#include "base/loop.h"
#include "base/metrics.h"
#include "edge/store/store.h"

namespace berth::store {

struct SqliteOptions {
  std::string path;
  bool sync_every = false;
  std::size_t max_queued_bytes = 512 * 1024 * 1024;
};

Result<std::unique_ptr<Store>> open_sqlite(const SqliteOptions& options, Loop& loop,
                                           MetricsRegistry* metrics = nullptr);

}  // namespace berth::store
