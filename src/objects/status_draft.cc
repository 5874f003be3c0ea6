#include "objects/status_draft.h"

#include <algorithm>
#include <charconv>

#include "text/json.h"
#include "text/rfc3339.h"

namespace berth::objects {

namespace {

constexpr std::size_t kLongestMessage = 32'768;
constexpr std::int64_t kWholeSecond = 1'000'000'000;

std::string text_at(const text::Value& v, std::string_view key) {
  const text::Value* found = v.find(key);
  return found == nullptr ? std::string() : std::string(found->string());
}
std::int64_t number_at(const text::Value* v) {
  std::int64_t out = 0;
  if (v == nullptr) return 0;
  const std::string_view text = v->number_text();
  std::from_chars(text.data(), text.data() + text.size(), out);
  return out;
}

bool says_the_same(const text::Value& a, const text::Value& b) {
  if (a.kind() != b.kind() || a.size() != b.size()) return false;
  if (a.is_array()) {
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (!says_the_same(a.items()[i], b.items()[i])) return false;
    }
    return true;
  }
  if (a.is_object()) {
    return std::all_of(a.members().begin(), a.members().end(), [&](const text::Member& member) {
      const text::Value* other = b.find(member.key);
      return other != nullptr && says_the_same(member.value, *other);
    });
  }
  if (a.is_string()) return a.string() == b.string();
  if (a.is_number()) return a.number_text() == b.number_text();
  return a.as_bool() == b.as_bool();
}

}  // namespace

StatusDraft::StatusDraft(const text::Value& object, std::int64_t now_ns) : now_ns_(now_ns) {
  const text::Value* meta = object.find("metadata");
  if (meta != nullptr) generation_ = number_at(meta->find("generation"));
  status_ = object.find("status");
  if (status_ == nullptr || !status_->is_object()) status_ = nullptr;
  const text::Value* list = old("conditions");
  if (list != nullptr && list->is_array()) {
    for (const text::Value& item : list->items()) {
      conditions_.push_back({.type = text_at(item, "type"),
                             .reason = text_at(item, "reason"),
                             .message = text_at(item, "message"),
                             .since = text_at(item, "lastTransitionTime"),
                             .on = text_at(item, "status") == "True",
                             .generation = number_at(item.find("observedGeneration"))});
    }
  }
}

const StatusDraft::Condition* StatusDraft::find(std::string_view type) const {
  const auto it = std::find_if(conditions_.begin(), conditions_.end(),
                               [&](const Condition& c) { return c.type == type; });
  return it == conditions_.end() ? nullptr : &*it;
}

bool StatusDraft::is_true(std::string_view type) const {
  const Condition* condition = find(type);
  return condition != nullptr && condition->on;
}

void StatusDraft::set(std::string_view type, bool on, std::string_view reason,
                      std::string_view message) {
  Condition* condition = const_cast<Condition*>(find(type));
  if (condition == nullptr) {
    conditions_.push_back({.type = std::string(type), .since = now()});
    condition = &conditions_.back();
  } else if (condition->on != on) {
    condition->since = now();
  }
  std::string_view cut = message.substr(0, kLongestMessage);
  while (cut.size() < message.size() && !cut.empty() && (cut.back() & 0xC0) == 0x80) {
    cut.remove_suffix(1);  // not in the middle of a character
  }
  const bool same = condition->on == on && condition->reason == reason && condition->message == cut;
  condition->on = on;
  condition->reason = reason;
  condition->message = cut;
  if (!same) condition->generation = generation_;
}

const text::Value* StatusDraft::old(std::string_view field) const {
  return status_ == nullptr ? nullptr : status_->find(field);
}

void StatusDraft::put(std::string_view field, std::string json) {
  fields_.insert_or_assign(std::string(field), std::move(json));
}

void StatusDraft::drop(std::string_view field) { put(field, ""); }

std::string StatusDraft::now() const {
  return text::format_rfc3339(now_ns_ / kWholeSecond * kWholeSecond);
}

std::string StatusDraft::write() const {
  text::JsonWriter out;
  out.begin_object();
  if (status_ != nullptr) {
    for (const text::Member& member : status_->members()) {
      if (member.key == "conditions" || fields_.contains(member.key)) continue;
      out.field(member.key, member.value);
    }
  }
  for (const auto& [field, json] : fields_) {
    if (json.empty()) continue;
    out.key(field);
    out.raw(json);
  }
  if (!conditions_.empty()) {
    out.key("conditions");
    out.begin_array();
    for (const Condition& condition : conditions_) {
      out.begin_object();
      out.field("type", condition.type);
      out.field("status", condition.on ? "True" : "False");
      out.field("reason", condition.reason);
      out.field("message", condition.message);
      out.field("lastTransitionTime", condition.since);
      if (condition.generation > 0) out.field("observedGeneration", condition.generation);
      out.end_object();
    }
    out.end_array();
  }
  out.end_object();
  std::string text = std::move(out).take();
  if (status_ == nullptr) return text == "{}" ? std::string() : text;
  const auto document = text::parse_json(text);
  return document.ok() && says_the_same(*status_, document->root()) ? std::string() : text;
}

}  // namespace berth::objects
