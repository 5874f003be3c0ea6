// Topology assignments of a Workload from one version's form to the other's, as JSON: for
// kinds/kueue_convert.h alone. kinds/kueue_workload.h reads them into the model.
//
// Order and values are kept; what is not in the form that is read is written as it is.
#pragma once

#include <cstddef>

#include "text/json_writer.h"
#include "text/value.h"

namespace berth::kinds {

// A few bytes of slices may be a hundred thousand domains: all assignments of one object together
// may become this much text, the others stay slices.
inline constexpr std::size_t kMostUnpackedBytes = std::size_t{8} << 20;

// v1beta1's domains become one of v1beta2's slices.
void pack_domains(const text::Value& assignment, text::JsonWriter& out);
// v1beta2's slices become v1beta1's domains. left: what may still be written, made smaller.
void unpack_slices(const text::Value& assignment, std::size_t& left, text::JsonWriter& out);

}  // namespace berth::kinds
