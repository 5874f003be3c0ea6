#include "embedded/api/quota_book.h"

#include <algorithm>

#include "text/json.h"
#include "text/path.h"

namespace berth::sim::api {

using rules::Sums;
using text::Quantity;

namespace {

constexpr std::string_view kQuotas = "resourcequotas";
constexpr std::size_t kCountedAtOnce = 100;
constexpr std::size_t kWrittenAtOnce = 100;

std::string_view home_of(std::string_view key) { return key.substr(0, key.find('/')); }

std::string place_of(const Shelf& shelf, std::string_view key) {
  return shelf.name + "/" + std::string(key);
}

text::Document parsed(const ObjectPtr& object) {
  auto document =
      object ? text::parse_json(object->json) : Result<text::Document>(text::Document());
  return document.ok() ? std::move(document).value() : text::Document();
}

bool same_lines(const Sums& a, const Sums& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const auto& one, const auto& two) { return one.first == two.first; });
}

bool same_scopes(const Value& a, const Value& b) {
  return text::equal(text::at(a, "spec.scopes"), text::at(b, "spec.scopes")) &&
         text::equal(text::at(a, "spec.scopeSelector"), text::at(b, "spec.scopeSelector"));
}

Sums masked(const Sums& sums, const Sums& lines) {
  Sums out;
  for (const auto& [line, amount] : sums) {
    if (lines.contains(line)) out.emplace(line, amount);
  }
  return out;
}

}  // namespace

QuotaBook::QuotaBook(Storage& storage, Ports ports) : storage_(storage), ports_(std::move(ports)) {}

const Sums& QuotaBook::Quota::lines_of(std::string_view resource) const {
  if (const auto known = lines.find(resource); known != lines.end()) return known->second;
  Sums& out = lines[std::string(resource)];
  for (const auto& [line, most] : hard) {
    if (rules::counts_on(line, resource)) out.emplace(line, most);
  }
  return out;
}

void QuotaBook::start() {
  const Shelf* quotas = storage_.find_shelf(kQuotas);
  if (quotas == nullptr) return;
  for (const auto& [key, entry] : quotas->entries) quota_moved(key, entry.latest);
}

void QuotaBook::write_again() {
  for (const auto& [ns, home] : homes_) {
    for (const auto& [name, quota] : home) mark(ns + "/" + name);
  }
}

void QuotaBook::moved(const Shelf& shelf, const std::string& key, const ObjectPtr& latest) {
  if (shelf.name == kQuotas) {
    const bool known = has_quota(key);
    quota_moved(key, latest);
    // Quotas count quotas: one that is there and goes on being there takes what it took.
    if (known == (latest != nullptr)) return;
  }
  if (!homes_.empty() && rules::is_counted(shelf.name)) charge_all(shelf, key, latest);
}

bool QuotaBook::has_quota(std::string_view key) const {
  const auto home = homes_.find(home_of(key));
  return home != homes_.end() && home->second.contains(key.substr(home->first.size() + 1));
}

void QuotaBook::charge_all(const Shelf& shelf, const std::string& key, const ObjectPtr& latest) {
  const auto home = homes_.find(home_of(key));
  if (home == homes_.end() || key.find('/') == key.npos) return;
  text::Document document;
  if (latest && rules::takes_by_content(shelf.name)) document = parsed(latest);
  for (const auto& [name, quota] : home->second) {
    if (charge(*quota, shelf, key, latest, document.root())) mark(home->first + "/" + name);
  }
  if (latest && latest->terminating && shelf.name == "pods") await_end(shelf, key, document.root());
}

// Nothing else would tell when a pod that a lost node does not let go stops being charged.
void QuotaBook::await_end(const Shelf& pods, const std::string& key, const Value& pod) {
  const std::int64_t over_ns = rules::over_at(pod), left_ns = over_ns - ports_.now_ns();
  if (over_ns == INT64_MAX || left_ns < 0) return;
  const auto [awaited, fresh] = awaited_.emplace(key, over_ns);
  if (!fresh && awaited->second <= over_ns) return;
  awaited->second = over_ns;
  ports_.after(left_ns + 1, [this, at = &pods, key] {
    const auto due = awaited_.find(key);
    if (due == awaited_.end() || due->second > ports_.now_ns()) return;
    awaited_.erase(due);
    charge_all(*at, key, at->latest(key));
  });
}

void QuotaBook::quota_moved(const std::string& key, const ObjectPtr& latest) {
  const std::string ns(home_of(key));
  const std::string name = key.substr(ns.size() + 1);
  if (!latest) {
    const auto home = homes_.find(ns);
    if (home == homes_.end()) return;
    home->second.erase(name);
    if (home->second.empty()) homes_.erase(home);
    return;
  }
  std::shared_ptr<Quota>& quota = homes_[ns][name];
  text::Document document = parsed(latest);
  Sums hard = rules::read_sums(text::at(document.root(), "spec.hard"));
  // A status that somebody else writes stays until something is counted again.
  const bool as_before =
      quota && same_lines(quota->hard, hard) && same_scopes(quota->root(), document.root());
  if (!as_before) quota = std::make_shared<Quota>();
  const bool other_amounts = quota->hard != hard;
  quota->document = std::move(document);
  quota->hard = std::move(hard);
  quota->lines.clear();
  if (!as_before) return count(key, quota);
  if (other_amounts && quota->counted) mark(key);
}

void QuotaBook::count(const std::string& key, const std::shared_ptr<Quota>& quota) {
  quota->count = ++counts_;
  auto left = std::make_shared<std::vector<Uncounted>>();
  const std::string prefix = std::string(home_of(key)) + "/";
  for (const auto& [name, shelf] : storage_.shelves()) {
    if (!rules::is_counted(name)) continue;
    const Sums& lines = quota->lines_of(name);
    for (const auto& [line, most] : lines) quota->used.try_emplace(line);
    if (lines.empty()) continue;
    for (auto at = shelf->entries.lower_bound(prefix);
         at != shelf->entries.end() && at->first.starts_with(prefix); ++at) {
      left->push_back({shelf.get(), at->first});
    }
  }
  count_slice(key, quota, std::move(left), quota->count);
}

void QuotaBook::count_slice(const std::string& key, const std::shared_ptr<Quota>& quota,
                            std::shared_ptr<std::vector<Uncounted>> left, std::uint64_t number) {
  for (std::size_t i = 0; i < kCountedAtOnce && !left->empty(); ++i) {
    const Uncounted one = std::move(left->back());
    left->pop_back();
    const ObjectPtr latest = one.shelf->latest(one.key);
    text::Document document;
    if (latest && rules::takes_by_content(one.shelf->name)) document = parsed(latest);
    charge(*quota, *one.shelf, one.key, latest, document.root());
    if (latest && latest->terminating && one.shelf->name == "pods") {
      await_end(*one.shelf, one.key, document.root());
    }
  }
  if (left->empty()) {
    quota->counted = true;
    return mark(key);
  }
  // One that is replaced meanwhile is counted to its end, and nobody asks it.
  ports_.later([this, key, quota, left = std::move(left), number] {
    count_slice(key, quota, left, number);
  });
}

// What the object takes is taken, in the place of what it took before. Whether that is different.
bool QuotaBook::charge(Quota& quota, const Shelf& shelf, const std::string& key,
                       const ObjectPtr& latest, const Value& parsed) const {
  const Sums& lines = quota.lines_of(shelf.name);
  if (lines.empty()) return false;
  Sums takes;
  if (latest && rules::in_scopes(quota.root(), shelf.name, parsed)) {
    takes = masked(rules::usage_of(shelf.name, parsed, ports_.now_ns()), lines);
  }
  const std::string place = place_of(shelf, key);
  const auto took = quota.taken.find(place);
  if (took != quota.taken.end() ? took->second == takes : takes.empty()) return false;
  if (took != quota.taken.end()) {
    for (const auto& [line, amount] : took->second) quota.used[line] -= amount;
  }
  for (const auto& [line, amount] : takes) quota.used[line] += amount;
  if (takes.empty()) {
    quota.taken.erase(took);
  } else {
    quota.taken.insert_or_assign(place, std::move(takes));
  }
  return quota.counted;
}

std::string QuotaBook::refusal(const Shelf& shelf, std::string_view ns, const Value& object,
                               const Value& before) const {
  const auto home = homes_.find(ns);
  if (home == homes_.end() || !rules::is_counted(shelf.name)) return {};
  std::vector<const Home::value_type*> asked;
  for (const auto& one : home->second) {
    const Quota& quota = *one.second;
    const Sums& lines = quota.lines_of(shelf.name);
    const bool counts =
        quota.counted && !lines.empty() && rules::in_scopes(quota.root(), shelf.name, object);
    if (!counts) continue;
    if (shelf.name == "pods") {
      std::string words = rules::unstated(one.first, lines, object["spec"]);
      if (!words.empty()) return words;
    }
    asked.push_back(&one);
  }
  if (asked.empty()) return {};
  const Sums takes = rules::usage_of(shelf.name, object, ports_.now_ns());
  for (const auto* one : asked) {
    const Quota& quota = *one->second;
    Sums more = masked(takes, quota.hard);
    if (!before.is_null() && rules::in_scopes(quota.root(), shelf.name, before)) {
      for (const auto& [line, amount] : rules::usage_of(shelf.name, before, ports_.now_ns())) {
        const auto found = more.find(line);
        if (found != more.end()) found->second -= amount;
      }
    }
    std::erase_if(more, [](const auto& each) { return each.second <= Quantity(); });
    std::string words = rules::exceeded(one->first, quota.hard, quota.used, more);
    if (!words.empty()) return words;
  }
  return {};
}

void QuotaBook::mark(const std::string& key) {
  const bool first = stale_.empty();
  stale_.insert(key);
  if (first) ports_.later([this] { flush(); });
}

void QuotaBook::flush() {
  for (std::size_t i = 0; i < kWrittenAtOnce && !stale_.empty(); ++i) {
    const std::string key = stale_.extract(stale_.begin()).value();
    const auto home = homes_.find(home_of(key));
    if (home == homes_.end()) continue;
    const auto quota = home->second.find(std::string_view(key).substr(home->first.size() + 1));
    if (quota == home->second.end() || !quota->second->counted) continue;
    ports_.write(key, quota->second->hard, quota->second->used);
  }
  if (!stale_.empty()) ports_.later([this] { flush(); });
}

}  // namespace berth::sim::api
