#include "edge/serve/socket.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>

namespace berth::serve {
namespace {

struct PemFree {
  void operator()(BIO* p) const { BIO_free(p); }
  void operator()(EVP_PKEY* p) const { EVP_PKEY_free(p); }
  void operator()(X509* p) const { X509_free(p); }
};

int refuse_password(char*, int, int, void*) { return 0; }  // never ask on the terminal

// HTTP/1.1 is all that is spoken; who does not offer it is served it anyway.
int choose_protocol(SSL*, const unsigned char** out, unsigned char* size, const unsigned char* in,
                    unsigned int in_size, void*) {
  static constexpr unsigned char kHttp11[] = {8, 'h', 't', 't', 'p', '/', '1', '.', '1'};
  unsigned char* chosen = nullptr;
  int found = SSL_select_next_proto(&chosen, size, kHttp11, sizeof kHttp11, in, in_size);
  *out = chosen;
  return found == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_NOACK;
}

Status use_certificate(SSL_CTX* context, const std::string& pem) {
  std::unique_ptr<BIO, PemFree> bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  if (!bio) return Error(Code::kInternal, "out of memory");
  bool leaf = true;
  while (true) {
    std::unique_ptr<X509, PemFree> x(
        PEM_read_bio_X509(bio.get(), nullptr, refuse_password, nullptr));
    if (!x) break;
    bool used = leaf ? SSL_CTX_use_certificate(context, x.get()) == 1
                     : SSL_CTX_add1_chain_cert(context, x.get()) == 1;
    if (!used) return invalid("certificate: cannot be used");
    leaf = false;
  }
  if (leaf) return invalid("certificate: not in PEM form");
  return {};
}

Status use_key(SSL_CTX* context, const std::string& pem) {
  std::unique_ptr<BIO, PemFree> bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  if (!bio) return Error(Code::kInternal, "out of memory");
  std::unique_ptr<EVP_PKEY, PemFree> key(
      PEM_read_bio_PrivateKey(bio.get(), nullptr, refuse_password, nullptr));
  if (!key) return invalid("key: not an unencrypted private key in PEM form");
  if (SSL_CTX_use_PrivateKey(context, key.get()) != 1 || SSL_CTX_check_private_key(context) != 1) {
    return invalid("key: not that of the certificate");
  }
  return {};
}

Io from_errno() {
  if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return Io::kAgain;
  return Io::kFailed;
}

}  // namespace

Result<TlsContext> make_tls_context(const TlsFiles& files) {
  TlsContext context(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
  if (!context) return Error(Code::kInternal, "TLS cannot be set up");
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_options(context.get(), SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  SSL_CTX_set_mode(context.get(), SSL_MODE_ENABLE_PARTIAL_WRITE |
                                      SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                      SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);  // tickets hold no memory
  SSL_CTX_set_alpn_select_cb(context.get(), choose_protocol, nullptr);
  Status used = use_certificate(context.get(), files.certificate_pem);
  if (used.ok()) used = use_key(context.get(), files.key_pem);
  ERR_clear_error();
  if (!used.ok()) return std::move(used).error();
  return context;
}

Socket::Socket(int fd, TlsContext context) : fd_(fd), context_(std::move(context)) {
  if (!context_) return;
  ssl_ = SSL_new(context_.get());
  if (ssl_ == nullptr) return;
  SSL_set_fd(ssl_, fd_);
  SSL_set_accept_state(ssl_);
}

Socket::~Socket() {
  if (ssl_ != nullptr) SSL_free(ssl_);
  close(fd_);
}

Io Socket::outcome(int returned) {
  int why = SSL_get_error(ssl_, returned);
  ERR_clear_error();
  switch (why) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:
      return Io::kAgain;
    case SSL_ERROR_ZERO_RETURN:
      return Io::kClosed;
    default:
      return Io::kFailed;
  }
}

Io Socket::handshake() {
  if (context_ && ssl_ == nullptr) return Io::kFailed;
  if (ssl_ == nullptr) return Io::kOk;
  int done = SSL_do_handshake(ssl_);
  return done == 1 ? Io::kOk : outcome(done);
}

Io Socket::read(char* into, std::size_t size, std::size_t& got) {
  got = 0;
  if (ssl_ != nullptr) {
    int done = SSL_read(ssl_, into, static_cast<int>(std::min<std::size_t>(size, INT_MAX)));
    if (done <= 0) return outcome(done);
    got = static_cast<std::size_t>(done);
    return Io::kOk;
  }
  ssize_t done = recv(fd_, into, size, 0);
  if (done < 0) return from_errno();
  got = static_cast<std::size_t>(done);
  return done == 0 ? Io::kClosed : Io::kOk;
}

Io Socket::write(std::string_view bytes, std::size_t& sent) {
  sent = 0;
  if (ssl_ != nullptr) {
    int done = SSL_write(ssl_, bytes.data(),
                         static_cast<int>(std::min<std::size_t>(bytes.size(), INT_MAX)));
    if (done <= 0) return outcome(done);
    sent = static_cast<std::size_t>(done);
    return Io::kOk;
  }
  iovec piece{const_cast<char*>(bytes.data()), bytes.size()};
  return write(&piece, 1, sent);
}

Io Socket::write(const iovec* pieces, int count, std::size_t& sent) {
  sent = 0;
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(pieces);
  message.msg_iovlen = static_cast<std::size_t>(count);
  ssize_t done = sendmsg(fd_, &message, MSG_NOSIGNAL);
  if (done < 0) return from_errno();
  sent = static_cast<std::size_t>(done);
  return Io::kOk;
}

void Socket::shut_write() {
  if (ssl_ != nullptr && SSL_is_init_finished(ssl_) == 1) {
    SSL_shutdown(ssl_);
    ERR_clear_error();
  }
  shutdown(fd_, SHUT_WR);
}

Io Socket::discard() {
  std::array<char, 4096> bytes;
  for (int i = 0; i < 256; ++i) {
    ssize_t done = recv(fd_, bytes.data(), bytes.size(), 0);
    if (done < 0) return from_errno();
    if (done == 0) return Io::kClosed;
  }
  return Io::kOk;  // there is more
}

}  // namespace berth::serve
