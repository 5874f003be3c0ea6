// The web page over HTTP: its files, and the facts it shows as JSON.
//
//   GET /, /page.js, /page.css
//   GET /api/page?after=REVISION   when the facts differ from that revision, or after a while
//   GET /api/why?kind=&namespace=&name=&output=   as `berth why -o json` (or table, yaml); with
//   &holders=all as with --holders
//
// berth why asks for the last, directly or through the API server, which takes Authorization for
// itself: the token may then stand in Berth-Token. Refusals to it carry Berth-Answer: refused.
//
// Facts are gathered on the loop, and only while somebody looks; the plan, the views and the text
// are made of that copy on a thread of its own, so that a page never delays a decision. At most one
// page is made at a time, not more often than once a second and a quarter of the time at most.
// Requests that wait are bounded.
//
// Open (no `allow`) it serves names of this machine alone: a page elsewhere cannot reach it through
// a name of its own that points here. With `allow` every /api request is asked for first.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "app/page/page_access.h"
#include "app/page/why_service.h"
#include "base/loop.h"
#include "base/metrics.h"
#include "base/result.h"
#include "edge/serve/http_server.h"
#include "people/view/page.h"

namespace berth::app {

// On the loop's thread.
struct PageSource {
  std::function<kinds::Inputs()> inputs;
  std::function<people::PageFacts()> facts;  // their busy() is called on another thread
  // What why looks at, on another thread, and a number that is another one when it would be.
  std::function<std::uint64_t()> revision;
  std::function<ClusterCopy()> copy;
  std::function<people::Decided()> decided;  // the last decision
  // The objects of a namespace as they are written, later; read on another thread. Absent: fixes
  // name no changes.
  using ObjectsKnown = std::function<void(FetchedObjects)>;
  std::function<void(const std::string& ns, ObjectsKnown)> objects = nullptr;
};

struct PageOptions {
  std::string address = "127.0.0.1";
  std::uint16_t port = 0;
  std::optional<serve::TlsFiles> tls;
  model::PolicyFlags policy;    // as the controller's: what is said about waiting follows it
  std::string decision_inputs;  // the file that decisions can be made again from, or empty
  // May the owner of this bearer token look? Answers later, on the loop. Absent: everybody may.
  using Allowed = std::function<void(Status)>;
  std::function<void(const std::string& token, Allowed answer)> allow;
  // And what may he see of an answer about this? Absent: as allow, and then everything.
  using Rights = PageAccess::VisibilityAnswer;
  std::function<void(const std::string& token, const people::Subject&, Rights answer)> allow_why;
};

class PageServer {
 public:
  static Result<std::unique_ptr<PageServer>> start(Loop& loop, PageOptions options,
                                                   PageSource source, MetricsRegistry& metrics);
  ~PageServer();
  std::uint16_t port() const;

  // A question for /api/why that came another way, from somebody who may see everything. On the
  // loop's thread.
  void answer_why(const std::string& target, const std::shared_ptr<serve::Exchange>& exchange);

 private:
  struct State;
  explicit PageServer(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

}  // namespace berth::app
