#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>

#include "edge/serve/peer_for_test.h"

namespace berth::serve {

TestPeer::TestPeer(std::uint16_t port, const std::string& authority_pem, const std::string& host,
                   const std::string& from) {
  std::signal(SIGPIPE, SIG_IGN);  // OpenSSL's client writes to peers that went away
  fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  timeval minute{60, 0};
  setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &minute, sizeof minute);
  setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &minute, sizeof minute);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (!from.empty()) {
    sockaddr_in own{};
    own.sin_family = AF_INET;
    inet_pton(AF_INET, from.c_str(), &own.sin_addr);
    if (bind(fd_, reinterpret_cast<sockaddr*>(&own), sizeof own) != 0) return;
  }
  connected_ = connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  if (authority_pem.empty() || !connected_) return;
  context_ = SSL_CTX_new(TLS_client_method());
  BIO* bio = BIO_new_mem_buf(authority_pem.data(), static_cast<int>(authority_pem.size()));
  X509* authority = PEM_read_bio_X509(bio, nullptr, nullptr, nullptr);
  X509_STORE_add_cert(SSL_CTX_get_cert_store(context_), authority);
  X509_free(authority);
  BIO_free(bio);
  ssl_ = SSL_new(context_);
  SSL_set_fd(ssl_, fd_);
  SSL_set_verify(ssl_, SSL_VERIFY_PEER, nullptr);
  SSL_set1_host(ssl_, host.c_str());
  connected_ = SSL_connect(ssl_) == 1;
}

TestPeer::~TestPeer() { close(); }

void TestPeer::close() {
  if (ssl_ != nullptr) SSL_free(ssl_);
  if (context_ != nullptr) SSL_CTX_free(context_);
  if (fd_ >= 0) ::close(fd_);
  ssl_ = nullptr;
  context_ = nullptr;
  fd_ = -1;
}

void TestPeer::close_writing() { shutdown(fd_, SHUT_WR); }

void TestPeer::send(std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t done = ssl_ != nullptr ? SSL_write(ssl_, bytes.data(), static_cast<int>(bytes.size()))
                                   : ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (done <= 0) return;  // what is read afterwards says why
    bytes.remove_prefix(static_cast<std::size_t>(done));
  }
}

bool TestPeer::more() {
  std::array<char, 65536> into;
  ssize_t done = ssl_ != nullptr ? SSL_read(ssl_, into.data(), static_cast<int>(into.size()))
                                 : recv(fd_, into.data(), into.size(), 0);
  if (done <= 0) return false;
  buffer_.append(into.data(), static_cast<std::size_t>(done));
  return true;
}

bool TestPeer::closed() { return buffer_.empty() && !more(); }

std::string TestPeer::bytes(std::size_t count) {
  while (buffer_.size() < count && more()) {
  }
  std::string found = buffer_.substr(0, count);
  buffer_.erase(0, count);
  return found;
}

std::string TestPeer::line() {
  std::size_t end = 0;
  while ((end = buffer_.find("\r\n")) == std::string::npos) {
    if (!more()) return {};
  }
  std::string found = buffer_.substr(0, end);
  buffer_.erase(0, end + 2);
  return found;
}

text::HttpResponse TestPeer::head() {
  text::HttpResponse found;
  std::string first = line();
  if (!first.starts_with("HTTP/1.")) return found;
  found.status = std::atoi(first.c_str() + 9);
  for (std::string next = line(); !next.empty(); next = line()) {
    std::size_t colon = next.find(": ");
    if (colon == std::string::npos) return {};
    found.headers.push_back({next.substr(0, colon), next.substr(colon + 2)});
  }
  return found;
}

std::string TestPeer::chunk() {
  std::size_t size = std::strtoull(line().c_str(), nullptr, 16);
  std::string found = bytes(size);
  line();
  return found;
}

text::HttpResponse TestPeer::response(bool head_only) {
  text::HttpResponse found = head();
  if (head_only || found.status == 0) return found;
  if (auto size = text::find_header(found.headers, "Content-Length")) {
    found.body = bytes(std::strtoull(std::string(*size).c_str(), nullptr, 10));
  } else if (text::find_header(found.headers, "Transfer-Encoding")) {
    for (std::string next = chunk(); !next.empty(); next = chunk()) found.body += next;
  }
  return found;
}

}  // namespace berth::serve
