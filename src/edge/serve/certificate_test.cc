#include "edge/serve/certificate.h"

#include <gtest/gtest.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

namespace berth::serve {
namespace {

constexpr std::int64_t kStart = 1'700'000'000'000'000'000, kDay = 86'400'000'000'000;

CertificateOptions options_for(std::string name, std::vector<std::string> hosts = {}) {
  return {std::move(name), std::move(hosts), kStart, kDay};
}

TEST(Certificate, AuthoritySignsNamesAndAddresses) {
  auto authority = make_authority(options_for("berth authority"));
  ASSERT_TRUE(authority.ok()) << authority.error().to_string();
  auto made =
      make_certificate(options_for("server", {"localhost", "127.0.0.1", "::1"}), *authority);
  ASSERT_TRUE(made.ok()) << made.error().to_string();
  EXPECT_EQ(*expires_ns(made->certificate_pem), kStart + kDay);

  auto read = [](const std::string& pem) {
    BIO* bio = BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()));
    X509* x = PEM_read_bio_X509(bio, nullptr, nullptr, nullptr);
    BIO_free(bio);
    return x;
  };
  X509* x = read(made->certificate_pem);
  X509* ca = read(authority->certificate_pem);
  EXPECT_EQ(X509_verify(x, X509_get0_pubkey(ca)), 1);
  EXPECT_EQ(X509_check_issued(ca, x), X509_V_OK);
  EXPECT_EQ(X509_check_ca(ca), 1);
  EXPECT_EQ(X509_check_ca(x), 0);
  EXPECT_EQ(X509_check_host(x, "localhost", 0, 0, nullptr), 1);
  EXPECT_EQ(X509_check_host(x, "elsewhere", 0, 0, nullptr), 0);
  EXPECT_EQ(X509_check_ip_asc(x, "127.0.0.1", 0), 1);
  EXPECT_EQ(X509_check_ip_asc(x, "::1", 0), 1);
  EXPECT_EQ(X509_check_ip_asc(x, "10.0.0.1", 0), 0);
  X509_free(x);
  X509_free(ca);
}

TEST(Certificate, WhoSignedIt) {
  auto one = make_authority(options_for("same name"));
  auto other = make_authority(options_for("same name"));
  ASSERT_TRUE(one.ok() && other.ok());
  auto made = make_certificate(options_for("server"), *one);
  ASSERT_TRUE(made.ok());
  const std::string& pem = made->certificate_pem;
  EXPECT_TRUE(issued_by(pem, one->certificate_pem));
  EXPECT_TRUE(issued_by(pem, other->certificate_pem + one->certificate_pem));
  EXPECT_FALSE(issued_by(pem, other->certificate_pem));
  EXPECT_FALSE(issued_by(pem, ""));
  EXPECT_FALSE(issued_by("", one->certificate_pem));
}

TEST(Certificate, WhatCannotBeIsRefused) {
  auto authority = make_authority(options_for("a"));
  auto other = make_authority(options_for("b"));
  ASSERT_TRUE(authority.ok() && other.ok());
  EXPECT_FALSE(make_authority(options_for("")).ok());
  EXPECT_FALSE(make_authority(options_for(std::string(65, 'x'))).ok());
  EXPECT_FALSE(make_authority({"a", {}, kStart, 0}).ok());
  for (const char* host : {"a,DNS:evil", "", "a b", "a\nb"}) {
    EXPECT_FALSE(make_certificate(options_for("s", {host}), *authority).ok()) << host;
  }
  EXPECT_FALSE(make_certificate(options_for("s"), {"x", authority->key_pem}).ok());
  EXPECT_FALSE(make_certificate(options_for("s"), {authority->certificate_pem, "x"}).ok());
  EXPECT_FALSE(
      make_certificate(options_for("s"), {authority->certificate_pem, other->key_pem}).ok());
  EXPECT_FALSE(expires_ns("").ok());
}

}  // namespace
}  // namespace berth::serve
