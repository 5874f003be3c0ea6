// Makes the decisions of a log again (control/world_log.h) and compares them: the same calls to the
// same code, so a difference is a changed program, a changed log, or a decision that depends on
// something it should not.
//
// Pure; the caller reads the file. Every line carries a sum of itself and all lines before it, so a
// changed byte is found where it stands. Cost: that of the decisions.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "control/world.h"
#include "model/decision.h"
#include "text/value.h"

namespace berth::control {

// "<16 hex digits> <line>": the digits are the sum of the line and of everything before it.
inline constexpr std::uint64_t kLineSumStart = 0xcbf29ce484222325u;
std::uint64_t line_sum(std::uint64_t before, std::string_view line);

struct ReplayDifference {
  std::uint64_t cycle = 0;
  std::string what;  // "pods", "queues", "objects", or "cycle": the two together
  std::string logged, found;
  model::Decision decision;  // as it is made now
};

class Replay {
 public:
  Replay() = default;

  // The next line, without its newline. An error: the log is damaged, or of another format. A
  // difference ends the replay.
  Result<std::optional<ReplayDifference>> line(std::string_view text);

  std::uint64_t lines() const { return lines_; }
  std::uint64_t cycles() const { return cycles_; }
  std::uint64_t cycle() const { return cycle_; }  // the number of the last one
  std::uint64_t decisions() const { return decisions_; }
  const std::string& id() const { return id_; }  // of the last cycle that was written down
  // The last decision that was written down, as the decision log has it.
  const std::string& written() const { return written_; }

 private:
  Status begin(const text::Value& v);
  Result<std::optional<ReplayDifference>> apply(std::string_view op, const text::Value& v);
  bool believe(std::string_view op, const text::Value& v);
  Status promise(std::string_view op, const text::Value& v, bool& known);
  Status restore(const text::Value& v);
  std::optional<ReplayDifference> compare(const text::Value& v, const char* what,
                                          const model::Decision& made);
  std::optional<ReplayDifference> wrote(const text::Value& v);

  std::unique_ptr<World> world_;
  bool queues_read_ = false;
  model::Decision queues_, last_;
  std::vector<model::Outcome> waits_;  // in queues, as of their last decision
  std::int64_t now_ns_ = 0;
  std::string id_, written_;
  std::uint64_t sum_ = kLineSumStart;
  std::uint64_t lines_ = 0, cycles_ = 0, cycle_ = 0, decisions_ = 0;
};

}  // namespace berth::control
