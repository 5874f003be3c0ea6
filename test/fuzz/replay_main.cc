// fuzz_replay CORPUS: runs every fuzz target over the files of its folder of CORPUS, in the order
// of their names. A target without inputs and a folder without a target fail.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "fuzz.h"

namespace {

namespace fs = std::filesystem;

int replay(const fs::path& folder, berth::fuzz::Entry entry) {
  std::error_code failed;
  std::vector<fs::path> files;
  for (const auto& found : fs::directory_iterator(folder, failed)) {
    if (found.is_regular_file()) files.push_back(found.path());
  }
  if (failed || files.empty()) {
    std::fprintf(stderr, "found no inputs in %s, want at least one\n", folder.c_str());
    return 1;
  }
  std::sort(files.begin(), files.end());
  std::printf("%s: %zu inputs\n", folder.filename().c_str(), files.size());
  std::fflush(stdout);
  for (const fs::path& file : files) {
    std::ifstream in(file, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    entry(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const auto& targets = berth::fuzz::Target::all();
  if (argc != 2 || targets.empty()) {
    std::fprintf(stderr, "usage: %s CORPUS_FOLDER\n", argv[0]);
    return 2;
  }
  const fs::path corpus = argv[1];
  int bad = 0;
  for (const auto& [name, entry] : targets) bad += replay(corpus / name, entry);
  std::error_code failed;
  for (const auto& found : fs::directory_iterator(corpus, failed)) {
    if (targets.contains(found.path().filename().string())) continue;
    std::fprintf(stderr, "found %s, want the name of a target\n", found.path().c_str());
    ++bad;
  }
  return bad == 0 && !failed ? 0 : 1;
}
