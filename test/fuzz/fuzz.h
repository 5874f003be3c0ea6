// What every fuzz target shares: its entry point and a check that stops the run.
//
// BERTH_FUZZ_TARGET(json) { ... return 0; } over `data` and `size`. For libFuzzer it is the one
// entry point of the program json_fuzz; the program fuzz_replay has them all, by name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string_view>

#ifdef BERTH_FUZZ_REPLAY
#define BERTH_FUZZ_TARGET(name)                                       \
  static int fuzz_##name(const std::uint8_t* data, std::size_t size); \
  static const berth::fuzz::Target target_##name{#name, fuzz_##name}; \
  static int fuzz_##name([[maybe_unused]] const std::uint8_t* data,   \
                         [[maybe_unused]] std::size_t size)
#else
#define BERTH_FUZZ_TARGET(name) \
  extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
#endif

namespace berth::fuzz {

using Entry = int (*)(const std::uint8_t* data, std::size_t size);

struct Target {
  Target(const char* name, Entry entry) { all().emplace(name, entry); }
  static std::map<std::string_view, Entry>& all() {
    static std::map<std::string_view, Entry> targets;
    return targets;
  }
};

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

inline void check(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "fuzz: does not hold: %s\n", what);
  std::abort();
}

}  // namespace berth::fuzz
