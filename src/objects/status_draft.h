// A status that is being written: conditions first, other fields replaced or kept. Private to this
// folder.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "text/json_writer.h"

namespace berth::objects {

class StatusDraft {
 public:
  // The status of the object, if it has one.
  StatusDraft(const text::Value& object, std::int64_t now_ns);

  struct Condition {
    std::string type, reason, message, since;
    bool on = false;
    std::int64_t generation = 0;
  };
  const Condition* find(std::string_view type) const;
  bool is_true(std::string_view type) const;
  void set(std::string_view type, bool on, std::string_view reason, std::string_view message);

  const text::Value* old(std::string_view field) const;  // of the status as it is, or nullptr
  void put(std::string_view field, std::string json);    // instead of what stood there
  void drop(std::string_view field);

  std::string now() const;
  // The whole status; "" when it says what it said.
  std::string write() const;

 private:
  const text::Value* status_ = nullptr;
  std::int64_t now_ns_;
  std::int64_t generation_ = 0;
  std::vector<Condition> conditions_;                       // in the order they came
  std::map<std::string, std::string, std::less<>> fields_;  // "" means dropped
};

}  // namespace berth::objects
