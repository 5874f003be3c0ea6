// Certificates of our own: a self-signed authority and what it signs, as PEM text (ECDSA P-256).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace berth::serve {

struct Certificate {
  std::string certificate_pem, key_pem;
};

struct CertificateOptions {
  std::string common_name;
  std::vector<std::string> hosts;  // names and addresses; addresses become IP entries
  std::int64_t not_before_ns = 0;  // wall clock
  std::int64_t valid_ns = 0;
};

Result<Certificate> make_authority(const CertificateOptions& options);
Result<Certificate> make_certificate(const CertificateOptions& options,
                                     const Certificate& authority);
// When it begins and ends, on the wall clock.
Result<std::int64_t> starts_ns(const std::string& certificate_pem);
Result<std::int64_t> expires_ns(const std::string& certificate_pem);
// One of the authorities of the bundle signed it; what cannot be read was signed by nobody.
bool issued_by(const std::string& certificate_pem, const std::string& bundle_pem);
// The key is that of the certificate.
Status check_pair(const Certificate& pair);

}  // namespace berth::serve
