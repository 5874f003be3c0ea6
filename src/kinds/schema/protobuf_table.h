// The tables behind kinds/schema/protobuf.h; for protobuf.cc alone.
#pragma once

namespace berth::sim {

extern const char* const kProtobufCore;    // metadata and the core group
extern const char* const kProtobufGroups;  // all other groups

}  // namespace berth::sim
