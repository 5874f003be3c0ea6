// Each rule on a snippet that breaks it and on one that keeps it.
#include "rules.h"

#include <gtest/gtest.h>

namespace berth::tidy {
namespace {

Violations check(Violations (*rule)(const SourceText&), const char* path, std::string_view text) {
  return rule(SourceText(path, text));
}

bool breaks(Violations (*rule)(const SourceText&), const char* path, std::string_view text) {
  return !check(rule, path, text).empty();
}

bool may_include(const char* path, const std::string& header) {
  return !breaks(direction, path, "#include \"" + header + "\"\n");
}

TEST(SourceText, BlanksCommentsAndLiteralsButKeepsLines) {
  SourceText source("src/base/a.cc",
                    "int a = 1'000; // sleep(1)\n"
                    "/* rand()\n rand() */ int b;\n"
                    "auto s = \"a \\\" rand()\"; char c = '\"'; f();\n"
                    "auto r = R\"x(rand()\n\" )\" rand())x\"; g();\n");
  ASSERT_EQ(source.code.size(), 6U);
  for (const auto& line : source.code) EXPECT_EQ(find_word(line, "rand("), std::string::npos);
  EXPECT_NE(source.code[0].find("int a = 1'000;"), std::string::npos);
  EXPECT_NE(source.code[2].find("int b;"), std::string::npos);
  EXPECT_NE(source.code[3].find("f();"), std::string::npos);
  EXPECT_NE(source.code[5].find("g();"), std::string::npos);
}

TEST(SourceText, FindsIncludes) {
  auto found = includes_of(SourceText("src/base/a.cc",
                                      "#include <map>\n  #  include \"base/b.h\"\n"
                                      "// #include <set>\nauto s = \"#include <list>\";\n"));
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].name, "map");
  EXPECT_FALSE(found[0].quoted);
  EXPECT_EQ(found[1].name, "base/b.h");
  EXPECT_EQ(found[1].line, 2U);
  EXPECT_TRUE(found[1].quoted);
}

TEST(SourceText, MatchesWordsAndPatterns) {
  EXPECT_TRUE(matches("src/*.cc", "src/app/main.cc"));
  EXPECT_TRUE(matches("grpc*", "grpcpp/grpcpp.h"));
  EXPECT_FALSE(matches("yaml.h", "text/yaml.h"));
  EXPECT_EQ(find_word("xrand(1) rand(2)", "rand("), 9U);
  EXPECT_EQ(find_word("system_clocks", "system_clock"), std::string::npos);
}

TEST(Rules, AViolationSaysWhereWhatAndWhatInstead) {
  auto found = check(direction, "src/model/a.h", "// a\n#include \"decide/schedule/b.h\"\n");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_TRUE(
      found[0].to_string().starts_with("src/model/a.h:2: direction: model/ may not include"));
  EXPECT_NE(found[0].fix.find("port"), std::string::npos);
}

TEST(Rules, KnownFolder) {
  EXPECT_TRUE(breaks(known_folder, "src/helpers/a.cc", ""));
  EXPECT_TRUE(breaks(known_folder, "src/a.cc", ""));
  EXPECT_TRUE(breaks(known_folder, "tools/a.cc", ""));
  for (const char* path : {"src/base/a.cc", "src/embedded/a.h", "test/tidy/a.cc", "bench/a.cc"}) {
    EXPECT_FALSE(breaks(known_folder, path, "")) << path;
  }
  EXPECT_FALSE(breaks(known_folder, "docs/a.md", ""));
}

TEST(Rules, DirectionDownIsAllowed) {
  EXPECT_TRUE(may_include("src/base/a.cc", "base/b.h"));
  EXPECT_TRUE(may_include("src/text/a.cc", "base/b.h"));
  EXPECT_TRUE(may_include("src/model/a.cc", "text/b.h"));
  EXPECT_TRUE(may_include("src/kinds/a.cc", "model/b.h"));
  EXPECT_TRUE(may_include("src/node/advertise/a.cc", "kinds/b.h"));
  EXPECT_TRUE(may_include("src/edge/kube/a.cc", "decide/b.h"));
  EXPECT_TRUE(may_include("src/embedded/a.cc", "edge/kube/b.h"));
  EXPECT_TRUE(may_include("src/app/a.cc", "embedded/b.h"));
  EXPECT_TRUE(may_include("bench/a.cc", "app/b.h"));
}

TEST(Rules, DirectionUpAndSidewaysIsNot) {
  EXPECT_FALSE(may_include("src/base/a.cc", "text/b.h"));
  EXPECT_FALSE(may_include("src/text/a.cc", "model/b.h"));
  EXPECT_FALSE(may_include("src/model/a.cc", "kinds/b.h"));
  EXPECT_FALSE(may_include("src/kinds/a.cc", "decide/schedule/b.h"));
  EXPECT_FALSE(may_include("src/plans/react/a.cc", "node/monitor/b.h"));
  EXPECT_FALSE(may_include("src/decide/a.cc", "edge/kube/b.h"));
  EXPECT_FALSE(may_include("src/edge/kube/a.cc", "edge/store/b.h"));
  EXPECT_FALSE(may_include("src/edge/kube/a.cc", "embedded/b.h"));
  EXPECT_FALSE(may_include("src/embedded/a.cc", "app/b.h"));
  EXPECT_FALSE(may_include("src/base/a_test.cc", "model/b.h"));
  EXPECT_FALSE(may_include("src/base/a.cc", "b.h"));  // not from the root
}

TEST(Rules, DirectionExceptionsOfTheDecision) {
  EXPECT_TRUE(may_include("src/decide/admit/a.cc", "decide/schedule/placement.h"));
  EXPECT_FALSE(may_include("src/decide/admit/a.cc", "decide/schedule/gang.h"));
  EXPECT_FALSE(may_include("src/decide/schedule/a.cc", "decide/admit/b.h"));
  EXPECT_TRUE(may_include("src/decide/a.cc", "decide/admit/b.h"));
  EXPECT_TRUE(may_include("src/decide/a.cc", "decide/schedule/b.h"));
  EXPECT_TRUE(may_include("src/people/why/a.cc", "decide/b.h"));
  EXPECT_TRUE(may_include("src/people/why/a.cc", "decide/schedule/b.h"));
  EXPECT_TRUE(may_include("src/people/why/a.cc", "kinds/b.h"));
  EXPECT_FALSE(may_include("src/people/why/a.cc", "edge/kube/b.h"));
  EXPECT_FALSE(may_include("src/decide/schedule/a.cc", "kinds/b.h"));
  EXPECT_FALSE(may_include("src/decide/a.cc", "kinds/b.h"));
}

TEST(Rules, JudgeIndependence) {
  const char* bad = "#include \"decide/schedule/placement.h\"\n";
  EXPECT_TRUE(breaks(judge_independence, "test/judge/a.cc", bad));
  EXPECT_FALSE(breaks(judge_independence, "test/judge/a_test.cc", bad));
  EXPECT_FALSE(breaks(judge_independence, "test/scenarios/a.cc", bad));
  EXPECT_FALSE(breaks(judge_independence, "test/judge/a.cc",
                      "#include \"model/spec.h\"\n#include \"judge/b.h\"\n#include <map>\n"));
}

TEST(Rules, HeavyHeaders) {
  EXPECT_TRUE(breaks(heavy_headers, "src/model/a.cc", "#include <simdjson.h>\n"));
  EXPECT_TRUE(breaks(heavy_headers, "src/text/json.h", "#include <simdjson.h>\n"));
  EXPECT_FALSE(breaks(heavy_headers, "src/text/json.cc", "#include <simdjson.h>\n"));
  EXPECT_TRUE(breaks(heavy_headers, "src/kinds/a.cc", "#include <yaml.h>\n"));
  EXPECT_FALSE(breaks(heavy_headers, "src/kinds/a.cc", "#include \"text/yaml.h\"\n"));
  EXPECT_TRUE(breaks(heavy_headers, "src/app/a.h", "#include <CLI/CLI.hpp>\n"));
  EXPECT_FALSE(breaks(heavy_headers, "src/app/main.cc", "#include <CLI/CLI.hpp>\n"));
  EXPECT_TRUE(breaks(heavy_headers, "src/edge/kube/a.cc", "#include <boost/beast/http.hpp>\n"));
  EXPECT_TRUE(breaks(heavy_headers, "src/edge/kube/a.cc", "#include <grpcpp/grpcpp.h>\n"));
  EXPECT_TRUE(breaks(heavy_headers, "src/base/a.cc", "#include <rapidcheck.h>\n"));
  EXPECT_FALSE(breaks(heavy_headers, "src/base/a_test.cc", "#include <rapidcheck/gtest.h>\n"));
  EXPECT_TRUE(breaks(heavy_headers, "src/base/a.cc", "#include <iostream>\n"));
}

TEST(Rules, PureStagesByHeader) {
  for (const char* header : {"<thread>", "<mutex>", "<fstream>", "<filesystem>", "<sys/socket.h>",
                             "<random>", "<future>", "\"base/system_clock.h\""}) {
    std::string text = std::string("#include ") + header + "\n";
    EXPECT_TRUE(breaks(pure_stages, "src/decide/schedule/a.cc", text)) << header;
    EXPECT_FALSE(breaks(pure_stages, "src/app/a.cc", text)) << header;
    EXPECT_FALSE(breaks(pure_stages, "src/decide/schedule/a_test.cc", text)) << header;
  }
  EXPECT_FALSE(breaks(pure_stages, "src/base/mutex.h", "#include <mutex>\n"));
  EXPECT_FALSE(breaks(pure_stages, "src/base/system_clock.cc", "auto n = system_clock::now();\n"));
}

TEST(Rules, PureStagesByWord) {
  for (const char* code : {"auto n = std::chrono::system_clock::now();", "steady_clock::now();",
                           "auto n = time(nullptr);", "std::getenv(\"HOME\");", "std::thread t;",
                           "std::ifstream in;", "fopen(p, m);", "std::cout << 1;", "printf(f);",
                           "throw 1;", "int s = socket(a, b, c);", "std::filesystem::path p;"}) {
    EXPECT_TRUE(breaks(pure_stages, "src/decide/a.cc", code)) << code;
    EXPECT_FALSE(breaks(pure_stages, "src/edge/host/a.cc", code)) << code;
  }
  for (const char* code :
       {"// std::thread", "auto s = \"getenv\";", "int wait_time(int);",
        "Duration time(end - start);", "std::snprintf(a, b, c);", "int getenvs;"}) {
    EXPECT_FALSE(breaks(pure_stages, "src/decide/a.cc", code)) << code;
  }
}

TEST(Rules, DeterminismEverywhere) {
  for (const char* code :
       {"int r = rand();", "std::random_device d;", "std::normal_distribution<double> d;",
        "std::this_thread::sleep_for(s);", "sleep(1);", "std::shuffle(a, b, g);"}) {
    EXPECT_TRUE(breaks(determinism, "src/app/a.cc", code)) << code;
    EXPECT_TRUE(breaks(determinism, "src/base/a_test.cc", code)) << code;
  }
  EXPECT_FALSE(breaks(determinism, "src/app/a.cc", "int operand(int); operand(1);"));
  // Engines with a fixed seed are the same everywhere; only the distributions differ.
  EXPECT_FALSE(breaks(determinism, "src/base/a_test.cc", "std::mt19937 engine(7);"));
}

TEST(Rules, WideNumbersWhereDecisionsAreMade) {
  const char* cut = "auto index = static_cast<std::uint16_t>(all.size());";
  EXPECT_TRUE(breaks(wide_numbers, "src/model/shape.cc", cut));
  EXPECT_TRUE(breaks(wide_numbers, "src/decide/admit/a.cc", cut));
  EXPECT_FALSE(breaks(wide_numbers, "src/model/fit.cc", cut));
  EXPECT_FALSE(breaks(wide_numbers, "src/edge/nvml/a.cc", cut));
}

TEST(Rules, OneReaderOfPaths) {
  const char* reader = "std::string_view text_in(const Value& v, std::string_view key) {\n";
  EXPECT_TRUE(breaks(one_reader, "src/edge/kube/a.cc", reader));
  EXPECT_TRUE(breaks(one_reader, "test/why/a.cc",
                     "const text::Value* deep(const text::Value* v, "
                     "std::initializer_list<std::string_view> steps) {\n"));
  EXPECT_FALSE(breaks(one_reader, "src/text/a.cc", reader));
  EXPECT_FALSE(
      breaks(one_reader, "src/edge/kube/a.cc", "std::string_view name(std::string_view key) {\n"));
  EXPECT_FALSE(breaks(one_reader, "src/edge/kube/a.cc", "return text_at(v, key);\n"));
}

TEST(Rules, FileLength) {
  auto lines = [](std::size_t n) {
    std::string text;
    for (std::size_t i = 0; i < n; ++i) text += "\n";
    return text;
  };
  EXPECT_FALSE(breaks(file_length, "src/base/a.cc", lines(700)));
  EXPECT_TRUE(breaks(file_length, "src/base/a.cc", lines(701)));
  EXPECT_TRUE(breaks(file_length, "src/base/a_test.cc", lines(701)));
}

TEST(Rules, LineLengthCountsCharacters) {
  EXPECT_FALSE(breaks(line_length, "src/base/a.cc", std::string(100, 'x')));
  EXPECT_TRUE(breaks(line_length, "src/base/a.cc", std::string(101, 'x')));
  std::string wide;
  for (int i = 0; i < 100; ++i) wide += "\xC3\xA9";
  EXPECT_FALSE(breaks(line_length, "src/base/a.cc", wide));
}

TEST(Rules, Unfinished) {
  for (const char* mark : {"TO"
                           "DO",
                           "FIX"
                           "ME",
                           "X"
                           "XX"}) {
    EXPECT_TRUE(breaks(unfinished, "src/base/a.cc", std::string("// ") + mark + ": later\n"));
    EXPECT_TRUE(breaks(unfinished, "docs/a.md", mark));
  }
  EXPECT_FALSE(breaks(unfinished, "src/base/a.cc", "int kTODOS_LEFT;"));
}

TEST(Rules, RegistryHosts) {
  EXPECT_TRUE(breaks(registry_hosts, "docs/a.md",
                     "from https://pypi"
                     ".org/simple"));
  EXPECT_TRUE(breaks(registry_hosts, "scripts/x",
                     "curl registry.npmjs"
                     ".org"));
  EXPECT_FALSE(breaks(registry_hosts, "docs/a.md", "from the Debian package libfmt-dev"));
}

TEST(Rules, MarkdownTitle) {
  EXPECT_FALSE(breaks(markdown_title, "a.md", "# One\n\n## Part\n\n```\n# shell\n```\n"));
  EXPECT_TRUE(breaks(markdown_title, "a.md", "## Part\n"));
  EXPECT_TRUE(breaks(markdown_title, "a.md", "# One\n# Two\n"));
}

TEST(Rules, HeaderForm) {
  EXPECT_FALSE(breaks(header_form, "src/base/a.h", "// What it is.\n#pragma once\n"));
  EXPECT_EQ(check(header_form, "src/base/a.h", "#include <map>\n").size(), 2U);
  EXPECT_FALSE(breaks(header_form, "src/base/a.cc", ""));
}

TEST(Rules, AllRulesRunTogether) {
  EXPECT_EQ(all_rules(SourceText("src/base/a.h", "#include <thread>\n")).size(), 3U);
  EXPECT_TRUE(all_rules(SourceText("src/base/a.h", "// a\n#pragma once\n")).empty());
}

TEST(Rules, AServerHasTheBoundsOfItsKind) {
  const char* path = "src/app/a.cc";
  EXPECT_TRUE(breaks(server_bounds, path, "serve::HttpServerOptions http;\n"));
  EXPECT_TRUE(breaks(server_bounds, path, "start(serve::HttpServerOptions{.port = 1});\n"));
  EXPECT_FALSE(
      breaks(server_bounds, path, "serve::HttpServerOptions http = serve::api_server();\n"));
  EXPECT_FALSE(breaks(server_bounds, path, "void start(serve::HttpServerOptions options,\n"));
  EXPECT_FALSE(breaks(server_bounds, "src/edge/serve/a.cc", "HttpServerOptions out;\n"));
  EXPECT_FALSE(breaks(server_bounds, "src/app/a_test.cc", "serve::HttpServerOptions http;\n"));
}

TEST(Rules, NoTwoHiddenFunctionsOfOneName) {
  const auto hidden = [](const char* path, const std::string& code) {
    return SourceText(path, "namespace a {\nnamespace {\n" + code + "\n}\n}\n");
  };
  const auto count = [](std::vector<SourceText> sources) { return same_names(sources).size(); };
  const SourceText one = hidden("src/x/a.cc", "int f(int x) { return x; }");
  EXPECT_EQ(count({one, hidden("src/x/b.cc", "int f(const char* s,\n      int n) {\n}")}), 1U);
  EXPECT_EQ(count({one, hidden("src/y/b.cc", "int f() {}")}), 0U);
  EXPECT_EQ(count({one, hidden("src/x/b_test.cc", "int f() {}")}), 0U);
  EXPECT_EQ(count({one, hidden("src/x/b.cc", "struct S { int f() { return 1; } };")}), 0U);
  EXPECT_EQ(count({one, hidden("src/x/b.cc", "int g() { return f(1); }\nint f();")}), 0U);
  EXPECT_EQ(count({one, SourceText("src/x/b.cc", "namespace a {\nint f(int) {}\n}\n")}), 0U);
  EXPECT_EQ(count({hidden("src/x/a.cc", "int f(int) {}\nint f(char) {}")}), 0U);
  EXPECT_EQ(count({hidden("bench/p_a.cc", "int f() {}"), hidden("bench/q.cc", "int f() {}")}), 0U);
  EXPECT_EQ(count({hidden("bench/p_a.cc", "int f() {}"), hidden("bench/p_b.cc", "int f() {}")}),
            1U);
  EXPECT_EQ(count({hidden("src/x/a.cc", "TEST(A, B) {}"), hidden("src/x/b.cc", "TEST(A, C) {}")}),
            0U);
}

}  // namespace
}  // namespace berth::tidy
