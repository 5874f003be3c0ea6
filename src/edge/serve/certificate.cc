#include "edge/serve/certificate.h"

#include <arpa/inet.h>
#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include <array>
#include <ctime>
#include <memory>

namespace berth::serve {
namespace {

struct SslFree {
  void operator()(BIO* p) const { BIO_free(p); }
  void operator()(EVP_PKEY* p) const { EVP_PKEY_free(p); }
  void operator()(X509* p) const { X509_free(p); }
  void operator()(X509_EXTENSION* p) const { X509_EXTENSION_free(p); }
};
using BioPtr = std::unique_ptr<BIO, SslFree>;
using KeyPtr = std::unique_ptr<EVP_PKEY, SslFree>;
using X509Ptr = std::unique_ptr<X509, SslFree>;

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::size_t kMaxHosts = 100;

Error certificate_error(std::string what) {
  std::array<char, 256> text{};
  unsigned long code = ERR_get_error();
  ERR_clear_error();
  if (code != 0) {
    ERR_error_string_n(code, text.data(), text.size());
    what += std::string(": ") + text.data();
  }
  return {Code::kInternal, std::move(what)};
}

int no_password(char*, int, int, void*) { return 0; }  // never ask on the terminal

std::string bio_text(BIO* bio) {
  char* data = nullptr;
  long size = BIO_get_mem_data(bio, &data);
  return data == nullptr ? std::string() : std::string(data, static_cast<std::size_t>(size));
}

X509Ptr read_x509(const std::string& pem) {
  BioPtr bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  return X509Ptr(bio ? PEM_read_bio_X509(bio.get(), nullptr, no_password, nullptr) : nullptr);
}

KeyPtr read_key(const std::string& pem) {
  BioPtr bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  return KeyPtr(bio ? PEM_read_bio_PrivateKey(bio.get(), nullptr, no_password, nullptr) : nullptr);
}

Result<std::int64_t> time_of(const std::string& pem, bool end) {
  X509Ptr x = read_x509(pem);
  ERR_clear_error();
  if (!x) return invalid("not a certificate in PEM form");
  std::tm when{};
  if (ASN1_TIME_to_tm(end ? X509_get0_notAfter(x.get()) : X509_get0_notBefore(x.get()), &when) !=
      1) {
    return invalid("certificate: its times are not times");
  }
  return static_cast<std::int64_t>(timegm(&when)) * kSecond;
}

bool is_host_name(const std::string& host) {
  if (host.empty() || host.size() > 253) return false;
  for (char c : host) {
    bool fine = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                c == '.' || c == '-' || c == '*';
    if (!fine) return false;
  }
  return true;
}

Result<std::string> alternative_names(const std::vector<std::string>& hosts) {
  if (hosts.size() > kMaxHosts) return invalid("hosts: more than 100");
  std::string out;
  for (const std::string& host : hosts) {
    std::array<unsigned char, 16> bytes{};
    bool address = inet_pton(AF_INET, host.c_str(), bytes.data()) == 1 ||
                   inet_pton(AF_INET6, host.c_str(), bytes.data()) == 1;
    if (!address && !is_host_name(host)) {
      return invalid("hosts: neither an address nor a host name of letters, digits, '-' and '.'");
    }
    out += std::string(out.empty() ? "" : ",") + (address ? "IP:" : "DNS:") + host;
  }
  return out;
}

bool add_extension(X509* subject, X509* issuer, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, subject, nullptr, nullptr, 0);
  std::unique_ptr<X509_EXTENSION, SslFree> extension(
      X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str()));
  return extension && X509_add_ext(subject, extension.get(), -1) == 1;
}

Status check_options(const CertificateOptions& options) {
  if (options.common_name.empty() || options.common_name.size() > 64) {
    return invalid("common_name: must have 1 to 64 bytes");
  }
  if (options.valid_ns < kSecond) return invalid("valid_ns: must be at least one second");
  return {};
}

bool fill_head(X509* x, EVP_PKEY* key, const CertificateOptions& options) {
  std::array<unsigned char, 16> serial{};
  if (RAND_bytes(serial.data(), static_cast<int>(serial.size())) != 1) return false;
  serial[0] = static_cast<unsigned char>((serial[0] & 0x7F) | 0x40);  // positive, never short
  ASN1_INTEGER* number = X509_get_serialNumber(x);
  if (ASN1_STRING_set(number, serial.data(), static_cast<int>(serial.size())) != 1) return false;
  X509_NAME* name = X509_get_subject_name(x);
  std::int64_t end = options.not_before_ns + options.valid_ns;
  return X509_set_version(x, 2) == 1 &&
         X509_NAME_add_entry_by_txt(
             name, "CN", MBSTRING_UTF8,
             reinterpret_cast<const unsigned char*>(options.common_name.data()),
             static_cast<int>(options.common_name.size()), -1, 0) == 1 &&
         ASN1_TIME_set(X509_getm_notBefore(x), options.not_before_ns / kSecond) != nullptr &&
         ASN1_TIME_set(X509_getm_notAfter(x), end / kSecond) != nullptr &&
         X509_set_pubkey(x, key) == 1;
}

Result<Certificate> to_pem(X509* x, EVP_PKEY* key) {
  BioPtr certificate(BIO_new(BIO_s_mem())), secret(BIO_new(BIO_s_mem()));
  if (!certificate || !secret || PEM_write_bio_X509(certificate.get(), x) != 1 ||
      PEM_write_bio_PrivateKey(secret.get(), key, nullptr, nullptr, 0, nullptr, nullptr) != 1) {
    return certificate_error("certificate could not be written");
  }
  return Certificate{bio_text(certificate.get()), bio_text(secret.get())};
}

}  // namespace

Result<Certificate> make_authority(const CertificateOptions& options) {
  BERTH_CHECK(check_options(options));
  KeyPtr key(EVP_EC_gen("P-256"));
  X509Ptr x(X509_new());
  if (!key || !x || !fill_head(x.get(), key.get(), options) ||
      X509_set_issuer_name(x.get(), X509_get_subject_name(x.get())) != 1 ||
      !add_extension(x.get(), x.get(), NID_basic_constraints, "critical,CA:TRUE") ||
      !add_extension(x.get(), x.get(), NID_key_usage, "critical,keyCertSign,cRLSign") ||
      !add_extension(x.get(), x.get(), NID_subject_key_identifier, "hash") ||
      X509_sign(x.get(), key.get(), EVP_sha256()) == 0) {
    return certificate_error("authority could not be made");
  }
  return to_pem(x.get(), key.get());
}

Result<Certificate> make_certificate(const CertificateOptions& options,
                                     const Certificate& authority) {
  BERTH_CHECK(check_options(options));
  BERTH_TRY(std::string names, alternative_names(options.hosts));
  BERTH_CHECK(check_pair(authority));
  const X509Ptr issuer = read_x509(authority.certificate_pem);
  const KeyPtr issuer_key = read_key(authority.key_pem);
  if (!issuer || !issuer_key) return certificate_error("authority could not be read");
  KeyPtr key(EVP_EC_gen("P-256"));
  X509Ptr x(X509_new());
  if (!key || !x || !fill_head(x.get(), key.get(), options) ||
      X509_set_issuer_name(x.get(), X509_get_subject_name(issuer.get())) != 1 ||
      !add_extension(x.get(), issuer.get(), NID_basic_constraints, "critical,CA:FALSE") ||
      !add_extension(x.get(), issuer.get(), NID_key_usage, "critical,digitalSignature") ||
      !add_extension(x.get(), issuer.get(), NID_ext_key_usage, "serverAuth,clientAuth") ||
      !add_extension(x.get(), issuer.get(), NID_subject_key_identifier, "hash") ||
      !add_extension(x.get(), issuer.get(), NID_authority_key_identifier, "keyid:always") ||
      (!names.empty() && !add_extension(x.get(), issuer.get(), NID_subject_alt_name, names)) ||
      X509_sign(x.get(), issuer_key.get(), EVP_sha256()) == 0) {
    return certificate_error("certificate could not be made");
  }
  return to_pem(x.get(), key.get());
}

Result<std::int64_t> starts_ns(const std::string& certificate_pem) {
  return time_of(certificate_pem, false);
}

Result<std::int64_t> expires_ns(const std::string& certificate_pem) {
  return time_of(certificate_pem, true);
}

bool issued_by(const std::string& certificate_pem, const std::string& bundle_pem) {
  const X509Ptr x = read_x509(certificate_pem);
  const BioPtr bundle(BIO_new_mem_buf(bundle_pem.data(), static_cast<int>(bundle_pem.size())));
  bool found = false;
  while (x && bundle && !found) {
    const X509Ptr one(PEM_read_bio_X509(bundle.get(), nullptr, no_password, nullptr));
    if (!one) break;
    found = X509_verify(x.get(), X509_get0_pubkey(one.get())) == 1;
  }
  ERR_clear_error();
  return found;
}

Status check_pair(const Certificate& pair) {
  const X509Ptr x = read_x509(pair.certificate_pem);
  const KeyPtr key = read_key(pair.key_pem);
  const bool match = x && key && X509_check_private_key(x.get(), key.get()) == 1;
  ERR_clear_error();
  if (!x) return invalid("authority: not a certificate in PEM form");
  if (!key) return invalid("authority: not a private key in PEM form");
  if (!match) return invalid("authority: the key is not that of the certificate");
  return {};
}

}  // namespace berth::serve
