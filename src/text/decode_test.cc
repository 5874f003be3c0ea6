#include "text/decode.h"

#include <gtest/gtest.h>

#include "text/json.h"

namespace shop {  // a namespace of its own: decode() is found by its argument

enum class Color { kRed, kBlue };

struct Part {
  std::string name;
  std::optional<std::int32_t> port;
};

struct Thing {
  std::string name;
  bool ready = false;
  std::int32_t count = 7;
  std::uint32_t wide = 0;
  int port = 0;
  double ratio = 0;
  berth::text::Quantity memory;
  std::int64_t milli = 0;
  std::int64_t created_ns = 0;
  std::int64_t timeout_ns = 0;
  std::string node;
  Color color = Color::kRed;
  berth::text::IntOrString target;
  std::vector<std::string> args;
  std::vector<Part> parts;
  std::map<std::string, std::string> labels;
  std::map<std::string, berth::text::Quantity> requests;
  std::string raw;
  int custom_calls = 0;
};

namespace t = berth::text;

constexpr t::Field<Part> kPartFields[] = {
    t::required(t::field<&Part::name>("name")),
    t::field<&Part::port>("port"),
};
void decode(const t::Value& v, Part& out, t::Decoder& d) {
  t::decode_object(v, kPartFields, out, d);
}

constexpr std::pair<std::string_view, Color> kColors[] = {{"red", Color::kRed},
                                                          {"blue", Color::kBlue}};
constexpr t::Field<Thing> kSpecFields[] = {
    t::field<&Thing::node>("nodeName"),
    t::field<&Thing::parts>("parts"),
    t::field<&Thing::requests>("requests"),
};
constexpr t::Field<Thing> kThingFields[] = {
    t::required(t::field<&Thing::name>("name")),
    t::field<&Thing::ready>("ready"),
    t::field<&Thing::count>("count"),
    t::field<&Thing::wide>("wide"),
    t::field<&Thing::port, t::int_between<1, 65535>>("port"),
    t::field<&Thing::ratio>("ratio"),
    t::field<&Thing::memory>("memory"),
    t::field<&Thing::milli, t::read_quantity_milli>("cpu"),
    t::field<&Thing::created_ns, t::read_time_ns>("created"),
    t::field<&Thing::timeout_ns, t::read_duration_ns>("timeout"),
    t::field<&Thing::color, t::one_of<kColors>>("color"),
    t::field<&Thing::target>("target"),
    t::field<&Thing::args>("args"),
    t::field<&Thing::labels>("labels"),
    t::field<&Thing::raw, t::read_json>("raw"),
    t::skip<Thing>("status"),
    t::inlined<kSpecFields>("spec"),
    t::custom<Thing>("custom",
                     [](const t::Value&, Thing& out, t::Decoder&) { ++out.custom_calls; }),
};
void decode(const t::Value& v, Thing& out, t::Decoder& d) {
  t::decode_object(v, kThingFields, out, d);
}

}  // namespace shop

namespace berth::text {
namespace {

TEST(Decode, ReadsEverything) {
  auto doc = parse_json(R"({
    "name": "x", "ready": true, "count": 3.0, "wide": 4294967295, "port": 80, "ratio": 0.5,
    "memory": "1.5Gi", "cpu": 2, "created": "1970-01-01T00:00:01Z", "timeout": "1h30m",
    "color": "blue", "target": "http", "args": ["a", "b"],
    "labels": {"a/b": "c", "none": null}, "raw": {"k": [1]}, "status": {"anything": [1, 2]},
    "spec": {"nodeName": "n1", "parts": [{"name": "p", "port": 1}, {"name": "q", "port": null}],
             "requests": {"nvidia.com/gpu": "2"}},
    "custom": 1
  })");
  ASSERT_TRUE(doc.ok()) << doc.error().to_string();
  shop::Thing thing;
  Decoder d;
  decode(doc->root(), thing, d);
  EXPECT_TRUE(d.ok() && d.issues().empty()) << d.issues()[0].message();
  EXPECT_EQ(thing.name, "x");
  EXPECT_TRUE(thing.ready);
  EXPECT_EQ(thing.count, 3);
  EXPECT_EQ(thing.wide, 4294967295u);
  EXPECT_EQ(thing.port, 80);
  EXPECT_EQ(thing.ratio, 0.5);
  EXPECT_EQ(thing.memory.to_string(), "1536Mi");
  EXPECT_EQ(thing.milli, 2000);
  EXPECT_EQ(thing.created_ns, 1'000'000'000);
  EXPECT_EQ(thing.timeout_ns, 5'400'000'000'000);
  EXPECT_EQ(thing.color, shop::Color::kBlue);
  EXPECT_EQ(thing.target, (IntOrString{true, 0, "http"}));
  EXPECT_EQ(thing.args, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(thing.labels.at("a/b"), "c");
  EXPECT_EQ(thing.labels.at("none"), "");
  EXPECT_EQ(thing.raw, R"({"k":[1]})");
  EXPECT_EQ(thing.node, "n1");
  ASSERT_EQ(thing.parts.size(), 2u);
  EXPECT_EQ(thing.parts[0].port, 1);
  EXPECT_FALSE(thing.parts[1].port);
  EXPECT_EQ(thing.requests.at("nvidia.com/gpu").value(), 2);
  EXPECT_EQ(thing.custom_calls, 1);
}

std::string first_issue(std::string_view json) {
  auto doc = parse_json(json);
  EXPECT_TRUE(doc.ok()) << json;
  Decoder d;
  shop::Thing thing;
  decode(doc->root(), thing, d);
  return d.issues().empty() ? "" : d.issues()[0].message();
}

TEST(Decode, SaysWhereWhatAndWhatIsAllowed) {
  const std::pair<const char*, const char*> cases[] = {
      {"[]", "line 1: found array of 0, want an object"},
      {"{}", "line 1: name: found nothing, want this field, which is required"},
      {R"({"name":null})", "line 1: name: found nothing, want this field, which is required"},
      {R"({"name":1})", "line 1: name: found number 1, want a string"},
      {R"({"name":"x","ready":"yes"})", "line 1: ready: found string \"yes\", want true or false"},
      {R"({"name":"x","count":1.5})",
       "line 1: count: found number 1.5, want an integer -2147483648..2147483647"},
      {R"({"name":"x","count":2147483648})",
       "line 1: count: found number 2147483648, want an integer -2147483648..2147483647"},
      {R"({"name":"x","wide":-1})", "line 1: wide: found number -1, want an integer 0..4294967295"},
      {R"({"name":"x","port":"x"})", "line 1: port: found string \"x\", want an integer 1..65535"},
      {R"({"name":"x","memory":"1Kg"})",
       "line 1: memory: found string \"1Kg\", want a quantity such as 2, 500m or 4Gi"},
      {R"({"name":"x","created":"yesterday"})",
       "line 1: created: found string \"yesterday\", want a time such as 2026-01-31T10:00:00Z"},
      {R"({"name":"x","timeout":5})",
       "line 1: timeout: found number 5, want a duration such as 300ms or 1h30m"},
      {R"({"name":"x","color":"green"})",
       "line 1: color: found string \"green\", want one of red, blue"},
      {R"({"name":"x","args":"a"})", "line 1: args: found string \"a\", want an array"},
      {R"({"name":"x","args":["a",null]})", "line 1: args[1]: found null, want a string"},
      {R"({"name":"x","labels":{"a.b/c":1}})",
       "line 1: labels[\"a.b/c\"]: found number 1, want a string"},
      {"{\"name\":\"x\",\n\"spec\":{\n\"parts\":[{\"name\":\"p\",\n\"port\":[]}]}}",
       "line 4: spec.parts[0].port: found array of 0, want an integer -2147483648..2147483647"},
      {R"({"name":"x","spec":{"requests":{"nvidia.com/gpu":true}}})",
       "line 1: spec.requests[\"nvidia.com/gpu\"]: found bool true, want a quantity such as 2, "
       "500m or 4Gi"},
      {R"({"name":"x","Ready":true})", "line 1: Ready: found an unknown field, want ready"},
      {R"({"name":"x","spec":{"zzz":true}})", "line 1: spec.zzz: found an unknown field"},
      {R"({"name":"x","target":1e10})",
       "line 1: target: found number 1e10, want a string or an integer of 32 bits"},
  };
  for (const auto& [json, want] : cases) EXPECT_EQ(first_issue(json), want) << json;
}

TEST(Decode, CutsAndEscapesWhatWasFound) {
  const std::string message =
      first_issue("{\"name\":\"x\",\"ready\":\"\\u001b[31m" + std::string(10'000, 'a') + "end\"}");
  EXPECT_LT(message.size(), 140u);
  EXPECT_NE(message.find("\\x1b[31m"), std::string::npos);
  EXPECT_EQ(message.find('\x1b'), std::string::npos);
}

TEST(Decode, ReadsOnAfterAnErrorAndBoundsWhatItKeeps) {
  std::string json = "{\"name\":\"x\",\"args\":[";
  for (int i = 0; i < 500; ++i) json += "1,";
  json += "\"ok\"],\"count\":9,\"unknown\":1}";
  auto doc = parse_json(json);
  Decoder d({.max_issues = 10});
  shop::Thing thing;
  decode(doc->root(), thing, d);
  EXPECT_EQ(d.errors(), 500u);
  EXPECT_EQ(d.warnings(), 1u);
  EXPECT_EQ(d.issues().size(), 10u);
  EXPECT_EQ(thing.count, 9);
  EXPECT_NE(d.to_error().message().find("and 490 more"), std::string::npos);
}

TEST(Decode, ErrorsPushOutWarnings) {
  auto doc = parse_json(R"({"u1":1,"u2":1,"u3":1,"name":5})");
  Decoder d({.max_issues = 2});
  shop::Thing thing;
  decode(doc->root(), thing, d);
  EXPECT_EQ(d.warnings(), 3u);
  ASSERT_EQ(d.issues().size(), 2u);
  EXPECT_EQ(d.issues()[1].severity, Issue::kError);
}

TEST(Decode, WholeDocument) {
  auto doc = parse_json(R"({"name":"x","unknown":1})");
  EXPECT_EQ(decode_all<shop::Thing>(doc->root())->name, "x");
  auto bad = parse_json(R"({"ready":1})");
  auto failed = decode_all<shop::Thing>(bad->root());
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().message(),
            "line 1: ready: found number 1, want true or false; "
            "line 1: name: found nothing, want this field, which is required");
}

}  // namespace
}  // namespace berth::text
