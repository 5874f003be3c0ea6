#include "node/partition/mig_words.h"

#include <algorithm>
#include <array>
#include <utility>

#include "kinds/readers.h"
#include "text/decode.h"
#include "text/json.h"
#include "text/json_writer.h"

namespace berth::partition {

namespace {

using text::Decoder;
using text::Value;
using Kind = MigStep::Kind;

constexpr std::size_t kMaxComputeNames = 64, kMaxGpus = 64, kMaxCutsTold = 64, kMaxStarts = 64;
constexpr int kMaxSlot = 63, kMaxInstanceId = 100'000;

constexpr std::array<std::pair<std::string_view, Kind>, 5> kVerbs = {
    {{"mig-mode-on", Kind::kModeOn},
     {"mig-mode-off", Kind::kModeOff},
     {"mig-destroy", Kind::kDestroy},
     {"mig-create", Kind::kCreate},
     {"mig-fill", Kind::kFill}}};
constexpr std::string_view kListVerb = "mig-list";

constexpr std::array<std::pair<std::string_view, Code>, 6> kCodes = {
    {{"invalid", Code::kInvalid},
     {"not-found", Code::kNotFound},
     {"conflict", Code::kConflict},
     {"exhausted", Code::kExhausted},
     {"unavailable", Code::kUnavailable},
     {"internal", Code::kInternal}}};

// UUIDs of the driver: letters, digits, '-' and '/' (older instances).
void read_uuid(const Value& v, std::string& out, Decoder& d) {
  const std::string_view text = v.is_string() ? v.string() : std::string_view();
  const bool plain = std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '/';
  });
  if (text.empty() || text.size() > 96 || !plain) {
    return d.mismatch(v, "a UUID of 1..96 letters, digits, - or /");
  }
  out = text;
}

// "1g.18gb+me"
void read_profile(const Value& v, std::string& out, Decoder& d) {
  const std::string_view text = v.is_string() ? v.string() : std::string_view();
  const bool plain = std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '+' || c == '-';
  });
  if (text.empty() || text.size() > 32 || !plain) {
    return d.mismatch(v, "a MIG profile such as 1g.18gb");
  }
  out = text;
}

template <auto Reader, std::size_t Most>
inline constexpr auto bounded_list = [](const Value& v, auto& out, Decoder& d) {
  if (!v.is_array() || v.size() > Most) {
    return d.mismatch(v, "a list of at most " + std::to_string(Most));
  }
  kinds::list_of<Reader>(v, out, d);
};

using S = MigStep;
constexpr auto kStart =
    text::required(text::field<&S::start, text::int_between<0, kMaxSlot>>("start"));
constexpr auto kInstance =
    text::required(text::field<&S::instance, text::int_between<0, kMaxInstanceId>>("instance"));
constexpr auto kGpu = text::required(text::field<&S::gpu, read_uuid>("gpu"));
constexpr auto kProfile = text::required(text::field<&S::profile, read_profile>("profile"));
constexpr auto kVerb = text::skip<S>("verb");

constexpr text::Field<S> kModeFields[] = {kVerb, kGpu};
constexpr text::Field<S> kCreateFields[] = {kVerb, kGpu, kProfile, kStart};
constexpr text::Field<S> kFillFields[] = {kVerb, kGpu, kProfile, kStart, kInstance};
constexpr text::Field<S> kDestroyFields[] = {
    kVerb,
    kGpu,
    kProfile,
    kStart,
    kInstance,
    text::required(text::field<&S::compute, bounded_list<read_uuid, kMaxComputeNames>>("compute"))};

std::span<const text::Field<S>> fields_of(Kind kind) {
  switch (kind) {
    case Kind::kModeOn:
    case Kind::kModeOff:
      return kModeFields;
    case Kind::kCreate:
      return kCreateFields;
    case Kind::kFill:
      return kFillFields;
    case Kind::kDestroy:
      return kDestroyFields;
  }
  return {};
}

// ---- answers: written by our own helper, read with the same care ----

constexpr text::Field<MigProfile> kProfileFields[] = {
    text::required(text::field<&MigProfile::name, read_profile>("name")),
    text::required(text::field<&MigProfile::slices, text::int_between<1, 64>>("slices")),
    text::required(text::field<&MigProfile::slots, text::int_between<1, 64>>("slots")),
    text::required(
        text::field<&MigProfile::starts, bounded_list<text::int_between<0, kMaxSlot>, kMaxStarts>>(
            "starts")),
    text::required(text::field<&MigProfile::most, text::int_between<0, 64>>("most")),
    text::field<&MigProfile::memory_mib, text::int_between<0, 100'000'000>>("memoryMiB"),
    text::field<&MigProfile::multiprocessors, text::int_between<0, 100'000>>("multiprocessors"),
};
void read_profile_object(const Value& v, MigProfile& out, Decoder& d) {
  decode_object(v, kProfileFields, out, d);
}

constexpr text::Field<MigCut::Compute> kComputeFields[] = {
    text::required(text::field<&MigCut::Compute::id, text::int_between<0, kMaxInstanceId>>("id")),
    text::required(text::field<&MigCut::Compute::slices, text::int_between<0, 64>>("slices")),
    text::required(text::field<&MigCut::Compute::uuid>("uuid")),
};
void read_compute(const Value& v, MigCut::Compute& out, Decoder& d) {
  decode_object(v, kComputeFields, out, d);
}

constexpr text::Field<MigCut> kCutFields[] = {
    text::required(text::field<&MigCut::id, text::int_between<0, kMaxInstanceId>>("id")),
    text::required(text::field<&MigCut::profile, read_profile>("profile")),
    text::required(text::field<&MigCut::start, text::int_between<0, kMaxSlot>>("start")),
    text::required(text::field<&MigCut::slots, text::int_between<1, 64>>("slots")),
    text::required(
        text::field<&MigCut::compute, bounded_list<read_compute, kMaxComputeNames>>("compute")),
};
void read_cut(const Value& v, MigCut& out, Decoder& d) { decode_object(v, kCutFields, out, d); }

constexpr text::Field<MigGpu> kGpuFields[] = {
    text::required(text::field<&MigGpu::uuid, read_uuid>("uuid")),
    text::required(text::field<&MigGpu::index, text::int_between<0, model::kMaxGpuIndex>>("index")),
    text::field<&MigGpu::name>("name"),
    text::field<&MigGpu::pci_device>("pciDevice"),
    text::required(text::field<&MigGpu::capable>("capable")),
    text::required(text::field<&MigGpu::enabled>("enabled")),
    text::field<&MigGpu::mode_pending>("modePending"),
    text::custom<MigGpu>("slices",
                         [](const Value& v, MigGpu& out, Decoder& d) {
                           text::int_between<0, 64>(v, out.geometry.slices, d);
                         }),
    text::custom<MigGpu>("slots",
                         [](const Value& v, MigGpu& out, Decoder& d) {
                           text::int_between<0, 64>(v, out.geometry.slots, d);
                         }),
    text::custom<MigGpu>("profiles",
                         [](const Value& v, MigGpu& out, Decoder& d) {
                           bounded_list<read_profile_object, 64>(v, out.geometry.profiles, d);
                         }),
    text::field<&MigGpu::cuts, bounded_list<read_cut, kMaxCutsTold>>("instances"),
};
void read_gpu(const Value& v, MigGpu& out, Decoder& d) { decode_object(v, kGpuFields, out, d); }

void write_gpu(const MigGpu& gpu, text::JsonWriter& out) {
  out.object([&] {
    out.field("uuid", gpu.uuid);
    out.field("index", gpu.index);
    out.field("name", gpu.name);
    out.field("pciDevice", gpu.pci_device);
    out.field("capable", gpu.capable);
    out.field("enabled", gpu.enabled);
    out.field("modePending", gpu.mode_pending);
    out.field("slices", gpu.geometry.slices);
    out.field("slots", gpu.geometry.slots);
    out.array("profiles", [&] {
      for (const MigProfile& profile : gpu.geometry.profiles) {
        out.object([&] {
          out.field("name", profile.name);
          out.field("slices", profile.slices);
          out.field("slots", profile.slots);
          out.array("starts", [&] {
            for (const int start : profile.starts) out.value(start);
          });
          out.field("most", profile.most);
          out.field("memoryMiB", profile.memory_mib);
          out.field("multiprocessors", profile.multiprocessors);
        });
      }
    });
    out.array("instances", [&] {
      for (const MigCut& cut : gpu.cuts) {
        out.object([&] {
          out.field("id", cut.id);
          out.field("profile", cut.profile);
          out.field("start", cut.start);
          out.field("slots", cut.slots);
          out.array("compute", [&] {
            for (const MigCut::Compute& one : cut.compute) {
              out.object([&] {
                out.field("id", one.id);
                out.field("slices", one.slices);
                out.field("uuid", one.uuid);
              });
            }
          });
        });
      }
    });
  });
}

std::string write_error(const Error& error) {
  text::JsonWriter out;
  out.object([&] {
    out.field("ok", false);
    for (const auto& [word, code] : kCodes) {
      if (code == error.code()) out.field("code", word);
    }
    out.field("error", error.to_string());
  });
  return std::move(out).take() + "\n";
}

Error told_error(const Value& root) {
  const Value* word = root.find("code");
  const Value* said = root.find("error");
  Code code = Code::kUnavailable;
  for (const auto& [spelled, one] : kCodes) {
    if (word != nullptr && word->is_string() && word->string() == spelled) code = one;
  }
  std::string text(said != nullptr && said->is_string() ? said->string() : "no reason given");
  if (text.size() > 1'024) {
    std::size_t end = 1'024;  // not in the middle of a character
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
    text.resize(end);
  }
  return {code, std::move(text)};
}

}  // namespace

std::string write_request(const HelperRequest& request) {
  text::JsonWriter out;
  out.object([&] {
    if (!request.step) {
      out.field("verb", kListVerb);
    } else {
      const MigStep& step = *request.step;
      out.field("verb", name(step.kind));
      out.field("gpu", step.gpu);
      if (step.kind != Kind::kModeOn && step.kind != Kind::kModeOff) {
        out.field("profile", step.profile);
        out.field("start", step.start);
      }
      if (step.kind == Kind::kFill || step.kind == Kind::kDestroy) {
        out.field("instance", step.instance);
      }
      if (step.kind == Kind::kDestroy) {
        out.list("compute", step.compute);
      }
    }
  });
  return std::move(out).take() + "\n";
}

Result<HelperRequest> read_request(std::string_view text) {
  if (text.size() > kMaxHelperRequest) return Error(Code::kExhausted, "longer than 16 KiB");
  BERTH_TRY(const text::Document document, text::parse_json(text));
  const Value& root = document.root();
  Decoder d;
  if (!root.is_object()) {
    d.mismatch(root, "an object with a verb");
    return d.to_error();
  }
  const Value* verb = root.find("verb");
  const std::string_view word = verb != nullptr && verb->is_string() ? verb->string() : "";
  HelperRequest out;
  std::span<const text::Field<S>> fields;
  static constexpr text::Field<S> kListFields[] = {kVerb};
  if (word == kListVerb) {
    fields = kListFields;
  } else {
    for (const auto& [spelled, kind] : kVerbs) {
      if (spelled == word) out.step = MigStep{kind, {}, {}, 0, 0, {}};
    }
    if (!out.step) {
      std::string allowed = "one of " + std::string(kListVerb);
      for (const auto& [spelled, kind] : kVerbs) allowed += ", " + std::string(spelled);
      const Decoder::Step step(d, "verb");
      d.mismatch(verb == nullptr ? root : *verb, std::move(allowed));
      return d.to_error();
    }
    fields = fields_of(out.step->kind);
  }
  MigStep read = out.step.value_or(MigStep{});
  decode_object(root, fields, read, d);
  // A field that its verb does not have is no matter for a warning here.
  if (d.ok() && d.warnings() > 0) {
    return invalid(d.issues().front().path + ": found an unknown field, want those of " +
                   std::string(word));
  }
  if (!d.ok()) return d.to_error();
  if (out.step) {
    std::sort(read.compute.begin(), read.compute.end());
    out.step = std::move(read);
  }
  return out;
}

std::string write_answer(const Result<std::vector<MigGpu>>& answer) {
  if (!answer.ok()) return write_error(answer.error());
  text::JsonWriter out;
  out.object([&] {
    out.field("ok", true);
    out.array("gpus", [&] {
      for (const MigGpu& gpu : *answer) write_gpu(gpu, out);
    });
  });
  return std::move(out).take() + "\n";
}

std::string write_answer(const Status& answer) {
  return answer.ok() ? "{\"ok\":true}\n" : write_error(answer.error());
}

Result<std::vector<MigGpu>> read_answer(std::string_view text) {
  if (text.size() > kMaxHelperAnswer) return Error(Code::kExhausted, "longer than 1 MiB");
  BERTH_TRY(const text::Document document, text::parse_json(text));
  const Value& root = document.root();
  const Value* ok = root.is_object() ? root.find("ok") : nullptr;
  if (ok == nullptr || !ok->is_bool()) return invalid("ok: found nothing, want true or false");
  if (!ok->as_bool()) return told_error(root);
  std::vector<MigGpu> out;
  Decoder d;
  if (const Value* gpus = root.find("gpus")) {
    const Decoder::Step step(d, "gpus");
    bounded_list<read_gpu, kMaxGpus>(*gpus, out, d);
  }
  if (!d.ok()) return d.to_error();
  return out;
}

}  // namespace berth::partition
