// A small HTTP/1.1 server on a port of its own, for tests of the transport: one thread for each
// connection, and the test says what each request gets, byte by byte if it likes.
//
// Thread-safe where the test and the connections meet. The destructor closes everything and joins.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <list>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"

namespace berth::kube {

class TinyServer {
 public:
  struct Connection {
    int fd = -1;
    bool write(const std::string& bytes) {
      for (std::size_t at = 0; at < bytes.size();) {
        ssize_t sent = ::send(fd, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
        if (sent <= 0) return false;
        at += static_cast<std::size_t>(sent);
      }
      return true;
    }
  };
  // head: the request line and headers; false: close the connection.
  using Handler =
      std::function<bool(const std::string& head, const std::string& body, Connection& to)>;

  explicit TinyServer(Handler handler) : handler_(std::move(handler)) {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    ::bind(listener_, reinterpret_cast<sockaddr*>(&address), size);
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    ::listen(listener_, 128);
    acceptor_ = std::thread([this] { accept_all(); });
  }
  ~TinyServer() {
    stop_streams();
    ::shutdown(listener_, SHUT_RDWR);
    acceptor_.join();
    {
      MutexLock lock(mutex_);
      for (auto& peer : peers_) ::shutdown(peer.connection.fd, SHUT_RDWR);
    }
    for (auto& peer : peers_) {
      peer.thread.join();
      ::close(peer.connection.fd);
    }
    ::close(listener_);
  }

  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  int connections() const {
    MutexLock lock(mutex_);
    return static_cast<int>(peers_.size());
  }

  // For handlers: what note() gave, in order, each waited for; false once the streams are ended.
  bool next_note(std::size_t& seen, std::string& text) {
    MutexLock lock(mutex_);
    while (seen >= notes_.size() && !stopped_) changed_.wait(mutex_);
    if (seen >= notes_.size()) return false;
    text = notes_[seen++];
    return true;
  }
  void note(const std::string& text) {
    MutexLock lock(mutex_);
    notes_.push_back(text);
    changed_.notify_all();
  }
  void stop_streams() {
    MutexLock lock(mutex_);
    stopped_ = true;
    changed_.notify_all();
  }

  static std::string reply(int status, const std::string& body, const std::string& headers = "") {
    return "HTTP/1.1 " + std::to_string(status) +
           " X\r\nContent-Length: " + std::to_string(body.size()) + "\r\n" + headers + "\r\n" +
           body;
  }
  static std::string chunk(const std::string& bytes) {
    char size[32];
    std::snprintf(size, sizeof size, "%zx\r\n", bytes.size());
    return size + bytes + "\r\n";
  }

 private:
  struct Peer {
    Connection connection;
    std::thread thread;
  };

  void accept_all() {
    for (;;) {
      int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (fd < 0) return;
      MutexLock lock(mutex_);
      Peer& peer = peers_.emplace_back();
      peer.connection.fd = fd;
      peer.thread = std::thread([this, to = &peer.connection] { serve(*to); });
    }
  }
  void serve(Connection& to) {
    std::string got;
    char buffer[16 * 1024];
    for (;;) {
      std::size_t end = got.find("\r\n\r\n");
      std::size_t length = 0;
      if (end != std::string::npos) {
        std::size_t at = got.find("Content-Length: ");
        if (at != std::string::npos && at < end) length = std::stoul(got.substr(at + 16));
      }
      if (end != std::string::npos && got.size() >= end + 4 + length) {
        std::string head = got.substr(0, end), body = got.substr(end + 4, length);
        got.erase(0, end + 4 + length);
        if (!handler_(head, body, to)) break;
        continue;
      }
      ssize_t count = ::recv(to.fd, buffer, sizeof buffer, 0);
      if (count <= 0) break;
      got.append(buffer, static_cast<std::size_t>(count));
    }
    ::shutdown(to.fd, SHUT_RDWR);
  }

  Handler handler_;
  int listener_ = -1;
  int port_ = 0;
  std::thread acceptor_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::list<Peer> peers_;
  std::vector<std::string> notes_ BERTH_GUARDED_BY(mutex_);
  bool stopped_ BERTH_GUARDED_BY(mutex_) = false;
};

}  // namespace berth::kube
