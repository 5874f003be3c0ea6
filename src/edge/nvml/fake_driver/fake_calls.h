// What the calls of the fake driver share, those about MIG (fake_mig.cc) and all others
// (fake_driver.cc). Its state stays in fake_driver.cc, one for each library that is built; nothing
// here is exported.
#pragma once

#include <cstdint>
#include <functional>

#include "edge/nvml/fake_driver/fake_driver.h"

#define BERTH_FAKE __attribute__((visibility("default")))
#define BERTH_FAKE_OWN __attribute__((visibility("hidden")))

namespace berth::nvml {

// Handles are numbers here.
template <class Handle>
Handle handle_of(std::uintptr_t number) {
  return reinterpret_cast<Handle>(number);  // NOLINT(performance-no-int-to-ptr)
}

// A handle is index + 1, and a MIG slot + 1 above it.
inline constexpr std::uintptr_t kMigShift = 8;

// The GPU of a handle (also of its MIG instances), after hanging and failing as it is told to.
BERTH_FAKE_OWN Return with_gpu(Device device,
                               const std::function<Return(FakeGpu&, FakeMig*)>& answer);
BERTH_FAKE_OWN Return put_number(Device device, unsigned int* out, unsigned int number);

}  // namespace berth::nvml
