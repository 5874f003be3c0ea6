// One connection's bytes: a non-blocking socket, with TLS or without. For edge/serve/ alone.
//
// Never waits and never throws. One thread, in which SIGPIPE is blocked (OpenSSL writes with
// write(2)). After kClosed or kFailed only the destructor may follow.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include "base/result.h"
#include "edge/serve/http_server.h"

struct iovec;
struct ssl_ctx_st;
struct ssl_st;

namespace berth::serve {

using TlsContext = std::shared_ptr<ssl_ctx_st>;

// Refused: what is no PEM, and a key that is not the certificate's.
Result<TlsContext> make_tls_context(const TlsFiles& files);

enum class Io : std::uint8_t {
  kOk,
  kAgain,   // later: when the kernel says that it is ready
  kClosed,  // the peer said so
  kFailed,
};

class Socket {
 public:
  Socket(int fd, TlsContext context);  // owns fd; no context: no TLS
  ~Socket();
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  int fd() const { return fd_; }
  bool tls() const { return ssl_ != nullptr; }

  Io handshake();  // at once kOk without TLS
  Io read(char* into, std::size_t size, std::size_t& got);
  Io write(std::string_view bytes, std::size_t& sent);
  Io write(const iovec* pieces, int count, std::size_t& sent);  // without TLS
  // Says that nothing more comes, and takes what the peer still sends without TLS.
  void shut_write();
  Io discard();  // kAgain until the peer closes

 private:
  Io outcome(int returned);

  int fd_;
  TlsContext context_;
  ssl_st* ssl_ = nullptr;
};

}  // namespace berth::serve
