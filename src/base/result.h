// Errors as values.
//
// A function that can fail returns Result<T>; nothing in berth throws across its own functions.
// An Error says what is wrong in a sentence an operator can act on; callers add where it happened
// with context(), outermost last, and it prints as "file a.yaml: document 2: cpu: not a number".
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/check.h"

namespace berth {

enum class Code : std::uint8_t {
  kInvalid,      // the input is wrong; the same input will always fail
  kNotFound,     // a named thing does not exist
  kConflict,     // it exists already, or changed meanwhile
  kExhausted,    // a bound was reached
  kUnavailable,  // may work later
  kInternal,     // a bug of ours
};

std::string_view name(Code code);

class Error {
 public:
  Error(Code code, std::string message) : code_(code), message_(std::move(message)) {}

  Code code() const { return code_; }
  const std::string& message() const { return message_; }
  const std::vector<std::string>& contexts() const { return contexts_; }  // innermost first

  // Adds where the error happened; the last added is printed first.
  Error context(std::string where) && {
    contexts_.push_back(std::move(where));
    return std::move(*this);
  }
  Error& context(std::string where) & {
    contexts_.push_back(std::move(where));
    return *this;
  }

  std::string to_string() const;  // "outer: inner: message"

  friend bool operator==(const Error&, const Error&) = default;

 private:
  Code code_;
  std::string message_;
  std::vector<std::string> contexts_;
};

inline Error invalid(std::string message) { return {Code::kInvalid, std::move(message)}; }

// A T or an Error. Reading the wrong side is a programmer error and aborts.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT: implicit
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT: implicit

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& value() & { return *read<0>(state_); }
  const T& value() const& { return *read<0>(state_); }
  T&& value() && { return std::move(*read<0>(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  Error& error() & { return *read<1>(state_); }
  const Error& error() const& { return *read<1>(state_); }
  Error&& error() && { return std::move(*read<1>(state_)); }

  Result context(std::string where) && {  // a value: "r = std::move(r).context(...)" must work
    if (!ok()) error().context(std::move(where));
    return std::move(*this);
  }

 private:
  template <std::size_t kSide, class State>
  static auto* read(State& state) {
    BERTH_ASSERT(state.index() == kSide, "ok() must be asked before value() or error()");
    return std::get_if<kSide>(&state);
  }

  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT: implicit

  bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }
  Error& error() & { return *read(error_); }
  const Error& error() const& { return *read(error_); }
  Error&& error() && { return std::move(*read(error_)); }

  Result context(std::string where) && {
    if (!ok()) error_->context(std::move(where));
    return std::move(*this);
  }

 private:
  template <class State>
  static State& read(State& state) {
    BERTH_ASSERT(state.has_value(), "ok() must be asked before error()");
    return state;
  }

  std::optional<Error> error_;
};

using Status = Result<void>;

}  // namespace berth

// BERTH_TRY(auto x, f()): x is the value, or the enclosing function returns the error.
// A macro because only a macro can return from its caller.
#define BERTH_TRY_CAT2(a, b) a##b
#define BERTH_TRY_CAT(a, b) BERTH_TRY_CAT2(a, b)
#define BERTH_TRY(decl, expr)                                \
  auto BERTH_TRY_CAT(try_, __LINE__) = (expr);               \
  if (!BERTH_TRY_CAT(try_, __LINE__).ok()) {                 \
    return std::move(BERTH_TRY_CAT(try_, __LINE__)).error(); \
  }                                                          \
  decl = std::move(BERTH_TRY_CAT(try_, __LINE__)).value()
#define BERTH_CHECK(expr)                                                                 \
  do {                                                                                    \
    if (auto BERTH_TRY_CAT(st_, __LINE__) = (expr); !BERTH_TRY_CAT(st_, __LINE__).ok()) { \
      return std::move(BERTH_TRY_CAT(st_, __LINE__)).error();                             \
    }                                                                                     \
  } while (false)
