// What the program itself reads: pages of metrics and addresses of agents, places on a command
// line.
#include <algorithm>
#include <string>

#include "app/host_port.h"
#include "app/page/agent_loads.h"
#include "app/views/gpu_loads.h"
#include "app/why/why_remote.h"
#include "fuzz.h"
#include "plans/account/history.h"
#include "text/json.h"

namespace {

using namespace berth;

void check_page(std::string_view page) {
  for (const int busy : account::busy_of_metrics(page)) {
    fuzz::check(busy >= -1 && busy <= 100, "per cent");
  }
  fuzz::check(account::busy_of_metrics(page).size() <= account::kMostGpus, "GPUs are bounded");
  people::FleetNode node;
  for (int i = 0; i < 8; ++i) node.gpus.push_back({.index = i});
  app::take_loads(page, node);
  fuzz::check(node.gpus.size() == 8, "a page adds no GPUs");
}

void check_addresses(std::string_view input) {
  const auto list = text::parse_json(input);
  if (!list.ok()) return;
  for (const auto& found :
       {app::node_addresses(list->root()), app::agent_addresses(list->root(), "berth-system")}) {
    for (const auto& [node, address] : found) {
      fuzz::check(!node.empty(), "a node has a name");
      fuzz::check(address.find_first_not_of("0123456789abcdefABCDEF.:[]") == std::string::npos,
                  "an address says where, and nothing else");
    }
  }
}

}  // namespace

BERTH_FUZZ_TARGET(app_text) {
  const std::string_view input = fuzz::text_of(data, size);
  check_page(input);
  check_addresses(input);
  if (const auto place = app::parse_host_port(std::string(input)); place.ok()) {
    const std::string plain = "[" + place->host + "]:" + std::to_string(place->port);
    const auto again = app::parse_host_port(plain);
    fuzz::check(again.ok() && again->host == place->host && again->port == place->port,
                "a place reads back");
  }
  if (const auto place = app::parse_controller_place(input); place.ok()) {
    fuzz::check(!place->url.empty() || (!place->ns.empty() && !place->service.empty()),
                "a URL or a Service");
    fuzz::check(place->service.find_first_of("/?#%") == std::string::npos, "a name is a name");
  }
  return 0;
}
