#include "base/sha256.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

namespace berth {
namespace {

// The first 32 bits of the fractional parts of the roots of the first primes: square roots begin
// the state, cube roots stir the rounds.
struct Sha256Constants {
  std::array<std::uint32_t, 8> begin{};
  std::array<std::uint32_t, 64> rounds{};

  Sha256Constants() {
    std::size_t count = 0;
    for (std::uint32_t n = 2; count < rounds.size(); ++n) {
      bool prime = true;
      for (std::uint32_t d = 2; d * d <= n; ++d) prime = prime && n % d != 0;
      if (!prime) continue;
      if (count < begin.size()) begin[count] = fraction(std::sqrt(static_cast<long double>(n)));
      rounds[count++] = fraction(std::cbrt(static_cast<long double>(n)));
    }
  }
  static std::uint32_t fraction(long double root) {
    return static_cast<std::uint32_t>((root - std::floor(root)) * 4294967296.0L);
  }
};

void stir(std::array<std::uint32_t, 8>& state, const unsigned char* block,
          const Sha256Constants& constants) {
  std::array<std::uint32_t, 64> words{};
  for (std::size_t i = 0; i < 16; ++i) {
    for (std::size_t b = 0; b < 4; ++b) words[i] = words[i] << 8 | block[4 * i + b];
  }
  for (std::size_t i = 16; i < 64; ++i) {
    const std::uint32_t a = words[i - 15], b = words[i - 2];
    const std::uint32_t small = std::rotr(a, 7) ^ std::rotr(a, 18) ^ a >> 3;
    const std::uint32_t large = std::rotr(b, 17) ^ std::rotr(b, 19) ^ b >> 10;
    words[i] = words[i - 16] + small + words[i - 7] + large;
  }
  auto [a, b, c, d, e, f, g, h] = state;
  for (std::size_t i = 0; i < 64; ++i) {
    const std::uint32_t choice = (e & f) ^ (~e & g);
    const std::uint32_t majority = (a & b) ^ (a & c) ^ (b & c);
    const std::uint32_t first = h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) +
                                choice + constants.rounds[i] + words[i];
    const std::uint32_t second = (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + majority;
    h = g;
    g = f;
    f = e;
    e = d + first;
    d = c;
    c = b;
    b = a;
    a = first + second;
  }
  const std::array<std::uint32_t, 8> mixed = {a, b, c, d, e, f, g, h};
  for (std::size_t i = 0; i < 8; ++i) state[i] += mixed[i];
}

}  // namespace

std::string sha256_hex(std::string_view text) {
  static const Sha256Constants constants;
  std::array<std::uint32_t, 8> state = constants.begin;
  std::string tail(text.substr(text.size() / 64 * 64));
  const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
  for (std::size_t at = 0; at + 64 <= text.size(); at += 64) stir(state, bytes + at, constants);
  tail.push_back(static_cast<char>(0x80));
  while (tail.size() % 64 != 56) tail.push_back('\0');
  const std::uint64_t bits = static_cast<std::uint64_t>(text.size()) * 8;
  for (int shift = 56; shift >= 0; shift -= 8) tail.push_back(static_cast<char>(bits >> shift));
  const auto* rest = reinterpret_cast<const unsigned char*>(tail.data());
  for (std::size_t at = 0; at < tail.size(); at += 64) stir(state, rest + at, constants);
  std::string out;
  for (const std::uint32_t word : state) {
    for (int shift = 28; shift >= 0; shift -= 4)
      out.push_back("0123456789abcdef"[word >> shift & 15]);
  }
  return out;
}

}  // namespace berth
