// A Kubernetes resource.Quantity: "250m", "1.5Gi", "2e3".
//
// A fixed-point number of nano units in 128 bits; never a double. Parsing, rounding and printing
// follow k8s.io/apimachinery/pkg/api/resource: parts smaller than a nano round away from zero, a
// binary quantity is capped at 2^63-1, value() and milli_value() round away from zero. Differences,
// all deliberate: text without any digit ("", "-", ".") is refused; amounts beyond 2^127-1 nano
// (1.7e29 units) are held there instead of growing; value() saturates where Go would wrap around.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace berth::text {

__extension__ typedef __int128 Int128;
__extension__ typedef unsigned __int128 Uint128;

enum class Format : std::uint8_t { kDecimalSI, kBinarySI, kDecimalExponent };

class Quantity {
 public:
  constexpr Quantity() = default;  // zero, kDecimalSI

  static Quantity from_units(std::int64_t units, Format format = Format::kDecimalSI);
  static Quantity from_milli(std::int64_t milli, Format format = Format::kDecimalSI);
  static Quantity from_nano(Int128 nano, Format format = Format::kDecimalSI);

  // Whole units and thousandths, rounded away from zero and held to the range of int64.
  std::int64_t value() const;
  std::int64_t milli_value() const;
  double to_double() const { return static_cast<double>(nano_) / 1e9; }
  Int128 nano() const { return nano_; }
  Format format() const { return format_; }

  bool is_zero() const { return nano_ == 0; }
  bool is_negative() const { return nano_ < 0; }
  bool is_integer() const;  // no part of a unit

  // The sum takes the other's format when this one is zero, as Kubernetes does. Saturating.
  Quantity& operator+=(const Quantity& other);
  Quantity& operator-=(const Quantity& other);
  friend Quantity operator+(Quantity a, const Quantity& b) { return a += b; }
  friend Quantity operator-(Quantity a, const Quantity& b) { return a -= b; }

  // By amount; the format does not count.
  friend bool operator==(const Quantity& a, const Quantity& b) { return a.nano_ == b.nano_; }
  friend std::strong_ordering operator<=>(const Quantity& a, const Quantity& b) {
    return a.nano_ < b.nano_   ? std::strong_ordering::less
           : b.nano_ < a.nano_ ? std::strong_ordering::greater
                               : std::strong_ordering::equal;
  }

  // The canonical text: no fraction, the largest suffix that needs none ("1.5Gi" is "1536Mi").
  std::string to_string() const;

 private:
  Int128 nano_ = 0;
  Format format_ = Format::kDecimalSI;
};

Result<Quantity> parse_quantity(std::string_view text);

}  // namespace berth::text
