#include "edge/kubelet/socket_path.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <system_error>

namespace berth::kubelet {
namespace {

constexpr std::size_t kMaxEndpoint =
    75;  // what is left of a path in /var/lib/kubelet/device-plugins

std::string words_of(int code) { return std::generic_category().message(code); }

Code code_of(int code) { return code == ENOENT ? Code::kNotFound : Code::kUnavailable; }

}  // namespace

Status check_socket_path(const std::string& path) {
  if (path.empty() || path.front() != '/') {
    return invalid(fmt::format("'{}' is not an absolute path", path));
  }
  if (path.back() == '/') return invalid(fmt::format("'{}' names a folder, not a socket", path));
  if (path.find('\0') != std::string::npos) return invalid("the socket's path has a zero byte");
  if (path.size() > kMaxSocketPath) {
    return invalid(fmt::format("'{}' has {} bytes; a unix socket's path has at most {}", path,
                               path.size(), kMaxSocketPath));
  }
  return {};
}

Status check_endpoint(const std::string& endpoint) {
  if (endpoint.empty()) return invalid("the endpoint is empty; it names the plugin's socket");
  if (endpoint.size() > kMaxEndpoint) {
    return invalid(fmt::format("the endpoint '{}' has {} bytes, at most {} are allowed", endpoint,
                               endpoint.size(), kMaxEndpoint));
  }
  if (endpoint == "." || endpoint == ".." || endpoint.find('/') != std::string::npos ||
      endpoint.find('\0') != std::string::npos) {
    return invalid(fmt::format(
        "the endpoint '{}' leads elsewhere; it is the name of a socket in the kubelet's folder",
        endpoint));
  }
  return {};
}

std::string unix_target(const std::string& path) {
  constexpr std::string_view kPlain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/";
  std::string target = "unix:";
  for (const char c : path) {
    if (kPlain.find(c) != std::string_view::npos) {
      target += c;
    } else {
      target += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return target;
}

Result<SocketIdentity> socket_at(const std::string& path) {
  struct stat found{};
  if (lstat(path.c_str(), &found) != 0) {
    const int code = errno;
    return Error(code_of(code), fmt::format("{}: {}", path, words_of(code)));
  }
  if (!S_ISSOCK(found.st_mode)) {
    return invalid(fmt::format("{} is not a socket; it is left alone", path));
  }
  return SocketIdentity{found.st_dev, found.st_ino};
}

std::string staging_path(const std::string& path) {
  std::string staging = path;
  char& first = staging[staging.rfind('/') + 1];
  first = first == '.' ? '_' : '.';
  return staging;
}

Result<SocketIdentity> move_in_place(const std::string& path) {
  const std::string staging = staging_path(path);
  if (chmod(staging.c_str(), 0600) != 0 || std::rename(staging.c_str(), path.c_str()) != 0) {
    const int code = errno;
    unlink(staging.c_str());
    return Error(Code::kUnavailable,
                 fmt::format("the socket {} went away before it was in place ({}); a kubelet that "
                             "starts removes every socket in its folder",
                             path, words_of(code)));
  }
  return socket_at(path);
}

Error why_not_bound(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), std::min(path.size(), kMaxSocketPath));
  int code = 0;
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0 || bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    code = errno;
  } else {
    unlink(path.c_str());
  }
  if (fd >= 0) close(fd);
  return {code_of(code), fmt::format("cannot listen at {}: {}", path,
                                     code == 0 ? "gRPC does not say why" : words_of(code))};
}

}  // namespace berth::kubelet
