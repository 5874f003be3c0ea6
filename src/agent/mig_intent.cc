#include "agent/mig_intent.h"

#include <utility>

#include "text/decode.h"
#include "text/json.h"
#include "text/json_writer.h"

namespace berth::agent {

namespace {

using text::Decoder;
using text::Value;

constexpr text::Field<partition::MigWish> kWishFields[] = {
    text::required(text::field<&partition::MigWish::enabled>("enabled")),
    text::required(text::field<&partition::MigWish::devices>("devices")),
};

void read_wishes(const Value& v, MigIntent& out, Decoder& d) {
  if (!v.is_object()) return d.mismatch(v, "GPUs by UUID");
  for (const text::Member& member : v.members()) {
    const Decoder::Step step(d, member.key);
    decode_object(member.value, kWishFields, out.before[std::string(member.key)], d);
  }
}

void read_intent_version(const Value& v, MigIntent&, Decoder& d) {
  std::int64_t version = 0;
  text::decode_int(v, 1, 1, version, d);
}

constexpr text::Field<MigIntent> kIntentFields[] = {
    text::required(text::custom<MigIntent>("version", read_intent_version)),
    text::required(text::field<&MigIntent::layout>("layout")),
    text::required(text::custom<MigIntent>("before", read_wishes)),
};

}  // namespace

std::string write_intent(const MigIntent& intent) {
  text::JsonWriter out({.indent = 2});
  out.object([&] {
    out.field("version", 1);
    out.field("layout", intent.layout);
    out.object("before", [&] {
      for (const auto& [uuid, wish] : intent.before) {
        out.object(uuid, [&] {
          out.field("enabled", wish.enabled);
          out.object("devices", [&] {
            for (const auto& [profile, count] : wish.devices) out.field(profile, count);
          });
        });
      }
    });
  });
  return std::move(out).take() + "\n";
}

Result<MigIntent> read_intent(std::string_view text) {
  BERTH_TRY(const text::Document document, text::parse_json(text));
  Decoder d;
  MigIntent out;
  decode_object(document.root(), kIntentFields, out, d);
  if (!d.ok()) return d.to_error();
  return out;
}

}  // namespace berth::agent
