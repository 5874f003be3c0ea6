// Patches, server-side apply and CRDs.
#include <map>
#include <memory>

#include "base/growth_for_test.h"
#include "kinds/schema/schema_for_test.h"

namespace berth::sim {
namespace {

struct PatchCase {
  std::string_view live, patch, want;
};

TEST(StrategicMerge, ListsByKeyAndDirectives) {
  const PatchCase cases[] = {
      {"{'spec':{'containers':[{'name':'a','image':'1'},{'name':'b','image':'2'}]}}",
       "{'spec':{'containers':[{'name':'b','image':'3'}]}}",
       R"({"spec":{"containers":[{"name":"a","image":"1"},{"name":"b","image":"3"}]}})"},
      {"{'spec':{'containers':[{'name':'a'},{'name':'b'}]}}",
       "{'spec':{'containers':[{'name':'a','$patch':'delete'}]}}",
       R"({"spec":{"containers":[{"name":"b"}]}})"},
      {"{'spec':{'containers':[{'name':'a'},{'name':'b'}]}}",
       "{'spec':{'containers':[{'name':'c'},{'$patch':'replace'}]}}",
       R"({"spec":{"containers":[{"name":"c"}]}})"},
      {"{'spec':{'containers':[{'name':'a'},{'name':'x'},{'name':'b'}]}}",
       "{'spec':{'$setElementOrder/containers':[{'name':'b'},{'name':'n'},{'name':'a'}],"
       "'containers':[{'name':'n'}]}}",
       R"({"spec":{"containers":[{"name":"x"},{"name":"b"},{"name":"n"},{"name":"a"}]}})"},
      {"{'metadata':{'labels':{'a':'1','b':'2'}}}", "{'metadata':{'labels':{'a':null,'c':'3'}}}",
       R"({"metadata":{"labels":{"b":"2","c":"3"}}})"},
      {"{'spec':{'nodeSelector':{'a':'1'}}}",
       "{'spec':{'nodeSelector':{'$patch':'replace','b':'2'}}}",
       R"({"spec":{"nodeSelector":{"b":"2"}}})"},
      {"{'metadata':{'finalizers':['a','b']}}",
       "{'metadata':{'finalizers':['c'],'$deleteFromPrimitiveList/finalizers':['a']}}",
       R"({"metadata":{"finalizers":["c","b"]}})"},
      {"{'spec':{'volumes':[{'name':'v','emptyDir':{}}]}}",
       "{'spec':{'volumes':[{'name':'v','$retainKeys':['name','hostPath'],'hostPath':{'path':'/'}}]"
       "}}",
       R"({"spec":{"volumes":[{"name":"v","hostPath":{"path":"/"}}]}})"},
      {"{'spec':{'tolerations':[{'key':'a'}]}}", "{'spec':{'tolerations':[{'key':'b'}]}}",
       R"({"spec":{"tolerations":[{"key":"b"}]}})"},
      {"{'status':{'conditions':[{'type':'Ready','status':'False','reason':'x'}]}}",
       "{'status':{'conditions':[{'type':'Ready','status':'True'}]}}",
       R"({"status":{"conditions":[{"type":"Ready","status":"True","reason":"x"}]}})"},
      {"{'spec':{'nodeName':'n','priority':1}}", "{'spec':{'nodeName':null}}",
       R"({"spec":{"priority":1}})"},
  };
  for (const PatchCase& c : cases) {
    const auto made =
        strategic_merge_patch(builtin("Pod"), doc(c.live).root(), doc(c.patch).root());
    ASSERT_TRUE(made.ok()) << c.patch;
    EXPECT_EQ(json_of(made->root()), c.want) << c.patch;
  }
  for (const std::string_view bad :
       {"{'spec':{'containers':[{'image':'x'}]}}", "[]", "{'spec':{'$patch':'what'}}"}) {
    EXPECT_FALSE(strategic_merge_patch(builtin("Pod"), doc("{}").root(), doc(bad).root()).ok());
  }
}

// "NAME0", "NAME1", ... by a maker, with commas.
std::string many(int count, const std::function<std::string(int)>& one) {
  std::string out;
  for (int i = 0; i < count; ++i) out += (i == 0 ? "" : ",") + one(i);
  return out;
}

std::string env_of(int count, int from, const char* more = ",'value':'1'") {
  return "{'kind':'Pod','apiVersion':'v1','spec':{'containers':[{'name':'c','env':[" +
         many(count,
              [&](int i) { return "{'name':'E" + std::to_string(from + i) + "'" + more + "}"; }) +
         "]}]}}";
}

std::string data_of(int count, const char* more = "") {
  return "{'kind':'ConfigMap','apiVersion':'v1','data':{" +
         many(count, [](int i) { return "'k" + std::to_string(i * 7919 % 100'003) + "':'1'"; }) +
         more + "}}";
}

TEST(StrategicMerge, WorkGrowsWithTheListsAndNotWithTheirSquare) {
  struct Case {
    const char* name;
    const char* kind;
    std::function<std::pair<std::string, std::string>(int)> make;
  };
  const Case cases[] = {
      {"merged", "Pod", [](int n) { return std::pair(env_of(n, 0), env_of(n, n / 2)); }},
      {"deleted", "Pod",
       [](int n) { return std::pair(env_of(n, 0), env_of(n, 0, ",'$patch':'delete'")); }},
      {"ordered", "Pod",
       [](int n) {
         return std::pair(
             env_of(n, 0),
             "{'spec':{'containers':[{'name':'c','$setElementOrder/env':[" + many(n, [n](int i) {
               return "{'name':'E" + std::to_string(n - i) + "'}";
             }) + "],'env':[{'name':'N'}]}]}}");
       }},
      {"members", "ConfigMap", [](int n) { return std::pair(data_of(n), data_of(n)); }},
      {"a set", "ConfigMap",
       [](int n) {
         const auto texts = [n](int from) {
           return many(n, [from](int i) { return "'f" + std::to_string(from + i) + "'"; });
         };
         return std::pair("{'metadata':{'finalizers':[" + texts(0) + "]}}",
                          "{'metadata':{'$deleteFromPrimitiveList/finalizers':[" + texts(n / 2) +
                              "],'finalizers':[" + texts(n) + "]}}");
       }},
  };
  for (const Case& c : cases) {
    const double growth = growth_of(1'000, [&](int n) {
      const auto [live, patch] = c.make(n);
      auto from = std::make_shared<text::Document>(doc(live));
      auto by = std::make_shared<text::Document>(doc(patch));
      return [from, by, &c] {
        EXPECT_TRUE(strategic_merge_patch(builtin(c.kind), from->root(), by->root()).ok())
            << c.name;
      };
    });
    EXPECT_LT(growth, kNotQuadratic) << c.name;
  }
}

TEST(Apply, WorkGrowsWithTheFieldsAndNotWithTheirSquare) {
  struct Case {
    const char* name;
    const char* kind;
    std::function<std::string(int)> make;
  };
  const Case cases[] = {
      {"items", "Pod", [](int n) { return env_of(n, 0); }},
      {"members", "ConfigMap", [](int n) { return data_of(n); }},
  };
  for (const Case& c : cases) {
    const double growth = growth_of(1'000, [&](int n) {
      auto config = std::make_shared<text::Document>(doc(c.make(n)));
      auto fewer = std::make_shared<text::Document>(doc(c.make(n - 10)));
      return [config, fewer, &c] {
        const Kind& kind = builtin(c.kind);
        const auto first =
            apply_config(kind, {}, config->root(), {"one", "2026-01-01T00:00:00Z", ""});
        ASSERT_TRUE(first.ok());
        const auto second = apply_config(kind, first->object.root(), fewer->root(),
                                         {"one", "2026-01-01T00:00:00Z", ""});
        ASSERT_TRUE(second.ok());
        track_update(kind, first->object.root(), config->root(),
                     {"two", "2026-01-01T00:00:00Z", ""});
      };
    });
    EXPECT_LT(growth, kNotQuadratic) << c.name;
  }
}

TEST(Apply, ManagersDoNotEachCostTheOthers) {
  const double growth = growth_of(200, [&](int n) {
    const std::string managers = many(n, [](int i) {
      const std::string number = std::to_string(i);
      return "{'manager':'m" + number +
             "','operation':'Apply','apiVersion':'v1','fieldsType':'FieldsV1','fieldsV1':{'f:data':"
             "{'f:k" +
             number + "':{},'f:x" + number + "':{}}}}";
    });
    auto live = std::make_shared<text::Document>(doc(
        "{'kind':'ConfigMap','apiVersion':'v1','metadata':{'managedFields':[" + managers +
        "]},'data':{" + many(n, [](int i) { return "'k" + std::to_string(i) + "':'1'"; }) + "}}"));
    auto config = std::make_shared<text::Document>(
        doc("{'kind':'ConfigMap','apiVersion':'v1','data':{'k2':'2'}}"));
    return [live, config] {
      const auto made = apply_config(builtin("ConfigMap"), live->root(), config->root(),
                                     {"m1", "2026-01-01T00:00:00Z", "", true});
      ASSERT_TRUE(made.ok());
    };
  });
  EXPECT_LT(growth, kNotQuadratic);
}

// fieldsV1 of managers: "manager/operation[/subresource]={...}", in order.
std::string managers_of(const text::Value& object) {
  std::string out;
  const text::Value* entries = find_path(object, "metadata.managedFields");
  if (entries == nullptr) return "";
  for (const text::Value& entry : entries->items()) {
    const auto word = [&](std::string_view key) {
      const text::Value* found = entry.find(key);
      return found == nullptr ? std::string() : std::string(found->string());
    };
    out += word("manager") + "/" + word("operation");
    if (!word("subresource").empty()) out += "/" + word("subresource");
    out += "=" + json_of(*entry.find("fieldsV1")) + "\n";
  }
  return out;
}

text::Document applied(const Kind& kind, const text::Value& live, std::string_view config,
                       std::string_view manager, std::string_view now = "2026-01-01T00:00:00Z",
                       bool force = false) {
  ManagerOptions options;
  options.manager = manager;
  options.now = now;
  options.force = force;
  auto made = apply_config(kind, live, doc(config).root(), options);
  EXPECT_TRUE(made.ok()) << made.error().to_string();
  if (!made.ok()) return {};
  EXPECT_TRUE(made->conflicts.empty()) << made->conflict_message;
  return std::move(made->object);
}

text::Document updated(const Kind& kind, const text::Value& live, const text::Value& object,
                       std::string_view manager, std::string_view subresource = {}) {
  ManagerOptions options;
  options.manager = manager;
  options.now = "2026-01-02T00:00:00Z";
  options.subresource = subresource;
  return track_update(kind, live, object, options);
}

constexpr std::string_view kDeployment =
    "{'apiVersion':'apps/v1','kind':'Deployment','metadata':{'name':'d','namespace':'n','labels':"
    "{'a':'1'}},'spec':{'replicas':2,'template':{'spec':{'containers':[{'name':'c','image':'i'}]"
    "}}}}";

TEST(Apply, OwnsWhatItSays) {
  const Kind& kind = builtin("Deployment");
  const text::Document first = applied(kind, text::Value(), kDeployment, "kubectl");
  EXPECT_EQ(managers_of(first.root()),
            R"(kubectl/Apply={"f:metadata":{"f:labels":{"f:a":{}}},"f:spec":{"f:replicas":{},)"
            R"("f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"c\"}":{".":{},"f:image":{},)"
            R"("f:name":{}}}}}}})"
            "\n");
  EXPECT_EQ(field_of(first.root(), "metadata.managedFields[0].time"), "\"2026-01-01T00:00:00Z\"");
  EXPECT_EQ(field_of(first.root(), "metadata.managedFields[0].apiVersion"), "\"apps/v1\"");
  // The same again changes nothing, not even the time.
  const text::Document again =
      applied(kind, first.root(), kDeployment, "kubectl", "2026-05-05T00:00:00Z");
  EXPECT_EQ(json_of(again.root()), json_of(first.root()));
  // What is no longer said goes.
  const text::Document less =
      applied(kind, first.root(), "{'metadata':{'name':'d'},'spec':{'replicas':2}}", "kubectl");
  EXPECT_EQ(field_of(less.root(), "spec"), R"({"replicas":2})");
  EXPECT_EQ(field_of(less.root(), "metadata.labels"), "-");
}

TEST(Apply, ConflictsAndForce) {
  const Kind& kind = builtin("Deployment");
  const text::Document first = applied(kind, text::Value(), kDeployment, "kubectl");
  const text::Document scaled =
      updated(kind, first.root(), with_path(first.root(), "spec.replicas", doc("5").root()).root(),
              "scaler");
  EXPECT_NE(managers_of(scaled.root()).find("scaler/Update={\"f:spec\":{\"f:replicas\":{}}}"),
            std::string::npos);
  EXPECT_EQ(managers_of(scaled.root()).find("\"f:replicas\":{},\"f:template\""), std::string::npos);
  ManagerOptions options;
  options.manager = "kubectl";
  options.now = "2026-01-03T00:00:00Z";
  const auto clash = apply_config(kind, scaled.root(), doc(kDeployment).root(), options);
  ASSERT_TRUE(clash.ok());
  ASSERT_EQ(clash->conflicts.size(), 1u);
  EXPECT_EQ(clash->conflict_message,
            "Apply failed with 1 conflict: conflict with \"scaler\" using apps/v1: .spec.replicas");
  EXPECT_EQ(clash->conflicts[0].field, ".spec.replicas");
  EXPECT_EQ(clash->conflicts[0].message, "conflict with \"scaler\" using apps/v1");
  const text::Document forced =
      applied(kind, scaled.root(), kDeployment, "kubectl", "2026-01-03T00:00:00Z", true);
  EXPECT_EQ(field_of(forced.root(), "spec.replicas"), "2");
  EXPECT_EQ(managers_of(forced.root()).find("scaler"), std::string::npos);
  // Two appliers that say the same share it; with others, several conflicts are listed.
  const text::Document shared = applied(kind, first.root(), "{'spec':{'replicas':2}}", "other");
  EXPECT_NE(managers_of(shared.root()).find("other/Apply={\"f:spec\":{\"f:replicas\":{}}}"),
            std::string::npos);
  options.manager = "third";
  const auto two =
      apply_config(kind, shared.root(),
                   doc("{'metadata':{'labels':{'a':'2'}},'spec':{'replicas':9}}").root(), options);
  ASSERT_TRUE(two.ok());
  EXPECT_EQ(two->conflict_message,
            "Apply failed with 3 conflicts: conflicts with \"kubectl\":\n- .metadata.labels.a\n- "
            ".spec.replicas\nconflicts with \"other\":\n- .spec.replicas");
  // Dropped by one, still there for the other.
  const text::Document kept = applied(kind, shared.root(), "{'metadata':{'name':'d'}}", "other");
  EXPECT_EQ(field_of(kept.root(), "spec.replicas"), "2");
}

TEST(Apply, ListsOfItemsWithKeys) {
  const Kind& kind = builtin("Service");
  const text::Document first =
      applied(kind, text::Value(), "{'metadata':{'name':'s'},'spec':{'ports':[{'port':80}]}}", "a");
  EXPECT_EQ(managers_of(first.root()),
            R"(a/Apply={"f:spec":{"f:ports":{"k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},)"
            R"("f:port":{}}}}})"
            "\n");
  const text::Document both = applied(
      kind, first.root(), "{'spec':{'ports':[{'port':443,'protocol':'TCP','name':'tls'}]}}", "b");
  EXPECT_EQ(field_of(both.root(), "spec.ports"),
            R"([{"port":443,"protocol":"TCP","name":"tls"},{"port":80}])");
  const text::Document gone = applied(kind, both.root(), "{'spec':{}}", "a");
  EXPECT_EQ(field_of(gone.root(), "spec.ports"), R"([{"port":443,"protocol":"TCP","name":"tls"}])");
  ManagerOptions options;
  options.manager = "a";
  const auto twice = apply_config(
      kind, text::Value(), doc("{'spec':{'ports':[{'port':1},{'port':1}]}}").root(), options);
  ASSERT_FALSE(twice.ok());
  EXPECT_NE(twice.error().to_string().find(
                ".spec.ports: duplicate entries for key [port=1,protocol=\"TCP\"]"),
            std::string::npos);
  const std::pair<std::string_view, std::string_view> refused[] = {
      {"{'spec':{'typ':'x'}}", ".spec.typ: field not declared in schema"},
      {"{'spec':{'ports':[{'port':'x'}]}}",
       ".spec.ports[0].port: expected numeric (int or float), got \"x\""},
      {"{'spec':{'ports':{}}}", ".spec.ports: expected list, got {}"},
  };
  for (const auto& [config, why] : refused) {
    const auto made = apply_config(kind, text::Value(), doc(config).root(), options);
    ASSERT_FALSE(made.ok()) << config;
    EXPECT_EQ(made.error().message(), why);
  }
  // Sets of values.
  const Kind& pod = builtin("Pod");
  const text::Document set =
      applied(pod, text::Value(), "{'metadata':{'name':'p','finalizers':['x.y/z']}}", "a");
  EXPECT_EQ(managers_of(set.root()), R"(a/Apply={"f:metadata":{"f:finalizers":{"v:\"x.y/z\"":{}}}})"
                                     "\n");
}

TEST(Apply, UpdatesOwnWhatTheyChange) {
  const Kind& kind = builtin("ConfigMap");
  const text::Document object =
      doc("{'apiVersion':'v1','kind':'ConfigMap','metadata':{'name':'c','namespace':'n','uid':'u',"
          "'labels':{'l':'1'}},'data':{'a':'1','b':'2'}}");
  const text::Document first = updated(kind, text::Value(), object.root(), "tester");
  EXPECT_EQ(
      managers_of(first.root()),
      R"(tester/Update={"f:data":{".":{},"f:a":{},"f:b":{}},"f:metadata":{"f:labels":{".":{},)"
      R"("f:l":{}}}})"
      "\n");
  const text::Document changed =
      updated(kind, first.root(), with_path(first.root(), "data.a", doc("'9'").root()).root(), "x");
  EXPECT_EQ(managers_of(changed.root()),
            R"(tester/Update={"f:data":{".":{},"f:b":{}},"f:metadata":{"f:labels":{".":{},"f:l":)"
            R"({}}}})"
            "\n"
            R"(x/Update={"f:data":{"f:a":{}}})"
            "\n");
  EXPECT_TRUE(same_apart_from_managers(first.root(), first.root()));
  EXPECT_FALSE(same_apart_from_managers(first.root(), changed.root()));
  // Removed fields leave their managers; a manager without fields goes.
  const text::Document removed = updated(
      kind, changed.root(), with_path(changed.root(), "data", doc("{'b':'2'}").root()).root(), "y");
  EXPECT_EQ(managers_of(removed.root()).find("x/Update"), std::string::npos);
  EXPECT_EQ(managers_of(removed.root()).find("y/Update"), std::string::npos);
  // [{}] forgets.
  const text::Document forget =
      updated(kind, changed.root(),
              with_path(changed.root(), "metadata.managedFields", doc("[{}]").root()).root(), "y");
  EXPECT_EQ(managers_of(forget.root()), "");
  // A status written through its endpoint is noted there.
  const Kind& pod = builtin("Pod");
  const text::Document live = doc("{'metadata':{'name':'p'},'status':{'phase':'Pending'}}");
  const text::Document ran = updated(
      pod, live.root(), doc("{'metadata':{'name':'p'},'status':{'phase':'Running'}}").root(),
      "kubelet", "status");
  EXPECT_EQ(managers_of(ran.root()), "kubelet/Update/status={\"f:status\":{\"f:phase\":{}}}\n");
}

TEST(Apply, ObjectsFromBeforeAndTooManyManagers) {
  const Kind& kind = builtin("ConfigMap");
  const text::Document bare = doc("{'metadata':{'name':'c'},'data':{'a':'1'}}");
  ManagerOptions options;
  options.manager = "m";
  options.now = "2026-01-01T00:00:00Z";
  const auto clash = apply_config(kind, bare.root(), doc("{'data':{'a':'2'}}").root(), options);
  ASSERT_TRUE(clash.ok());
  EXPECT_EQ(clash->conflict_message,
            "Apply failed with 1 conflict: conflict with \"before-first-apply\" using v1: .data.a");
  text::Document now = updated(kind, text::Value(), bare.root(), "m0");
  for (int i = 1; i <= 12; ++i) {
    const std::string path = "data.k" + std::to_string(i);
    now = updated(kind, now.root(), with_path(now.root(), path, doc("'x'").root()).root(),
                  "m" + std::to_string(i));
  }
  EXPECT_EQ(find_path(now.root(), "metadata.managedFields")->size(), 10u);
  EXPECT_NE(managers_of(now.root()).find("ancient-changes/Update"), std::string::npos);
}

constexpr std::string_view kCrd = R"(
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gangs.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: gangs, singular: gang, kind: Gang, listKind: GangList, shortNames: [gg]}
  versions:
    - name: v1
      served: true
      storage: true
      subresources:
        status: {}
        scale: {specReplicasPath: .spec.size, statusReplicasPath: .status.size}
      additionalPrinterColumns:
        - {name: Size, type: integer, jsonPath: .spec.size}
        - {name: Ready, type: string, jsonPath: '.status.conditions[?(@.type=="Ready")].status'}
        - {name: First, type: string, jsonPath: ".spec.members[0].name"}
        - {name: Age, type: date, jsonPath: .metadata.creationTimestamp}
      schema:
        openAPIV3Schema:
          type: object
          required: [spec]
          properties:
            spec:
              type: object
              required: [size]
              properties:
                size: {type: integer, format: int32, minimum: 1, maximum: 10}
                mode: {type: string, enum: [Hard, Soft], default: Hard}
                label: {type: string, pattern: '^[a-z]+$', maxLength: 5}
                amount: {x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}]}
                free: {type: object, x-kubernetes-preserve-unknown-fields: true}
                when: {type: string, format: date-time}
                policy:
                  type: object
                  default: {}
                  properties:
                    tries: {type: integer, default: 3}
                members:
                  type: array
                  maxItems: 2
                  x-kubernetes-list-type: map
                  x-kubernetes-list-map-keys: [name]
                  items:
                    type: object
                    required: [name]
                    properties:
                      name: {type: string}
                      weight: {type: integer, default: 1}
                tags: {type: array, x-kubernetes-list-type: set, items: {type: string}}
                labels: {type: object, additionalProperties: {type: string}}
            status:
              type: object
              x-kubernetes-preserve-unknown-fields: true
)";

KindPtr gang_kind() {
  const text::Document crd = yaml_doc(kCrd);
  auto kinds = read_crd(crd.root());
  EXPECT_TRUE(kinds.ok()) << kinds.error().to_string();
  return kinds.ok() ? kinds->front() : nullptr;
}

TEST(Crd, ReadsItsKind) {
  const Kind& crds = builtin("CustomResourceDefinition");
  const text::Document crd = normalized(crds, yaml_doc(kCrd).root());
  EXPECT_EQ(words_of(validate(crds, crd.root())), "");
  const KindPtr kind = gang_kind();
  ASSERT_NE(kind, nullptr);
  EXPECT_EQ(kind->group_kind(), "Gang.example.com");
  EXPECT_TRUE(kind->status);
  EXPECT_EQ(kind->scale.spec_replicas, ".spec.size");
  EXPECT_EQ(kind->columns.size(), 5u);
  text::JsonWriter cells;
  write_cells(*kind,
              doc("{'metadata':{'name':'g','creationTimestamp':'2001-09-09T01:46:30Z'},'spec':"
                  "{'size':3,'members':[{'name':'m'}]},'status':{'conditions':[{'type':'X',"
                  "'status':'a'},{'type':'Ready','status':'True'}]}}")
                  .root(),
              1'000'000'000'000'000'000, cells);
  EXPECT_EQ(cells.text(), R"(["g",3,"True","m","10s"])");
  EXPECT_TRUE(text::parse_json(openapi_v3(std::vector<KindPtr>{kind}, "v")).ok());
}

TEST(Crd, PrunesAndFillsIn) {
  const KindPtr kind = gang_kind();
  ASSERT_NE(kind, nullptr);
  const auto made = normalize(
      *kind, doc("{'metadata':{'name':'g'},'bad':1,'spec':{'size':1,'nope':2,'free':{'x':{'y':1}},"
                 "'members':[{'name':'a','z':1}],'mode':null},'status':{'any':[1]}}")
                 .root());
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(json_of(made->object.root()),
            R"({"apiVersion":"example.com/v1","kind":"Gang","metadata":{"name":"g"},"spec":{)"
            R"("size":1,"free":{"x":{"y":1}},"members":[{"name":"a","weight":1}],"mode":"Hard",)"
            R"("policy":{"tries":3}},"status":{"any":[1]}})");
  const std::vector<std::string> want = {"unknown field \"bad\"",
                                         "unknown field \"spec.members[0].z\"",
                                         "unknown field \"spec.nope\""};
  EXPECT_EQ(made->unknown, want);
}

TEST(Crd, SaysWhatIsWrongWithAnObject) {
  const KindPtr kind = gang_kind();
  ASSERT_NE(kind, nullptr);
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"{'size':1}", ""},
      {"{'size':1,'amount':5,'when':'2026-01-01T00:00:00Z'}", ""},
      {"{}", "spec.size: Required value"},
      {"{'size':'x'}",
       "spec.size: Invalid value: \"string\": spec.size in body must be of type integer: "
       "\"string\""},
      {"{'size':0}",
       "spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1"},
      {"{'size':11}",
       "spec.size: Invalid value: 11: spec.size in body should be less than or equal to 10"},
      {"{'size':1,'mode':'X'}",
       "spec.mode: Unsupported value: \"X\": supported values: \"Hard\", \"Soft\""},
      {"{'size':1,'label':'A'}",
       "spec.label: Invalid value: \"A\": spec.label in body should match '^[a-z]+$'"},
      {"{'size':1,'label':'abcdef'}", "spec.label: Too long: may not be more than 5 bytes"},
      {"{'size':1,'tags':['a','a']}", "spec.tags[1]: Duplicate value: \"a\""},
      {"{'size':1,'members':[{'name':'a'},{'name':'a'}]}",
       "spec.members[1]: Duplicate value: {\"name\":\"a\"}"},
      {"{'size':1,'members':[{'name':'a'},{'name':'b'},{'name':'c'}]}",
       "spec.members: Too many: 3: must have at most 2 items"},
      {"{'size':1,'members':[{}]}", "spec.members[0].name: Required value"},
      {"{'size':1,'amount':true}",
       "spec.amount: Invalid value: \"boolean\": spec.amount in body must be of type "
       "integer,string: \"boolean\""},
      {"{'size':1,'labels':{'a':1}}",
       "spec.labels.a: Invalid value: \"integer\": spec.labels.a in body must be of type string: "
       "\"integer\""},
      {"{'size':1,'when':'soon'}",
       "spec.when: Invalid value: \"soon\": spec.when in body must be of type date-time: "
       "\"soon\""},
  };
  for (const auto& [spec, want] : cases) {
    const std::string object =
        "{'metadata':{'name':'g','namespace':'d'},'spec':" + std::string(spec) + "}";
    const text::Document made = normalized(*kind, doc(object).root());
    std::string words = words_of(validate(*kind, made.root()));
    if (!words.empty()) words.pop_back();
    EXPECT_EQ(words, want) << spec;
  }
}

TEST(Crd, RefusesWhatIsNotStructural) {
  const Kind& crds = builtin("CustomResourceDefinition");
  const auto with_schema = [](std::string_view schema) {
    return "{'metadata':{'name':'gangs.example.com'},'spec':{'group':'example.com','scope':"
           "'Namespaced','names':{'plural':'gangs','kind':'Gang'},'versions':[{'name':'v1',"
           "'served':true,'storage':true,'schema':{'openAPIV3Schema':" +
           std::string(schema) + "}}]}}";
  };
  const std::string at_root = "spec.versions[0].schema.openAPIV3Schema";
  const std::pair<std::string, std::string> cases[] = {
      {with_schema("{'type':'object'}"), ""},
      {with_schema("{'type':'string'}"),
       at_root + ".type: Invalid value: \"string\": must be object at the root"},
      {with_schema("{'type':'object','properties':{'a':{}}}"),
       at_root +
           ".properties[a].type: Required value: must not be empty for specified object fields"},
      {with_schema("{'type':'object','properties':{'a':{'type':'array'}}}"),
       at_root + ".properties[a].items: Required value: must be specified"},
      {with_schema("{'type':'object','properties':{'a':{'type':'what'}}}"),
       at_root + ".properties[a].type: Unsupported value: \"what\""},
      {with_schema("{'type':'object','properties':{'a':{'type':'integer','default':'x'}}}"),
       at_root + ".properties[a].default: Invalid value: \"x\""},
      {with_schema("{'type':'object','properties':{'a':{'type':'string','pattern':'('}}}"),
       at_root + ".properties[a].pattern: Invalid value: \"(\""},
      {with_schema("{'type':'object','$ref':'x'}"),
       at_root + ".$ref: Forbidden: $ref is not supported"},
      {with_schema("{'type':'object','properties':{'a':{'type':'array','x-kubernetes-list-type':"
                   "'map','items':{'type':'object'}}}}"),
       at_root + ".properties[a].x-kubernetes-list-map-keys: Required value"},
      {"{'metadata':{'name':'x.example.com'},'spec':{'group':'example.com','scope':'Cluster',"
       "'names':{'plural':'gangs','kind':'Gang'},'versions':[]}}",
       "metadata.name: Invalid value: \"x.example.com\": must be "
       "spec.names.plural+\".\"+spec.group"},
      {"{'metadata':{'name':'gangs.x.k8s.io'},'spec':{'group':'x.k8s.io','scope':'Cluster',"
       "'names':{'plural':'gangs','kind':'Gang'},'versions':[]}}",
       "metadata.annotations[api-approved.kubernetes.io]: Required value"},
  };
  for (const auto& [object, want] : cases) {
    const std::string words = words_of(validate(crds, normalized(crds, doc(object).root()).root()));
    if (want.empty()) {
      EXPECT_EQ(words, "");
    } else {
      EXPECT_NE(words.find(want), std::string::npos) << want << "\nnot in\n" << words;
    }
  }
  EXPECT_FALSE(read_crd(doc("{}").root()).ok());
  EXPECT_FALSE(read_crd(doc(with_schema("{'type':'object','properties':{'a':{}}}")).root()).ok());
}

TEST(Crd, AppliesByItsListTypes) {
  const KindPtr kind = gang_kind();
  ASSERT_NE(kind, nullptr);
  const text::Document first = applied(
      *kind, text::Value(),
      "{'metadata':{'name':'g','labels':{'a':'1'}},'spec':{'size':1,'members':[{'name':'a'}],"
      "'free':{'x':1},'tags':['t']}}",
      "m");
  EXPECT_EQ(managers_of(first.root()),
            R"(m/Apply={"f:metadata":{"f:labels":{"f:a":{}}},"f:spec":{"f:free":{"f:x":{}},)"
            R"("f:members":{"k:{\"name\":\"a\"}":{".":{},"f:name":{}}},"f:size":{},"f:tags":{)"
            R"("v:\"t\"":{}}}})"
            "\n");
  ManagerOptions options;
  options.manager = "m";
  const auto keyless = apply_config(*kind, text::Value(),
                                    doc("{'spec':{'members':[{'weight':1}]}}").root(), options);
  ASSERT_FALSE(keyless.ok());
  EXPECT_EQ(keyless.error().message(),
            ".spec.members: element 0: associative list with keys has an element that omits key "
            "field \"name\" (and doesn't have default value)");
}

}  // namespace
}  // namespace berth::sim
