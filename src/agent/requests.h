// What an operator asks of the agent that runs on this machine: `berth agent forgive GPU`.
//
//   FOLDER/ID.ask     {"verb":"forgive","gpu":"3","by":"alice","why":"riser replaced"}
//   FOLDER/ID.answer  {"ok":true,"text":"..."}, removed by the one who asked
//
// Whoever may write to the folder may ask: it is below the agent's state and its owner's alone, so
// there is no port to guard. A request is served at most once; one that nobody took in time is
// taken back, and those that lie there when an agent starts are removed: nobody waits for them any
// more. Of two agents on one machine, during a rolling update, either may take it.
//
// On the loop's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/log.h"
#include "base/loop.h"
#include "base/result.h"

namespace berth::agent {

inline constexpr const char* kForgive = "forgive";

struct Request {
  std::string verb;
  std::string gpu;      // UUID or index
  std::string by, why;  // for the log; may be empty
  friend bool operator==(const Request&, const Request&) = default;
};

// Where an agent with this state looks.
std::string requests_folder(const std::string& state_dir);

std::string write_request(const Request& request);
// Another verb, an unknown field, a text of more than 256 bytes: an error with its path.
Result<Request> read_request(std::string_view text);

// The agent's side.
class RequestInbox {
 public:
  // serve: what is to be said to the one who asked, or why it was refused.
  using Serve = std::function<Result<std::string>(const Request&)>;
  // The folder is made. An error: it cannot be, and nobody can ask.
  static Result<std::unique_ptr<RequestInbox>> open(Loop& loop, const std::string& folder,
                                                    Serve serve, const Logger& log);
  virtual ~RequestInbox() = default;  // nothing is called afterwards
};

// The other side: done once, with the agent's answer, never inside the call; it does not destroy
// the Asking. kUnavailable: no agent took it within the time; kInvalid: it was refused. id: letters
// and digits, at most 64, that nobody else uses.
class Asking {
 public:
  using Done = std::function<void(Result<std::string>)>;
  static std::unique_ptr<Asking> start(Loop& loop, const std::string& folder, const std::string& id,
                                       const Request& request, std::int64_t patience_ns, Done done);
  virtual ~Asking() = default;  // the request is taken back
};

}  // namespace berth::agent
