// What a World was told, a line of JSON for each call, so that its decisions can be made again
// (control/replay.h). The first line of a file holds the flags; a file stands alone: one that
// follows another begins with the objects as they are.
//
//   {"op":"begin","format":2,"schedulerNames":["berth"],"placement":{...},"queues":{...}}
//   {"op":"put","v":"v1","k":"Pod","o":{...}}
//   {"op":"assume","pod":"a/b","uid":"...","node":"n0","gang":"","gpus":"0,1"}
//   {"op":"decide","now":1,"objects":"<hex>","digest":"<hex>"}
//
// Objects are written without what nobody decides by, much of which may be secret (kinds/kept.h),
// and without a node's images. One owner, on the loop's thread.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"
#include "model/policy.h"
#include "text/json_writer.h"
#include "text/value.h"

namespace berth::control {

inline constexpr int kWorldLogFormat = 2;

class WorldLog {
 public:
  using Word = std::variant<std::string_view, std::int64_t>;
  using Field = std::pair<std::string_view, Word>;

  virtual ~WorldLog() = default;
  // A new file, from here on. The caller tells its beliefs anew; objects are carried over.
  void begin(const std::vector<std::string>& scheduler_names, const model::PolicyFlags& flags);
  void put(std::string_view version, std::string_view kind, const text::Value& object);
  void remove(std::string_view version, std::string_view kind, std::string_view ns,
              std::string_view name);
  // What the object was before counts beside what it is now: both are carried over.
  void keep_before(std::string_view version, std::string_view kind, std::string_view ns,
                   std::string_view name);
  void note(std::string_view op, std::initializer_list<Field> fields = {});
  void note_names(std::string_view op, const std::set<std::string>& names);
  void line(std::string_view text) { write(text); }
  virtual bool full() const = 0;  // begin() is wanted
  virtual void flush() {}

 protected:
  virtual void start_file(std::string_view header) = 0;
  virtual void write(std::string_view line) = 0;
  // there: the line is the latest text of the object; else it says that the object is gone.
  virtual void write_object(const std::string& key, std::string_view line, bool there) = 0;
  virtual void keep_line_before(const std::string& key) = 0;
};

// The flags as the first line has them; their parts as a BerthPolicy has them.
Result<model::PolicyFlags> read_flags(const text::Value& line);

}  // namespace berth::control
