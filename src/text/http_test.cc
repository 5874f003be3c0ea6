#include "text/http.h"

#include <gtest/gtest.h>

#include "text/base64.h"

namespace berth::text {
namespace {

TEST(HttpTargetTest, SplitsAndDecodes) {
  const auto target = parse_http_target("/api/v1//namespaces/a%2Fb?x=1&y&z=a+b%26c&x=2");
  ASSERT_TRUE(target.ok());
  EXPECT_EQ(target->path, (std::vector<std::string>{"api", "v1", "namespaces", "a/b"}));
  EXPECT_EQ(target->get("x"), "1");
  EXPECT_EQ(target->get("y"), "");
  EXPECT_EQ(target->get("z"), "a b&c");
  EXPECT_EQ(target->get("w"), std::nullopt);
  EXPECT_EQ(target->query.size(), 4u);
  EXPECT_TRUE(parse_http_target("/")->path.empty());
  EXPECT_TRUE(parse_http_target("/a?")->query.empty());
}

TEST(HttpTargetTest, RefusesWhatIsNoTarget) {
  for (const char* bad : {"", "a", "/%", "/%4", "/%zz", "/a%00", "/a/../b", "/./", "/?a=%g1"}) {
    EXPECT_FALSE(parse_http_target(bad).ok()) << bad;
  }
  EXPECT_FALSE(parse_http_target("/" + std::string(9000, 'a')).ok());
}

TEST(HttpTargetTest, EncodedTextComesBack) {
  std::string all;
  for (int c = 1; c < 256; ++c) all += static_cast<char>(c);
  const auto target = parse_http_target("/" + percent_encode(all) + "?k=" + percent_encode(all));
  ASSERT_TRUE(target.ok());
  EXPECT_EQ(target->path, std::vector<std::string>{all});
  EXPECT_EQ(target->get("k"), all);
}

TEST(HttpHeaderTest, NamesHaveNoCase) {
  const HttpHeaders headers = {{"Content-Type", "a"}, {"content-type", "b"}};
  EXPECT_EQ(find_header(headers, "CONTENT-TYPE"), "a");
  EXPECT_EQ(find_header(headers, "Content"), std::nullopt);
}

TEST(Base64Test, BothWays) {
  const std::pair<std::string, std::string> cases[] = {{"", ""},
                                                       {"f", "Zg=="},
                                                       {"fo", "Zm8="},
                                                       {"foo", "Zm9v"},
                                                       {"foob", "Zm9vYg=="},
                                                       {"fooba", "Zm9vYmE="},
                                                       {"foobar", "Zm9vYmFy"},
                                                       {"\xff\xfe", "//4="}};
  for (const auto& [plain, coded] : cases) {
    EXPECT_EQ(base64_encode(plain), coded);
    EXPECT_EQ(*base64_decode(coded), plain);
  }
  EXPECT_EQ(*base64_decode("Zm9v\r\nYmFy\n"), "foobar");
  EXPECT_EQ(*base64_decode("Zg==\n"), "f");
  for (const char* bad :
       {"Z", "Zg", "Zg=", "Zg===", "Z===", "Zg==Zg==", "Zm9v YmFy", "Zm9*", "="}) {
    EXPECT_FALSE(base64_decode(bad).ok()) << bad;
  }
}

}  // namespace
}  // namespace berth::text
