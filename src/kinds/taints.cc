// Taints and tolerations.
#include "kinds/affinity.h"
#include "kinds/names.h"

namespace berth::kinds {

namespace {

using model::Taint;
using model::TaintEffect;
using model::Toleration;
using text::Decoder;
using text::Value;

constexpr std::pair<std::string_view, TaintEffect> kEffects[] = {
    {"NoSchedule", TaintEffect::kNoSchedule},
    {"PreferNoSchedule", TaintEffect::kPreferNoSchedule},
    {"NoExecute", TaintEffect::kNoExecute},
};

constexpr text::Field<Taint> kTaintFields[] = {
    text::required(text::field<&Taint::key>("key")),
    text::field<&Taint::value>("value"),
    text::required(text::field<&Taint::effect, text::one_of<kEffects>>("effect")),
    text::skip<Taint>("timeAdded"),
};

enum class RawOp : std::uint8_t { kEqual, kExists, kNumeric };
constexpr std::pair<std::string_view, RawOp> kOps[] = {
    {"Equal", RawOp::kEqual}, {"Exists", RawOp::kExists}, {"", RawOp::kEqual},
    {"Lt", RawOp::kNumeric},  {"Gt", RawOp::kNumeric},
};

struct RawToleration {
  std::string key, value;
  RawOp op = RawOp::kEqual;
  std::optional<TaintEffect> effect;
  bool seconds = false;
};

void read_effect(const Value& v, std::optional<TaintEffect>& out, Decoder& d) {
  if (v.is_string() && v.string().empty()) return;  // every effect
  TaintEffect effect = TaintEffect::kNoSchedule;
  const std::size_t before = d.errors();
  text::one_of<kEffects>(v, effect, d);
  if (d.errors() == before) out = effect;
}

constexpr text::Field<RawToleration> kTolerationFields[] = {
    text::field<&RawToleration::key>("key"),
    text::field<&RawToleration::op, text::one_of<kOps>>("operator"),
    text::field<&RawToleration::value>("value"),
    text::field<&RawToleration::effect, read_effect>("effect"),
    text::field<&RawToleration::seconds, is_present>("tolerationSeconds"),
};

void read_raw(const Value& v, RawToleration& out, Decoder& d) {
  const std::size_t before = d.errors();
  decode_object(v, kTolerationFields, out, d);
  if (d.errors() != before) return;
  if (out.key.empty() && out.op != RawOp::kExists) {
    d.error(v, "no key", "a key, or the operator Exists (which tolerates every key)");
  }
  if (!out.key.empty() && !is_qualified_name(out.key)) {
    Decoder::Step step(d, "key");
    d.error(v, quoted(out.key), "a taint key");
  }
  if (out.op == RawOp::kExists && !out.value.empty()) {
    Decoder::Step step(d, "value");
    d.error(v, quoted(out.value), "no value with the operator Exists");
  }
  if (out.seconds && out.effect != TaintEffect::kNoExecute) {
    Decoder::Step step(d, "tolerationSeconds");
    d.error(v, "tolerationSeconds", "the effect NoExecute with it");
  }
  if (out.op == RawOp::kNumeric) {
    Decoder::Step step(d, "operator");
    d.warning(v, "Lt or Gt; the toleration is left out", "Equal or Exists");
  }
}

}  // namespace

void read_taint(const Value& v, Taint& out, Decoder& d) { decode_object(v, kTaintFields, out, d); }

void read_tolerations(const Value& v, std::vector<Toleration>& out, Decoder& d) {
  std::vector<RawToleration> raws;
  list_of<read_raw>(v, raws, d);
  for (RawToleration& raw : raws) {
    if (raw.op == RawOp::kNumeric) continue;
    out.push_back(
        {.key = std::move(raw.key),
         .op = raw.op == RawOp::kExists ? Toleration::Op::kExists : Toleration::Op::kEqual,
         .value = std::move(raw.value),
         .effect = raw.effect});
  }
}

}  // namespace berth::kinds
