#include "kinds/schema/regex.h"

#include "kinds/schema/schema_for_test.h"

namespace berth::sim {
namespace {

std::string repeated(std::string_view text, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += text;
  return out;
}

// Pieces that are made and thrown away again leave a small program behind.
TEST(Regexes, CompilingIsBounded) {
  EXPECT_FALSE(Regex::compile(repeated(".{1000}{9}{0}", 1'000)).ok());
  EXPECT_FALSE(Regex::compile("." + repeated("?*", 100'000)).ok());
  std::int64_t work = 2'000;
  EXPECT_TRUE(Regex::compile("a{1000}", work).ok());
  EXPECT_LT(work, 1'000);
  EXPECT_FALSE(Regex::compile("a{1000}", work).ok()) << "what is left is for all patterns";
}

TEST(Regexes, MatchingIsBounded) {
  const auto regex = Regex::compile("^(([ab]*a[ab]{200})|([ab]*b[ab]{180}))$");
  ASSERT_TRUE(regex.ok());
  std::int64_t work = 500'000;
  EXPECT_FALSE(regex->matches(std::string(100'000, 'a') + "b", work));
  EXPECT_LT(work, 0);
  work = 500'000;
  EXPECT_TRUE(regex->matches(std::string(300, 'a') + "b", work));
  EXPECT_GT(work, 0);
}

// As kube-apiserver reads them, beyond what people usually write.
TEST(Regexes, TheSyntaxIsGos) {
  const auto matches = [](const char* pattern, const char* text) {
    const auto regex = Regex::compile(pattern);
    EXPECT_TRUE(regex.ok()) << pattern;
    return regex.ok() && regex->matches(text);
  };
  EXPECT_TRUE(matches("(?i)^abc$", "aBC"));
  EXPECT_TRUE(matches("\\bword\\b", "a word b"));
  EXPECT_TRUE(matches("^\\p{Greek}+$", "\xce\xb1\xce\xb2"));
  EXPECT_TRUE(matches("^(?<year>[0-9]{4})$", "2026"));
  EXPECT_TRUE(matches("^(?P<year>[0-9]{4})$", "2026"));
  EXPECT_TRUE(matches("^\\Q(?<x>\\E$", "(?<x>"));
  EXPECT_TRUE(matches("^[(?<x>]+$", "<x(?>"));
  EXPECT_TRUE(matches("^[[:alpha:]]+$", "ab"));
  for (const char* bad : {"\\C", "(?<=a)b", "(?=a)", "\\1", "(?<x", "\\p{Nobody}", "a{1001}"}) {
    const auto regex = Regex::compile(bad);
    ASSERT_FALSE(regex.ok()) << bad;
    EXPECT_EQ(regex.error().message().find("must be a valid regular expression, but isn't: "), 0u);
  }
}

TEST(Regexes, ClassesAreSetsOfRanges) {
  const auto overlap = Regex::compile("^[m-za-fc-pß\\d]+$");
  ASSERT_TRUE(overlap.ok());
  EXPECT_TRUE(overlap->matches("abcdefghijklmnopqrstuvwxyz0159ß"));
  EXPECT_FALSE(overlap->matches("A"));
  const auto negated = Regex::compile("^[^b-dx]+$");
  ASSERT_TRUE(negated.ok());
  EXPECT_TRUE(negated->matches("aeyz\n"));
  for (const char* text : {"b", "c", "d", "x", "axa"}) EXPECT_FALSE(negated->matches(text)) << text;
}

text::Document crd_with(std::string_view properties) {
  return doc(
      "{'apiVersion':'apiextensions.k8s.io/v1','kind':'CustomResourceDefinition','metadata':"
      "{'name':'ws.a.b'},'spec':{'group':'a.b','scope':'Namespaced','names':{'plural':'ws',"
      "'kind':'W','singular':'w','listKind':'WList'},'versions':[{'name':'v1','served':true,"
      "'storage':true,'schema':{'openAPIV3Schema':{'type':'object','properties':" +
      std::string(properties) + "}}}]}}");
}

TEST(Regexes, TextsOfAnObjectShareTheirWork) {
  const text::Document crd = crd_with(
      "{'x':{'type':'array','items':{'type':'string','pattern':'(.?){1000}b'}},"
      "'y':{'type':'string','not':{'pattern':'(.?){1000}b'}}}");
  const auto kinds = read_crd(crd.root());
  ASSERT_TRUE(kinds.ok()) << kinds.error().to_string();
  const auto causes = [&](const std::string& field) {
    const text::Document object = doc(
        "{'apiVersion':'a.b/v1','kind':'W','metadata':{'name':'n','namespace':'d'}," + field + "}");
    return words_of(validate(*kinds->front(), object.root()));
  };
  const std::string text = "'" + std::string(500, 'a') + "b'";
  EXPECT_EQ(causes("'x':[" + text + "]"), "");
  const std::string many = causes("'x':[" + text + repeated("," + text, 50) + "]");
  EXPECT_NE(many.find("too long for their patterns"), std::string::npos) << many;
  const std::string negated = causes("'y':'" + std::string(100'000, 'a') + "'");
  EXPECT_NE(negated.find("too long for their patterns"), std::string::npos) << negated;
}

TEST(Regexes, PatternsOfADefinitionShareTheirMemory) {
  std::string properties = "{'a':{'type':'string'}";
  for (int i = 0; i < 1'000; ++i) {
    properties += ",'p" + std::to_string(i) + "':{'type':'string','pattern':'" + std::to_string(i) +
                  ".{1000}'}";
  }
  EXPECT_FALSE(read_crd(crd_with(properties + "}").root()).ok());
}

}  // namespace
}  // namespace berth::sim
