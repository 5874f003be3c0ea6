// berth why as the controller answers it: with its whole view of the cluster, and with what the one
// who asks may see of that.
//
// Asked for through the API server (the proxy of a Service, by default berth-system/berth-page:443)
// or directly at a URL. The caller's own token goes along, in a header of its own, since an API
// server keeps Authorization for itself; never over plain http but to this machine. Blocks.
#pragma once

#include <optional>
#include <string>

#include "app/cli/cli.h"
#include "base/result.h"
#include "edge/kube/config.h"
#include "people/why/unit.h"

namespace berth::app {

struct ControllerPlace {
  std::string url;  // "https://HOST:PORT"; empty: the Service
  std::string ns = "berth-system", service = "berth-page", port = "443";
  std::string ca_file;  // of the URL's certificate; empty: the system's
};
// "" (the Service), "https://HOST:PORT", "NS/SERVICE" or "NS/SERVICE:PORT".
Result<ControllerPlace> parse_controller_place(std::string_view text);

struct RemoteWhy {
  enum class How : std::uint8_t {
    kAnswered,  // text is the answer, code its exit code
    kRefused,   // the controller says no: text says why
    kUnknown,   // it knows nothing of that name: text says so
    kNobody,    // nobody could be asked: text says why
  };
  How how = How::kNobody;
  std::string text;
  int code = 0;
};
struct RemoteQuestion {
  people::Subject subject;
  std::string output;
  bool holders = false;  // all of them
};
RemoteWhy ask_controller(const kube::Config& config, const ControllerPlace& place,
                         const RemoteQuestion& question, Terminal& terminal);

}  // namespace berth::app
