// The texts of the built-in types; table.cc reads them.
#pragma once

namespace berth::sim {

extern const char* const kTableCore;
extern const char* const kTablePod;
extern const char* const kTableWork;
extern const char* const kTableMore;
extern const char* const kTableWords;

}  // namespace berth::sim
