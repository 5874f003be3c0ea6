// Manifests from files, folders and standard input, read within a bound.
//
// A folder stands for its *.yaml, *.yml and *.json files, recursively, in byte order of their
// paths; names that begin with a dot are left out, a folder reached twice (a link back to a parent)
// is read once, and so is a file. "-" is standard input. Documents are handed to the ManifestReader
// one by one and dropped, so memory is bounded by one file and what is kept of its objects.
//
// What cannot be read or parsed is reported in unreadable, each with the file, the document and the
// line; the caller then plans nothing, because half of a cluster would give a wrong plan.
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

#include "app/progress.h"
#include "kinds/manifest.h"
#include "text/value.h"

namespace berth::app {

inline constexpr std::uint64_t kDefaultMaxInput = std::uint64_t{256} << 20;
inline constexpr std::uint64_t kMostMaxInput = (std::uint64_t{4} << 30) - 1;
inline constexpr std::size_t kMaxInputFiles = 100'000;

struct InputOptions {
  std::vector<std::string> paths;
  std::uint64_t max_bytes = kDefaultMaxInput;  // all files together
  // Where given, documents go there and not to a ManifestReader: Input::inputs stays empty.
  std::function<void(const std::string& file, int document, text::Document)> keep = {};
};

struct Input {
  kinds::Inputs inputs;
  std::vector<kinds::Note> unreadable;  // empty: everything was read
  std::size_t files = 0;
  std::uint64_t bytes = 0;
};

Input read_input(const InputOptions& options, std::istream& standard_input, Progress& progress);

}  // namespace berth::app
