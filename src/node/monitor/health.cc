#include "node/monitor/health.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <tuple>
#include <utility>

#include "node/monitor/health_rules.h"
#include "node/monitor/xid.h"

namespace berth::monitor {
namespace {

using model::GpuAnswer;
using model::GpuEvent;
using model::RecoveryAction;

constexpr std::int64_t kSecondNs = 1'000'000'000;
constexpr std::int64_t kForgetNs = 3600 * kSecondNs;
constexpr std::int64_t kDoubleNs = 5 * kSecondNs;      // one error, told by driver and kernel log
constexpr std::int64_t kTogetherNs = 600 * kSecondNs;  // 48 and a remap are one story
constexpr std::int64_t kRepeatNs = 3600 * kSecondNs;
constexpr int kRepeats = 3;
constexpr int kHarmlessLinkFaults = 2;
constexpr std::size_t kMaxNoted = 1000, kMaxCodes = 64, kMaxFlaps = 16, kMaxCauses = 64;
constexpr std::size_t kMaxSightings = 16;

bool within(std::int64_t then_ns, std::int64_t now_ns, std::int64_t span_ns) {
  return then_ns != 0 && now_ns - then_ns <= span_ns && then_ns - now_ns <= span_ns;
}

std::string_view without_function(std::string_view bus_id) {
  return bus_id.substr(0, bus_id.find('.'));
}

std::string xid_code(int code) { return "Xid" + std::to_string(code); }

// "(GPC 5, TPC 4, SM 1)" of a 13: "5/4". Empty: the text names no place.
std::string fault_place(std::string_view detail) {
  std::string place;
  for (std::string_view word : {"GPC ", "TPC "}) {
    std::size_t at = detail.find(word);
    if (at == std::string_view::npos) return "";
    at += word.size();
    std::size_t end = detail.find_first_not_of("0123456789", at);
    place += (place.empty() ? "" : "/") + std::string(detail.substr(at, end - at).substr(0, 8));
  }
  return place;
}

bool counts_as_flap(const HealthBook::Cause& cause) {
  return cause.severity == Severity::kFatal && !cause.driver_silent && cause.code != kCodeFlapping;
}

// Which cause people see first: what needs a person, then the strongest, then the oldest.
auto cause_order(const HealthBook::Cause& cause) {
  int rank = cause.code == kCodeFlapping ? 0 : cause.action == "reboot the node" ? 1 : 2;
  return std::tuple(-static_cast<int>(cause.severity), rank, cause.since_ns,
                    std::string_view(cause.code));
}

bool ends_by_reset(const HealthBook::Cause& cause) {
  return cause.probe == Probe::kReset || cause.probe == Probe::kNoRecovery;
}

void mark_reset(HealthBook::Gpu& gpu) {
  for (auto& [code, cause] : gpu.causes) {
    if (ends_by_reset(cause)) cause.reset_seen = true;
  }
}

// True when three processes failed the same way within an hour, at the same place where the text
// names one.
bool repeats(HealthBook::Gpu& gpu, const GpuEvent& event, std::int64_t now_ns) {
  if (event.code != 13 && event.code != 31) return false;
  auto& seen = gpu.sightings[event.code];
  HealthBook::Sighting now{now_ns, event.pid, event.code == 13 ? fault_place(event.detail) : ""};
  std::erase_if(seen, [&](const auto& s) { return !within(s.at_ns, now_ns, kRepeatNs); });
  std::set<int> others;
  for (const auto& s : seen) {
    if (s.place != now.place) continue;
    if (s.pid == now.pid && now.pid != 0) return false;  // one process, many messages
    others.insert(s.pid == 0 ? -1 - static_cast<int>(others.size()) : s.pid);
  }
  if (seen.size() >= kMaxSightings) seen.erase(seen.begin());
  seen.push_back(std::move(now));
  return static_cast<int>(others.size()) + 1 == kRepeats;
}

}  // namespace

Result<HealthOptions> health_options(std::string_view disable, std::string_view enable) {
  HealthOptions options;
  auto read = [](std::string_view text, std::string_view variable, std::set<int>& codes,
                 bool* all) -> Status {
    while (!text.empty()) {
      std::string_view word = text.substr(0, text.find(','));
      text.remove_prefix(std::min(text.size(), word.size() + 1));
      while (!word.empty() && word.front() == ' ') word.remove_prefix(1);
      while (!word.empty() && word.back() == ' ') word.remove_suffix(1);
      if (word.empty()) continue;
      if (all != nullptr && (word == "all" || word == "xids")) {
        *all = true;
        continue;
      }
      int code = 0;
      auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), code);
      if (error != std::errc() || end != word.data() + word.size() || code < 1 || code > 99999) {
        return invalid(std::string(variable) + ": found \"" + std::string(word.substr(0, 60)) +
                       "\", want Xid numbers 1..99999 with commas between" +
                       (all != nullptr ? ", \"all\" or \"xids\"" : ""));
      }
      codes.insert(code);
    }
    return {};
  };
  BERTH_CHECK(read(disable, "DP_DISABLE_HEALTHCHECKS", options.ignored_xids, &options.xids_off));
  BERTH_CHECK(read(enable, "DP_ENABLE_HEALTHCHECKS", options.fatal_xids, nullptr));
  return options;
}

HealthBook::HealthBook(HealthOptions options) : options_(std::move(options)) {
  options_.clean_readings = std::max(1, options_.clean_readings);
  stranger_.healthy = stranger_.known = false;
  stranger_.severity = Severity::kFatal;
  stranger_.code = "UnknownGpu";
  stranger_.text = "no GPU with this UUID was found";
  stranger_.heals = Probe::kAnswers;
}

void HealthBook::set_inventory(const model::GpuInventory& inventory, std::int64_t now_ns) {
  std::set<std::string_view> present;
  for (const auto& device : inventory.gpus) {
    present.insert(device.uuid);
    Gpu& gpu = gpus_[device.uuid];
    if (gpu.gone_since_ns != 0) mark_reset(gpu);
    if (gpu.mig_enabled != device.mig_enabled) gpu.links = gpu.link_doubts = 0;
    gpu.uuid = device.uuid;
    gpu.pci_bus_id = device.pci_bus_id;
    gpu.index = device.index;
    gpu.mig_enabled = device.mig_enabled;
    gpu.gone_since_ns = 0;
  }
  for (auto it = gpus_.begin(); it != gpus_.end();) {
    Gpu& gpu = it->second;
    if (present.contains(gpu.uuid)) {
      ++it;
      continue;
    }
    if (gpu.gone_since_ns == 0) {
      gpu.gone_since_ns = std::max<std::int64_t>(now_ns, 1);
      Cause cause = make_cause(kCodeMissing, Severity::kFatal, Probe::kAnswers,
                               "load the driver or look for the GPU on the bus",
                               "the driver does not list the GPU any more");
      cause.driver_silent = true;
      open(gpu, std::move(cause), now_ns);
      settle(gpu);
    }
    if (now_ns - gpu.gone_since_ns > kForgetNs) {
      counts_.erase(counts_.lower_bound({gpu.uuid, 0}),
                    counts_.upper_bound({gpu.uuid, std::numeric_limits<int>::max()}));
      it = gpus_.erase(it);
    } else {
      ++it;
    }
  }
}

void HealthBook::set_boot(std::string_view boot_id) {
  if (boot_id.empty()) return;
  if (!boot_.empty() && boot_ != boot_id) {
    for (auto& [uuid, gpu] : gpus_) mark_reset(gpu);
  }
  boot_ = boot_id;
}

std::vector<std::string> HealthBook::forgive(std::string_view uuid) {
  auto found = gpus_.find(uuid);
  if (found == gpus_.end()) return changed();
  Gpu& gpu = found->second;
  gpu.flaps.clear();
  gpu.links = gpu.link_doubts = gpu.link_faults = 0;  // what is up now is what is expected
  std::erase_if(gpu.causes, [](const auto& entry) {
    return entry.second.probe == Probe::kReset || entry.second.probe == Probe::kOperator ||
           entry.first == kCodeLinkDown;
  });
  settle(gpu);
  return changed();
}

const Verdict& HealthBook::verdict(std::string_view uuid) const {
  auto found = gpus_.find(uuid);
  return found == gpus_.end() ? stranger_ : found->second.verdict;
}

std::vector<Noted> HealthBook::take_noted() { return std::exchange(noted_, {}); }

const std::map<std::pair<std::string, int>, std::uint64_t>& HealthBook::xid_counts() const {
  return counts_;
}

int HealthBook::last_xid(std::string_view uuid) const {
  auto found = gpus_.find(uuid);
  return found == gpus_.end() ? 0 : found->second.last_xid;
}

void HealthBook::note(Noted noted) {
  if (noted_.size() < kMaxNoted) noted_.push_back(std::move(noted));
}

// Repeats of what is open only start its probe again.
void HealthBook::open(Gpu& gpu, Cause cause, std::int64_t now_ns) {
  auto found = gpu.causes.find(cause.code);
  if (found != gpu.causes.end()) {
    Cause& known = found->second;
    known.clean = 0;
    known.advised = known.reset_seen = false;
    known.action = cause.action;
    known.text = cause.text;
    return;
  }
  if (gpu.causes.size() >= kMaxCauses) return;  // it is out already
  const bool was_bad = std::any_of(gpu.causes.begin(), gpu.causes.end(),
                                   [](const auto& entry) { return counts_as_flap(entry.second); });
  const bool flap = !was_bad && counts_as_flap(cause);
  cause.since_ns = now_ns;
  std::string code = cause.code;
  gpu.causes.emplace(std::move(code), std::move(cause));
  if (!flap) return;
  gpu.flaps.push_back(now_ns);
  if (gpu.flaps.size() > kMaxFlaps) gpu.flaps.erase(gpu.flaps.begin());
  auto recent = std::count_if(gpu.flaps.begin(), gpu.flaps.end(), [&](std::int64_t at) {
    return now_ns - at <= options_.flap_window_ns;
  });
  if (options_.flap_limit < 1 || recent < options_.flap_limit) return;
  open(gpu,
       make_cause(kCodeFlapping, Severity::kFatal, Probe::kOperator,
                  "find out why, then: berth agent forgive",
                  "the GPU went bad " + std::to_string(recent) + " times in a short while"),
       now_ns);
  note({gpu.uuid, 0, std::string(kCodeFlapping), "the GPU stays out until an operator forgives it",
        false, 0});
}

void HealthBook::settle(Gpu& gpu) {
  Verdict next;
  const Cause* first = nullptr;
  for (const auto& [code, cause] : gpu.causes) {
    if (first == nullptr || cause_order(cause) < cause_order(*first)) first = &cause;
    if (cause.driver_silent) next.known = false;
    if (cause.severity == Severity::kFatal) next.healthy = false;
  }
  if (first != nullptr) {
    next.severity = first->severity;
    next.code = first->code;
    next.action = first->action;
    next.text = first->text;
    next.heals = first->probe;
    next.since_ns = first->since_ns;
  }
  if (next == gpu.verdict) return;
  gpu.verdict = std::move(next);
  gpu.dirty = true;
}

std::vector<std::string> HealthBook::changed() {
  std::vector<Gpu*> dirty;
  for (auto& [uuid, gpu] : gpus_) {
    if (std::exchange(gpu.dirty, false)) dirty.push_back(&gpu);
  }
  std::stable_sort(dirty.begin(), dirty.end(),
                   [](const Gpu* a, const Gpu* b) { return a->index < b->index; });
  std::vector<std::string> out;
  for (const Gpu* gpu : dirty) out.push_back(gpu->uuid);
  return out;
}

std::vector<HealthBook::Gpu*> HealthBook::targets(const GpuEvent& event) {
  if (auto found = gpus_.find(event.uuid); found != gpus_.end()) return {&found->second};
  std::vector<Gpu*> out;
  if (!event.uuid.empty() && event.pci_bus_id.empty()) return out;
  for (auto& [uuid, gpu] : gpus_) {
    if (event.pci_bus_id.empty() ||
        without_function(event.pci_bus_id) == without_function(gpu.pci_bus_id)) {
      out.push_back(&gpu);
    }
  }
  return out;
}

std::vector<std::string> HealthBook::event(const GpuEvent& event, std::int64_t now_ns) {
  auto gpus = targets(event);
  if (gpus.empty() && event.kind == GpuEvent::Kind::kXid) {
    note({event.uuid, event.code, xid_code(event.code),
          "Xid " + std::to_string(event.code) + " of a GPU that is not known", false, event.pid});
  }
  for (Gpu* gpu : gpus) {
    if (event.kind == GpuEvent::Kind::kXid) {
      xid(*gpu, event, now_ns);
    } else {
      other(*gpu, event, now_ns);
    }
    settle(*gpu);
  }
  return changed();
}

void HealthBook::other(Gpu& gpu, const GpuEvent& event, std::int64_t now_ns) {
  auto cause = event_cause(event.kind);
  if (!cause) return;
  const bool repeat = gpu.causes.contains(cause->code);
  if (!repeat) note({gpu.uuid, 0, cause->code, cause->text, false, event.pid});
  if (cause->severity != Severity::kInfo) open(gpu, std::move(*cause), now_ns);
}

// False: the other source told of this one already.
bool HealthBook::count_xid(Gpu& gpu, const GpuEvent& event, std::int64_t now_ns) {
  auto& mine = event.from_kernel_log ? gpu.from_log : gpu.from_driver;
  auto& theirs = event.from_kernel_log ? gpu.from_driver : gpu.from_log;
  if (auto other = theirs.find(event.code); other != theirs.end()) {
    const bool same = within(other->second, now_ns, kDoubleNs);
    theirs.erase(other);
    if (same) return false;
  }
  if (mine.size() < kMaxCodes || mine.contains(event.code)) {
    mine[event.code] = std::max<std::int64_t>(now_ns, 1);
  }
  std::pair<std::string, int> key(gpu.uuid, event.code);
  auto counted = counts_.find(key);
  if (counted != counts_.end()) {
    ++counted->second;
  } else if (std::distance(counts_.lower_bound({gpu.uuid, 0}),
                           counts_.upper_bound({gpu.uuid, 99999})) <
             static_cast<std::ptrdiff_t>(kMaxCodes)) {
    counts_.emplace(std::move(key), 1);
  }
  return true;
}

void HealthBook::xid(Gpu& gpu, const GpuEvent& event, std::int64_t now_ns) {
  const int code = event.code;
  const bool first_told = count_xid(gpu, event, now_ns);
  gpu.last_xid = code;
  const XidFact* fact = find_xid(code);
  XidAction action = fact != nullptr ? fact->action : XidAction::kContactSupport;
  bool away = fact != nullptr && fact->takes_gpu_away;
  std::string text = "Xid " + std::to_string(code) + ": " +
                     std::string(fact != nullptr ? fact->text : "not in the catalogue");
  if (action == XidAction::kCheckLink) {
    LinkFault fault = decode_link_fault(code, event.detail);
    action = fault.action;
    if (!fault.text.empty()) text += " (" + std::string(fault.text) + ")";
    if (action == XidAction::kCheckLink && ++gpu.link_faults > kHarmlessLinkFaults) {
      action = XidAction::kResetGpu;
    }
    away = action == XidAction::kResetGpu;
  }
  if (code == 63 || code == 64) gpu.last_remap_ns = std::max<std::int64_t>(now_ns, 1);
  auto dbe = gpu.causes.find(xid_code(48));
  if (within(gpu.last_remap_ns, now_ns, kTogetherNs)) {
    if (code == 48) action = XidAction::kDrainAndReset;
    if (dbe != gpu.causes.end()) dbe->second.action = action_text(XidAction::kDrainAndReset);
  }
  const bool enabled = options_.fatal_xids.contains(code);
  const bool ignored = !enabled && (options_.xids_off || options_.ignored_xids.contains(code));
  if (code == 45 && within(gpu.last_other_xid_ns, now_ns, 60 * kSecondNs)) {
    text += ", follows another Xid";
  }
  if (code != 45) gpu.last_other_xid_ns = std::max<std::int64_t>(now_ns, 1);
  const bool blames = action == XidAction::kRestartApp || code == 43 || code == 45 || code == 109;
  away = enabled || (away && !ignored);
  if (first_told) note({gpu.uuid, code, xid_code(code), text, blames && !away, event.pid});
  if (first_told && repeats(gpu, event, now_ns)) {
    note({gpu.uuid, code, "Repeated" + xid_code(code),
          text + "; several processes failed this way: run a diagnosis of the GPU", false, 0});
  }
  if (code == 154 && !ignored) follow_driver(gpu, event.detail, now_ns);
  if (!away) return;
  if (enabled && (action == XidAction::kIgnore || action == XidAction::kRestartApp)) {
    action = XidAction::kResetGpu;
  }
  open(gpu,
       make_cause(xid_code(code), Severity::kFatal, Probe::kReset, action_text(action),
                  std::move(text)),
       now_ns);
}

void HealthBook::follow_driver(Gpu& gpu, std::string_view detail, std::int64_t now_ns) {
  const RecoveryAction wanted = decode_recovery(detail);
  if (wanted == RecoveryAction::kNone) return mark_reset(gpu);
  auto cause = recovery_cause(wanted);
  if (!cause) return;
  for (auto& [code, open_cause] : gpu.causes) open_cause.advised = true;
  open(gpu, std::move(*cause), now_ns);
}

}  // namespace berth::monitor
