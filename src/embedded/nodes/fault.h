// Faults of simulated nodes: how they are written, and what an Xid means. Inside this folder.
#pragma once

#include <string>
#include <string_view>

#include "embedded/nodes/fleet.h"
#include "text/decode.h"

namespace berth::sim {

// The list under `faults:`; the pools must be complete. Sorted by time.
void read_faults(const text::Value& v, Fleet& fleet, text::Decoder& d);

// After the vendor's catalog of immediate actions.
enum class XidEffect : std::uint8_t {
  kIgnore,  // a note in the log
  kApp,     // the program on the GPU dies, the GPU is well
  kGpu,     // the program dies and the GPU needs a reset, a reboot or a hand
};
XidEffect xid_effect(int code);
std::string xid_text(int code);  // "Xid 79: GPU has fallen off the bus"

}  // namespace berth::sim
