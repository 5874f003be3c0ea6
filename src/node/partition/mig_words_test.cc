#include "node/partition/mig_words.h"

#include <gtest/gtest.h>

namespace berth::partition {
namespace {

TEST(MigWords, RequestsReadAsTheyWereWritten) {
  const std::vector<HelperRequest> requests = {
      {std::nullopt},
      {MigStep{MigStep::Kind::kModeOn, "GPU-0", {}, 0, 0, {}}},
      {MigStep{MigStep::Kind::kModeOff, "GPU-0", {}, 0, 0, {}}},
      {MigStep{MigStep::Kind::kCreate, "GPU-0", "1g.18gb+me", 6, 0, {}}},
      {MigStep{MigStep::Kind::kFill, "GPU-0", "3g.71gb", 4, 11, {}}},
      {MigStep{MigStep::Kind::kDestroy, "GPU-0", "3g.71gb", 4, 11, {"MIG-a", "MIG-b"}}},
      {MigStep{MigStep::Kind::kDestroy, "GPU-0", "3g.71gb", 4, 11, {}}},
  };
  for (const HelperRequest& request : requests) {
    const std::string text = write_request(request);
    const Result<HelperRequest> read = read_request(text);
    ASSERT_TRUE(read.ok()) << text << read.error().to_string();
    EXPECT_EQ(*read, request) << text;
  }
}

TEST(MigWords, WhatIsNotInTheListIsRefused) {
  const std::pair<std::string, std::string> cases[] = {
      {"", ""},
      {"[]", "want an object with a verb"},
      {"{}", "want one of mig-list, mig-mode-on"},
      {R"({"verb":"sh"})", R"(verb: found string "sh", want one of mig-list)"},
      {R"({"verb":"gpu-reset","gpu":"GPU-0"})", "verb: found string"},
      {R"({"verb":["mig-list"]})", "verb: found array"},
      {R"({"verb":"mig-list","gpu":"GPU-0"})", "gpu: found an unknown field, want those of"},
      {R"({"verb":"mig-mode-on"})", "gpu: found nothing"},
      {R"({"verb":"mig-mode-on","gpu":"GPU-0","start":1})", "start: found an unknown field"},
      {R"({"verb":"mig-mode-on","gpu":"GPU-0; rm -rf /"})", "want a UUID"},
      {R"({"verb":"mig-mode-on","gpu":"../0"})", "want a UUID"},
      {R"({"verb":"mig-create","gpu":"GPU-0","profile":"1g.18gb"})", "start: found nothing"},
      {R"({"verb":"mig-create","gpu":"GPU-0","profile":"1g.18gb","start":64})",
       "start: found number 64, want an integer 0..63"},
      {R"({"verb":"mig-create","gpu":"GPU-0","profile":"1g.18gb","start":"6"})", "found string"},
      {R"({"verb":"mig-create","gpu":"GPU-0","profile":"1g;id","start":1})", "want a MIG profile"},
      {R"({"verb":"mig-destroy","gpu":"GPU-0","profile":"1g.18gb","start":1,"instance":3})",
       "compute: found nothing"},
      {R"({"verb":"mig-list","verb":"mig-list"})", ""},
  };
  for (const auto& [text, wanted] : cases) {
    const Result<HelperRequest> read = read_request(text);
    ASSERT_FALSE(read.ok()) << text;
    EXPECT_NE(read.error().to_string().find(wanted), std::string::npos) << text << "\n"
                                                                        << read.error().to_string();
  }
  EXPECT_FALSE(read_request(std::string(kMaxHelperRequest + 1, ' ')).ok());
}

TEST(MigWords, AnswersReadAsTheyWereWritten) {
  MigGpu gpu;
  gpu.uuid = "GPU-0";
  gpu.index = 3;
  gpu.name = "NVIDIA H200";
  gpu.pci_device = 0x233510de;
  gpu.capable = gpu.enabled = true;
  gpu.geometry = usual_geometry(7, 143'771);
  for (MigProfile& profile : gpu.geometry.profiles) profile.engines = {};  // nobody needs them
  gpu.cuts = {{4, "3g.71gb", 0, 4, {{0, 3, "MIG-a"}}}, {9, "1g.18gb", 6, 1, {}}};
  const auto read = read_answer(write_answer(std::vector<MigGpu>{gpu}));
  ASSERT_TRUE(read.ok()) << read.error().to_string();
  ASSERT_EQ(read->size(), 1u);
  EXPECT_EQ(read->front(), gpu);
  EXPECT_TRUE(read_answer(write_answer(Status())).ok());
  const auto refused = read_answer(write_answer(Status(Error(Code::kConflict, "in use"))));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error(), Error(Code::kConflict, "in use"));
  const auto cut = read_answer(R"({"ok":false,"error":")" + std::string(1'023, 'a') + "é\"}");
  EXPECT_EQ(cut.error().message(), std::string(1'023, 'a')) << "not in the middle of a character";
  for (const char* bad : {"", "{}", "null", R"({"ok":1})", R"({"ok":true,"gpus":{}})",
                          R"({"ok":true,"gpus":[{"uuid":"GPU-0"}]})"}) {
    EXPECT_FALSE(read_answer(bad).ok()) << bad;
  }
}

}  // namespace
}  // namespace berth::partition
