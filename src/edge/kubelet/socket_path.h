// Paths of unix sockets as kubelets and plugins name them. For edge/kubelet/ alone.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>

#include "base/result.h"

namespace berth::kubelet {

constexpr std::size_t kMaxSocketPath = 107;  // sun_path without its zero

// Absolute, short enough, and without zero bytes.
Status check_socket_path(const std::string& path);
// "a.sock": a name within a folder, and nothing that leads elsewhere.
Status check_endpoint(const std::string& endpoint);
// What gRPC calls the path: it reads a URI.
std::string unix_target(const std::string& path);

// Which file a socket is: a path can be taken over by another.
struct SocketIdentity {
  dev_t device = 0;
  ino_t inode = 0;
  friend bool operator==(const SocketIdentity&, const SocketIdentity&) = default;
};
Result<SocketIdentity> socket_at(const std::string& path);  // kNotFound: nothing is there

// A socket is bound beside its path and then moved there: nobody meets it before it has its mode
// and serves, and whoever bound it does not remove what stands at the path later.
std::string staging_path(const std::string& path);  // as long as the path
Result<SocketIdentity> move_in_place(const std::string& path);
// Why a socket cannot be bound at the path.
Error why_not_bound(const std::string& path);

}  // namespace berth::kubelet
