// Files that are their owner's alone: logs and stores that tell what runs in a cluster, and how.
//
// A new one gets the rights 0600 and a new folder 0700, whatever the umask; what is there and wider
// is narrowed, and a file of another user's, a link or anything that is no plain file is refused:
// in a folder that others may write to, a link would send the lines where somebody else wants them.
// For edges and logs; any thread.
#pragma once

#include <string>

#include "base/result.h"

namespace berth {

// flags: of open(2), as O_WRONLY | O_APPEND | O_CREAT, which makes the file's folder too where
// there is none, but not the one above it. A folder that is there is left as it is. The caller
// closes it.
Result<int> open_private(const std::string& path, int flags);
// A folder of the program's own; its parents are the caller's. One that is there and ours is
// narrowed, somebody else's (a mounted volume) is left as it is: its files are narrow themselves.
Status make_private_folder(const std::string& path);
// The file, where there is one, without opening it.
Status narrow_file(const std::string& path);

}  // namespace berth
