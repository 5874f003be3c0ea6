// The other end of a connection, for tests of the server: blocking, one thread, every wait ends
// after a minute.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "text/http.h"

struct ssl_ctx_st;
struct ssl_st;

namespace berth::serve {

class TestPeer {
 public:
  // Connects; with an authority it speaks TLS and checks the server's name against it. `from` is
  // an address of this machine, 127.0.0.2 say: another peer to the server.
  explicit TestPeer(std::uint16_t port, const std::string& authority_pem = {},
                    const std::string& host = "localhost", const std::string& from = {});
  ~TestPeer();
  TestPeer(const TestPeer&) = delete;
  TestPeer& operator=(const TestPeer&) = delete;

  bool connected() const { return connected_; }
  void send(std::string_view bytes);
  void get(const std::string& target) { send("GET " + target + " HTTP/1.1\r\nHost: h\r\n\r\n"); }
  // status 0: there was none. The body is put together from its chunks.
  text::HttpResponse response(bool head_only = false);
  text::HttpResponse head();
  std::string chunk();  // of a stream; empty: its end
  std::string bytes(std::size_t count);
  bool closed();  // nothing more comes; waits for it
  void close_writing();
  void close();

 private:
  bool more();
  std::string line();

  int fd_ = -1;
  bool connected_ = false;
  ssl_ctx_st* context_ = nullptr;
  ssl_st* ssl_ = nullptr;
  std::string buffer_;
};

}  // namespace berth::serve
