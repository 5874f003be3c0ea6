#include "embedded/workloads/pod_name.h"

namespace berth::sim {

std::string name_hash(std::string_view seed) {
  constexpr std::string_view kLetters = "bcdfghjklmnpqrstvwxz2456789";
  std::uint64_t hash = 14695981039346656037u;
  for (const char c : seed) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 1099511628211u;
  }
  hash ^= hash >> 32;  // the low bits of the last bytes alone would decide otherwise
  std::string out;
  for (int i = 0; i < 8; ++i) {
    out += kLetters[hash % kLetters.size()];
    hash /= kLetters.size();
  }
  return out;
}

std::string pod_name(std::string_view base, std::string_view seed) {
  constexpr std::size_t kMost = 63, kSuffix = 5;
  return std::string(base.substr(0, kMost - kSuffix - 1)) + '-' +
         name_hash(seed).substr(0, kSuffix);
}

}  // namespace berth::sim
