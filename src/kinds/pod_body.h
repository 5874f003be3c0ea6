// Pods that are alike: what of a document makes them so, and small readers of live objects. Private
// to this folder.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "kinds/readers.h"

namespace berth::kinds {

inline constexpr std::string_view kGpusAnnotation = "berth.dev/gpus";
inline constexpr std::string_view kLastApplied = "kubectl.kubernetes.io/last-applied-configuration";

std::string_view api_group(std::string_view version);  // "" of "v1"
// By kind, key and resourceVersion; the same in every process.
std::uint64_t object_digest(std::string_view kind, std::string_view key, const text::Value& object);

// Two lanes, seeded: nobody outside can make two different bodies meet.
struct BodyHash {
  std::uint64_t a, b;
  friend bool operator==(const BodyHash&, const BodyHash&) = default;

  void mix(std::uint64_t x) {
    a = (a ^ x) * 0x9e3779b97f4a7c15u;
    a ^= a >> 29;
    b = (b + x) * 0xc2b2ae3d27d4eb4fu;
    b ^= b >> 32;
  }
  void add(std::string_view text);
  void add(const text::Value& v);
};
struct BodyHashHash {
  std::size_t operator()(const BodyHash& h) const { return static_cast<std::size_t>(h.a); }
};
// Of everything that pods of one body have in common.
BodyHash hash_of_body(const text::Value& pod, std::uint64_t seed);

// "0,3": sorted; false, and nothing taken, when it is anything else.
bool indices_of(std::string_view text, std::vector<int>& out);

}  // namespace berth::kinds
