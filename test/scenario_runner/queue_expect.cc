#include "queue_expect.h"

#include <algorithm>
#include <limits>

#include "line_words.h"
#include "queue_shorthand.h"
#include "text/quantity.h"

namespace berth::scenario {

namespace {

using Kind = Expectation::Kind;
using Words = std::vector<std::string>;
using Mismatch = std::optional<std::string>;

constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max();

// ---- reading ----

// NAME admitted|reserved [on FLAVOR ...] [with N pods] [replacing OTHER]
Status read_admitted(const Words& w, Expectation& e) {
  e.kind = Kind::kAdmitted;
  e.name = w[0];
  e.word = w[1];
  std::size_t at = 2;
  if (at < w.size() && w[at] == "on") {
    for (++at; at < w.size() && w[at] != "with" && w[at] != "replacing"; ++at) {
      e.names.push_back(w[at]);
    }
    if (e.names.empty()) return invalid("want a flavor after \"on\"");
  }
  if (at + 3 <= w.size() && w[at] == "with" && number_of(w[at + 1])) {
    e.number = *number_of(w[at + 1]);
    at += 3;
  }
  if (at + 2 == w.size() && w[at] == "replacing") {
    e.reason = w[at + 1];
    at += 2;
  }
  if (at == w.size()) return {};
  return invalid("want \"NAME admitted\", and maybe \"on FLAVOR\" and \"with 2 pods\"");
}

// NAME evicted [by OTHER] [REASON]
Status read_evicted(const Words& w, Expectation& e) {
  e.kind = Kind::kEvicted;
  e.name = w[0];
  std::size_t at = 2;
  if (at + 1 < w.size() && w[at] == "by") {
    e.names = {w[at + 1]};
    at += 2;
  }
  if (at < w.size()) e.reason = w[at++];
  if (at == w.size()) return {};
  return invalid("want \"NAME evicted\", and maybe \"by OTHER\" and a reason");
}

// NAME domains [of SET] r1=2 r2=1
Status read_domains(const Words& w, Expectation& e) {
  e.kind = Kind::kDomains;
  e.name = w[0];
  std::size_t at = 2;
  if (at + 1 < w.size() && w[at] == "of") {
    e.word = w[at + 1];
    at += 2;
  }
  e.names.assign(w.begin() + static_cast<std::ptrdiff_t>(at), w.end());
  if (e.names.empty()) return invalid("want domains and their pods such as \"r1=2\"");
  std::sort(e.names.begin(), e.names.end());
  return {};
}

// queue NAME uses|available|could use 8 GPUs [of FLAVOR]
Status read_queue_amount(const Words& w, std::size_t at, Expectation& e) {
  const AmountWords amount = amount_words(w, at);
  if (amount.words == 0) return invalid("want an amount such as \"8 GPUs\" or \"cpu 4\"");
  e.reason = amount.resource;
  e.names = {amount.amount};
  at += amount.words;
  if (at + 2 == w.size() && w[at] == "of") {
    e.text = w[at + 1];
    at += 2;
  }
  if (at == w.size()) return {};
  return invalid("want \"of FLAVOR\" or nothing after the amount");
}

Status read_queue_line(const Words& w, const std::string& text, Expectation& e) {
  e.kind = Kind::kQueue;
  if (w.size() < 3) return invalid("want what holds for the queue");
  e.name = w[1];
  e.word = w[2];
  if (w[2] == "uses" || w[2] == "available") return read_queue_amount(w, 3, e);
  if (w[2] == "could" && w.size() > 3 && w[3] == "use") return read_queue_amount(w, 4, e);
  const bool counts = w[2] == "share" || w[2] == "pending" || w[2] == "admits";
  if (counts && w.size() == 4 && (number_of(w[3]) || w[3] == "infinite")) {
    e.names = {w[3]};
    return {};
  }
  if (w.size() == 3 && (w[2] == "borrows" || w[2] == "active" || w[2] == "inactive")) {
    e.text = text;
    return {};
  }
  if (w.size() == 5 && w[2] == "does" && w[3] == "not" && w[4] == "borrow") return {};
  return invalid(
      "want \"queue NAME uses 8 GPUs\", \"available ...\", \"could use ...\", \"share 250\", "
      "\"borrows\", \"does not borrow\", \"pending 2\", \"admits 2\", \"active\" or \"inactive\"");
}

// ---- holding ----

std::string listed_words(const Words& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : " ") + word;
  return out.empty() ? "nothing" : out;
}

const model::Admission* admission_in(const Observed& seen, const std::string& name) {
  const model::Admission* out = nullptr;
  for (const model::Admission& admission : seen.admissions) {
    if (admission.workload == name) out = &admission;
  }
  return out;
}

std::string told(const Observed& seen, const std::string& name) {
  std::string out;
  if (const model::Admission* a = admission_in(seen, name)) {
    out = a->checks.empty() ? "admitted" : "reserved";
    for (const auto& set : a->pod_sets) {
      out += ' ' + set.name + " x " + std::to_string(set.count);
      for (const auto& [resource, flavor] : set.flavors) out += ' ' + resource + '=' + flavor;
    }
  }
  for (const model::Eviction& eviction : seen.evictions) {
    if (eviction.workload != name) continue;
    out += (out.empty() ? "" : "; ") + ("evicted " + eviction.reason) + " by " + eviction.by;
  }
  const auto pending = seen.pending.find(name);
  if (pending != seen.pending.end()) {
    out += (out.empty() ? "" : "; ") + std::string(model::name(pending->second.verdict)) + ' ' +
           std::string(model::name(pending->second.reason)) + " (" + pending->second.message + ")";
  }
  return out.empty() ? "neither admitted nor evicted nor waiting" : out;
}

Mismatch admitted(const Expectation& e, const Observed& seen) {
  const model::Admission* a = admission_in(seen, e.name);
  const auto pending = seen.pending.find(e.name);
  const bool waits = pending != seen.pending.end();
  const bool reserved =
      waits && pending->second.reason == model::Reason::kUnsatisfiedAdmissionChecks;
  if (a == nullptr || (e.word == "admitted" ? waits : !reserved)) return told(seen, e.name);
  std::set<std::string> flavors;
  int pods = 0;
  for (const auto& set : a->pod_sets) {
    pods += set.count;
    for (const auto& [resource, flavor] : set.flavors) flavors.insert(flavor);
  }
  if (e.number >= 0 && pods != e.number) return "with " + std::to_string(pods) + " pods";
  if (!e.reason.empty() && a->replaces != e.reason) {
    return a->replaces.empty() ? std::string("replacing nothing") : "replacing " + a->replaces;
  }
  const std::set<std::string> wanted(e.names.begin(), e.names.end());
  if (wanted.empty() || wanted == flavors) return std::nullopt;
  return "on " + listed_words(Words(flavors.begin(), flavors.end()));
}

Mismatch evicted(const Expectation& e, const Observed& seen) {
  for (const model::Eviction& eviction : seen.evictions) {
    if (eviction.workload != e.name) continue;
    if (!e.names.empty() && eviction.by != e.names[0]) continue;
    if (e.reason.empty() || eviction.reason == e.reason) return std::nullopt;
  }
  return told(seen, e.name);
}

Mismatch domains(const Expectation& e, const Observed& seen) {
  const model::Admission* a = admission_in(seen, e.name);
  if (a == nullptr) return told(seen, e.name);
  std::map<std::string, int> counts;
  for (const auto& set : a->pod_sets) {
    if (!set.topology || (!e.word.empty() && set.name != e.word)) continue;
    for (const auto& domain : set.topology->domains) {
      counts[domain.values.back()] += domain.count;
    }
  }
  Words found;
  for (const auto& [domain, count] : counts) found.push_back(domain + '=' + std::to_string(count));
  std::sort(found.begin(), found.end());
  if (found == e.names) return std::nullopt;
  return "domains " + listed_words(found);
}

std::string shown(const std::string& resource, std::int64_t amount) {
  if (amount == kUnlimited) return "unlimited";
  return resource == "cpu" ? std::to_string(amount) + "m" : std::to_string(amount);
}

Mismatch queue_amount(const Expectation& e, const model::QueueUse& queue) {
  std::int64_t sum = 0;
  bool any = false;
  for (const auto& cell : queue.cells) {
    if (cell.resource != e.reason || (!e.text.empty() && cell.flavor != e.text)) continue;
    const std::int64_t part = e.word == "uses"        ? cell.used
                              : e.word == "available" ? cell.available
                                                      : cell.potential;
    sum = sum == kUnlimited || part == kUnlimited ? kUnlimited : sum + part;
    any = true;
  }
  if (!any) return "no quota for " + e.reason + (e.text.empty() ? "" : " of " + e.text);
  std::int64_t wanted = kUnlimited;
  if (e.names[0] != "unlimited") {
    const auto quantity = text::parse_quantity(e.names[0]);
    if (!quantity.ok()) return "no amount: " + e.names[0];
    wanted = e.reason == "cpu" ? quantity->milli_value() : quantity->value();
  }
  if (sum == wanted) return std::nullopt;
  return shown(e.reason, sum);
}

Mismatch queue_line(const Expectation& e, const Observed& seen) {
  const auto it = std::find_if(seen.queues.begin(), seen.queues.end(),
                               [&](const model::QueueUse& q) { return q.name == e.name; });
  if (it == seen.queues.end()) return "no queue " + e.name;
  if (e.word == "uses" || e.word == "available" || e.word == "could") return queue_amount(e, *it);
  if (e.word == "share" || e.word == "pending" || e.word == "admits") {
    const std::int64_t found = e.word == "share"     ? it->weighted_share
                               : e.word == "pending" ? it->pending
                                                     : it->admitted;
    const std::int64_t wanted = e.names[0] == "infinite" ? kUnlimited : *number_of(e.names[0]);
    if (found == wanted) return std::nullopt;
    return e.word + ' ' + (found == kUnlimited ? "infinite" : std::to_string(found));
  }
  if (e.word == "borrows" || e.word == "does") {
    if (it->borrowing == (e.word == "borrows")) return std::nullopt;
    return it->borrowing ? "borrows" : "does not borrow";
  }
  const bool active = it->inactive.empty();
  const bool right = active == (e.word == "active");
  if (right && it->inactive.find(e.text) != std::string::npos) return std::nullopt;
  return active ? "active" : "inactive: " + it->inactive;
}

Mismatch position(const Expectation& e, const Observed& seen) {
  const auto pending = seen.pending.find(e.name);
  if (pending == seen.pending.end()) return told(seen, e.name);
  if (pending->second.position == e.number) return std::nullopt;
  return "position " + std::to_string(pending->second.position);
}

}  // namespace

Result<bool> read_queue_expectation(const Words& w, const std::string& text, Expectation& e) {
  if (w.size() >= 2 && w[0] == "queue") {
    BERTH_CHECK(read_queue_line(w, text, e));
    return true;
  }
  if (w.size() >= 2 && (w[0] == "admitted" || w[0] == "evicted")) {
    e.kind = w[0] == "admitted" ? Kind::kAdmissions : Kind::kEvictions;
    if (w[1] != "nothing") e.names.assign(w.begin() + 1, w.end());
    return true;
  }
  if (w.size() < 2 || w[0].find('/') == std::string::npos) return false;
  if (w[1] == "admitted" || w[1] == "reserved") {
    BERTH_CHECK(read_admitted(w, e));
  } else if (w[1] == "evicted") {
    BERTH_CHECK(read_evicted(w, e));
  } else if (w[1] == "domains") {
    BERTH_CHECK(read_domains(w, e));
  } else if (w[1] == "position" && w.size() == 3 && number_of(w[2])) {
    e.kind = Kind::kPosition;
    e.name = w[0];
    e.number = *number_of(w[2]);
  } else {
    return false;
  }
  return true;
}

Mismatch check_queue_expectation(const Expectation& e, const Observed& seen) {
  switch (e.kind) {
    case Kind::kAdmitted:
      return admitted(e, seen);
    case Kind::kEvicted:
      return evicted(e, seen);
    case Kind::kDomains:
      return domains(e, seen);
    case Kind::kPosition:
      return position(e, seen);
    case Kind::kQueue:
      return queue_line(e, seen);
    default:
      break;
  }
  Words found;
  if (e.kind == Kind::kAdmissions) {  // in their order
    for (const auto& admission : seen.admissions) found.push_back(admission.workload);
    if (found == e.names) return std::nullopt;
    return "admitted " + listed_words(found);
  }
  for (const auto& eviction : seen.evictions) found.push_back(eviction.workload);
  if (std::set<std::string>(found.begin(), found.end()) ==
      std::set<std::string>(e.names.begin(), e.names.end())) {
    return std::nullopt;
  }
  return "evicted " + listed_words(found);
}

}  // namespace berth::scenario
