// The conversion webhook of Kueue's kinds, as a function: a ConversionReview of
// apiextensions.k8s.io/v1 in, one out.
//
// Pure; any thread. All objects are converted, or none: the answer is then a Failure whose message
// names the object and the field. Objects that are there already are given back as they are.
//
// Cost: linear in the body, which may be large (kMostReviewBytes), and in what comes out.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace berth::kinds {

inline constexpr std::size_t kMostReviewBytes = std::size_t{32} << 20;        // that come in
inline constexpr std::size_t kMostReviewAnswerBytes = std::size_t{64} << 20;  // that go out

struct ConversionAnswer {
  std::string body;
  bool converted = false;
  std::string why;  // not
};

// Refused: what is no ConversionReview with a request that could be answered.
Result<ConversionAnswer> review_conversion(std::string_view body);

}  // namespace berth::kinds
