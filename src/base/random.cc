#include "base/random.h"

#include <bit>

#include "base/check.h"

namespace berth {
namespace {

__extension__ typedef unsigned __int128 Uint128;

std::uint64_t splitmix64(std::uint64_t& state) {
  std::uint64_t z = (state += 0x9e3779b97f4a7c15U);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31);
}

std::uint64_t fnv1a(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3U;
  }
  return hash;
}

}  // namespace

Random::Random(std::uint64_t seed) : seed_(seed) {
  std::uint64_t filler = seed;
  for (auto& word : state_) word = splitmix64(filler);
}

Random Random::split(std::string_view label) const {
  std::uint64_t mixer = seed_;
  mixer = splitmix64(mixer) ^ fnv1a(label);  // seed and label are mixed apart: 1,"a" is not 0,"b"
  return Random(splitmix64(mixer));
}

std::uint64_t Random::next() {
  std::uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
  std::uint64_t shifted = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= shifted;
  state_[3] = std::rotl(state_[3], 45);
  return result;
}

std::uint64_t Random::below(std::uint64_t n) {
  BERTH_ASSERT(n > 0, "there is no number below zero");
  // Lemire's multiply and reject: the high half is the answer, and the low half says whether the
  // draw fell into the part of 2^64 that does not divide evenly by n.
  Uint128 product = static_cast<Uint128>(next()) * n;
  auto low = static_cast<std::uint64_t>(product);
  if (low < n) {
    std::uint64_t uneven = (0 - n) % n;
    while (low < uneven) {
      product = static_cast<Uint128>(next()) * n;
      low = static_cast<std::uint64_t>(product);
    }
  }
  return static_cast<std::uint64_t>(product >> 64);
}

std::int64_t Random::between(std::int64_t low, std::int64_t high) {
  BERTH_ASSERT(low <= high, "an empty range has no number");
  std::uint64_t width = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low) + 1;
  std::uint64_t offset = width == 0 ? next() : below(width);  // 0: the whole of int64
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(low) + offset);
}

bool Random::chance(std::uint64_t numerator, std::uint64_t denominator) {
  return below(denominator) < numerator;
}

double Random::unit() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

}  // namespace berth
