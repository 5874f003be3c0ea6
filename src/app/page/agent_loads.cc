#include "app/page/agent_loads.h"

#include <algorithm>
#include <utility>

#include "plans/account/history.h"

namespace berth::app {

namespace {

std::string_view text_value(const text::Value* value) {
  return value == nullptr ? std::string_view() : value->string();
}

// What may stand in a URL as an address: nothing that says more than where.
bool is_address(std::string_view text) {
  constexpr std::size_t kLongest = 45;
  return !text.empty() && text.size() <= kLongest &&
         text.find_first_not_of("0123456789abcdefABCDEF.:") == std::string_view::npos;
}

// Has or had GPUs: the kubelet keeps what was once offered.
bool has_gpus(const text::Value& status) {
  const text::Value* capacity = status.find("capacity");
  if (capacity == nullptr) return false;
  return std::any_of(capacity->members().begin(), capacity->members().end(),
                     [](const text::Member& one) { return one.key.starts_with("nvidia.com/"); });
}

std::string in_url(std::string_view address) {
  const bool six = address.find(':') != std::string_view::npos;
  return six ? "[" + std::string(address) + "]" : std::string(address);
}

}  // namespace

std::map<std::string, std::string> agent_addresses(const text::Value& list, std::string_view ns) {
  std::map<std::string, std::string> out;
  const text::Value* items = list.find("items");
  if (items == nullptr) return out;
  for (const text::Value& pod : items->items()) {
    const text::Value* metadata = pod.find("metadata");
    const text::Value* spec = pod.find("spec");
    const text::Value* status = pod.find("status");
    if (metadata == nullptr || spec == nullptr || status == nullptr) continue;
    if (text_value(metadata->find("namespace")) != ns ||
        text_value(spec->find("serviceAccountName")) != kAgentAccount) {
      continue;
    }
    const std::string_view node = text_value(spec->find("nodeName"));
    const std::string_view address = text_value(status->find("podIP"));
    const bool runs = text_value(status->find("phase")) == "Running";
    if (runs && !node.empty() && is_address(address)) out.emplace(node, in_url(address));
  }
  return out;
}

std::map<std::string, std::string> node_addresses(const text::Value& list) {
  std::map<std::string, std::string> out;
  const text::Value* items = list.find("items");
  if (items == nullptr) return out;
  for (const text::Value& node : items->items()) {
    const text::Value* metadata = node.find("metadata");
    const text::Value* status = node.find("status");
    if (metadata == nullptr || status == nullptr) continue;
    const std::string_view name = text_value(metadata->find("name"));
    const text::Value* addresses = status->find("addresses");
    if (name.empty() || addresses == nullptr || !has_gpus(*status)) continue;
    for (const text::Value& one : addresses->items()) {
      const std::string_view address = text_value(one.find("address"));
      if (text_value(one.find("type")) != "InternalIP" || !is_address(address)) continue;
      out.emplace(name, in_url(address));
      break;
    }
  }
  return out;
}

struct AgentLoads::State : std::enable_shared_from_this<State> {
  struct Reading {
    std::vector<int> busy;
    std::int64_t ticks_ns = 0, wall_ns = 0;  // 0: none yet
    bool asked = false;                      // and not answered yet
  };

  State(kube::Client& with, Fetch by, AgentLoadsOptions how)
      : client(with), loop(with.loop()), fetch(std::move(by)), options(std::move(how)) {}

  kube::Client& client;
  Loop& loop;
  Fetch fetch;
  AgentLoadsOptions options;
  std::map<std::string, std::string> addresses, coming, agents;  // by node
  bool pods_now = true;                                          // what is being listed
  std::map<std::string, Reading, std::less<>> readings;
  Loop::Timer list_timer = 0, ask_timer = 0;
  kube::Call listing = 0;

  void list(const std::string& next) {
    kube::ListOptions how;
    how.limit = options.list_limit;
    how.next = next;
    if (pods_now) how.ns = options.ns, how.label_selector = kAgentPods;
    listing = client.list(pods_now ? kube::resources::pods() : kube::resources::nodes(), how,
                          [self = weak_from_this()](const kube::Answer& answer) {
                            if (const auto state = self.lock()) state->take(answer);
                          });
  }

  // Pods first, then nodes. Who may not list pods is left with the nodes' addresses.
  void take(const kube::Answer& answer) {
    listing = 0;
    auto& taken = pods_now ? agents : coming;
    if (answer.ok()) {
      taken.merge(pods_now ? agent_addresses(answer.body.root(), options.ns)
                           : node_addresses(answer.body.root()));
      const text::Value* metadata = answer.body.root().find("metadata");
      const std::string next(metadata == nullptr ? "" : text_value(metadata->find("continue")));
      if (!next.empty() && taken.size() < options.max_nodes) return list(next);
    }
    if (std::exchange(pods_now, false)) return list("");
    if (answer.ok()) {
      for (auto& [node, address] : coming) {
        if (const auto pod = agents.find(node); pod != agents.end()) address = pod->second;
      }
      addresses = std::exchange(coming, {});
      std::erase_if(readings, [this](const auto& one) { return !addresses.contains(one.first); });
    }
    coming.clear();
    agents.clear();
    list_timer = loop.after(options.nodes_ns, [self = weak_from_this()] {
      const auto state = self.lock();
      if (!state) return;
      state->pods_now = true;
      state->list("");
    });
    if (ask_timer == 0) ask();
  }

  void ask() {
    ask_timer = loop.after(options.interval_ns, [self = weak_from_this()] {
      if (const auto state = self.lock()) state->ask();
    });
    for (const auto& [node, address] : addresses) {
      Reading& reading = readings[node];
      if (reading.asked) continue;  // the round before is not through
      reading.asked = true;
      fetch("http://" + address + ":" + std::to_string(options.port) + "/metrics",
            [self = weak_from_this(), name = node](const Result<std::string>& page) {
              if (const auto state = self.lock()) state->note(name, page);
            });
    }
  }

  void note(const std::string& node, const Result<std::string>& page) {
    const auto found = readings.find(node);
    if (found == readings.end()) return;
    found->second.asked = false;
    if (!page.ok()) return;
    std::vector<int> busy = account::busy_of_metrics(*page);
    if (busy.empty()) return;
    found->second.busy = std::move(busy);
    found->second.ticks_ns = loop.monotonic().ticks_ns();
    found->second.wall_ns = loop.wall().now_ns();
  }
};

AgentLoads::AgentLoads(kube::Client& client, Fetch fetch, AgentLoadsOptions options)
    : state_(std::make_shared<State>(client, std::move(fetch), std::move(options))) {}

AgentLoads::~AgentLoads() {
  if (state_->list_timer != 0) state_->loop.cancel(state_->list_timer);
  if (state_->ask_timer != 0) state_->loop.cancel(state_->ask_timer);
  if (state_->listing != 0) state_->client.cancel(state_->listing);
}

void AgentLoads::start() { state_->list(""); }

PageFactsKeeper::Readings AgentLoads::readings() const {
  PageFactsKeeper::Readings out;
  const std::int64_t now = state_->loop.monotonic().ticks_ns();
  for (const auto& [node, address] : state_->addresses) {
    const auto found = state_->readings.find(node);
    const bool fresh = found != state_->readings.end() && found->second.wall_ns != 0 &&
                       now - found->second.ticks_ns <= state_->options.stale_ns;
    if (!fresh) {
      ++out.silent_nodes;
      continue;
    }
    const std::int64_t taken = found->second.wall_ns;
    if (out.oldest_ns == 0 || taken < out.oldest_ns) out.oldest_ns = taken;
    out.loads.emplace(node, found->second.busy);
  }
  return out;
}

}  // namespace berth::app
