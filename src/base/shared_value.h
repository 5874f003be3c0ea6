// A value that copies share until one of them changes it.
//
// Reading costs a pointer; the first write() after a copy copies the value, unless nobody else has
// it any more. Copies belong to one thread.
#pragma once

#include <memory>
#include <utility>

namespace berth {

template <class T>
class SharedValue {
 public:
  SharedValue() : value_(std::make_shared<T>()) {}

  const T& operator*() const { return *value_; }
  const T* operator->() const { return value_.get(); }
  T& write() {
    if (value_.use_count() > 1) value_ = std::make_shared<T>(*value_);
    return *value_;
  }

 private:
  std::shared_ptr<T> value_;
};

}  // namespace berth
