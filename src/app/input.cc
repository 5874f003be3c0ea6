#include "app/input.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <istream>
#include <set>
#include <system_error>

#include "text/json.h"
#include "text/yaml.h"

namespace berth::app {

namespace {

namespace fs = std::filesystem;
using kinds::Note;

constexpr const char* kStdinName = "(standard input)";
constexpr std::size_t kChunk = std::size_t{1} << 20;
constexpr int kMaxFolderDepth = 64;

struct FoundFile {
  std::string name;  // as shown
  bool standard_input = false;
  std::uint64_t size = 0;  // 0 when not known (a pipe)
};

bool is_manifest(const fs::path& path) {
  const std::string extension = path.extension().string();
  return extension == ".yaml" || extension == ".yml" || extension == ".json";
}

bool is_hidden(const fs::path& path) {
  const std::string name = path.filename().string();
  return !name.empty() && name[0] == '.';
}

Note trouble(std::string source, std::string message, int document = 0, int line = 0) {
  Note note;
  note.source = std::move(source);
  note.document = document;
  note.line = line;
  note.message = std::move(message);
  return note;
}

// Finds the files behind the paths of the command line. Never throws: every filesystem call reports
// through an error_code.
class FileFinder {
 public:
  explicit FileFinder(std::vector<Note>& troubles) : troubles_(troubles) {}

  void add(const std::string& path) {
    if (path == "-") return add_standard_input();
    std::error_code code;
    const fs::file_status status = fs::status(path, code);
    if (status.type() == fs::file_type::not_found) {
      return fail(path, "no such file or folder");
    }
    if (status.type() == fs::file_type::none)
      return fail(path, "cannot be opened: " + code.message());
    if (status.type() != fs::file_type::directory) return add_file(path, status);
    const std::size_t before = seen_;
    const std::size_t troubles_before = troubles_.size();
    walk(path, 0);
    if (seen_ == before && troubles_.size() == troubles_before) {
      fail(path, "the folder holds no .yaml, .yml or .json file");
    }
  }

  std::vector<FoundFile> take() { return std::move(files_); }

 private:
  void fail(const std::string& path, std::string message) {
    troubles_.push_back(trouble(path, std::move(message)));
  }

  void add_standard_input() {
    if (std::any_of(files_.begin(), files_.end(), [](const auto& f) { return f.standard_input; })) {
      return;
    }
    files_.push_back({kStdinName, true, 0});
  }

  void add_file(const fs::path& path, const fs::file_status& status) {
    ++seen_;
    std::error_code code;
    FoundFile file{path.string(), false, 0};
    if (status.type() == fs::file_type::regular) {
      const fs::path real = fs::canonical(path, code);
      if (!code && !known_files_.insert(real.string()).second) return;
      file.size = fs::file_size(path, code);
      if (code) file.size = 0;
    }
    if (files_.size() >= kMaxInputFiles) {
      if (!full_) fail(path.string(), "more than 100000 files, which is the limit");
      full_ = true;
      return;
    }
    files_.push_back(std::move(file));
  }

  void walk(const fs::path& folder, int depth) {
    std::error_code code;
    const fs::path real = fs::canonical(folder, code);
    if (code) return fail(folder.string(), "cannot be opened: " + code.message());
    if (!known_folders_.insert(real.string()).second) return;  // a link back
    if (depth > kMaxFolderDepth) return fail(folder.string(), "folders nest deeper than 64 levels");
    std::vector<fs::path> entries;
    for (fs::directory_iterator it(folder, code), end; !code && it != end; it.increment(code)) {
      if (!is_hidden(it->path())) entries.push_back(it->path());
    }
    if (code) return fail(folder.string(), "cannot be listed: " + code.message());
    std::sort(entries.begin(), entries.end(),
              [](const fs::path& a, const fs::path& b) { return a.native() < b.native(); });
    for (const fs::path& entry : entries) {
      if (full_) return;
      std::error_code ignored;
      const fs::file_status status = fs::status(entry, ignored);
      if (status.type() == fs::file_type::directory) {
        walk(entry, depth + 1);
      } else if (status.type() == fs::file_type::regular && is_manifest(entry)) {
        add_file(entry, status);
      } else if (status.type() == fs::file_type::not_found && is_manifest(entry)) {
        fail(entry.string(), "a link to nothing");
      }
    }
  }

  std::vector<Note>& troubles_;
  std::vector<FoundFile> files_;
  std::set<std::string> known_files_, known_folders_;
  std::size_t seen_ = 0;
  bool full_ = false;
};

// "line 7: column 3: ..." gives 7 and cuts it off; 0 when there is none.
int take_line(std::string& message) {
  constexpr std::string_view kPrefix = "line ";
  if (!std::string_view(message).starts_with(kPrefix)) return 0;
  int line = 0;
  const char* first = message.data() + kPrefix.size();
  const auto [end, code] = std::from_chars(first, message.data() + message.size(), line);
  if (code != std::errc() || line < 0) return 0;
  std::string_view rest(end, static_cast<std::size_t>(message.data() + message.size() - end));
  while (!rest.empty() && (rest[0] == ':' || rest[0] == ' ')) rest.remove_prefix(1);
  message = std::string(rest);
  return line;
}

class InputReader {
 public:
  InputReader(const InputOptions& options, std::istream& standard_input, Progress& progress)
      : options_(options), standard_input_(standard_input), progress_(progress) {}

  Input run() {
    FileFinder finder(input_.unreadable);
    for (const std::string& path : options_.paths) finder.add(path);
    const std::vector<FoundFile> files = finder.take();
    for (const FoundFile& file : files) total_ += file.size;
    for (const FoundFile& file : files) {
      if (!read_file(file)) break;
    }
    progress_.finish();
    input_.inputs = reader_.finish();
    return std::move(input_);
  }

 private:
  void fail(const FoundFile& file, std::string message, int document = 0, int line = 0) {
    input_.unreadable.push_back(trouble(file.name, std::move(message), document, line));
  }

  // False when the bound on all input is reached: nothing after it can be read.
  bool read_file(const FoundFile& file) {
    ++input_.files;
    if (input_.bytes + file.size > options_.max_bytes) return too_big(file);
    std::string bytes;
    bytes.reserve(file.size);
    if (file.standard_input) {
      if (!read_stream(file, standard_input_, bytes)) return false;
    } else {
      errno = 0;
      std::ifstream stream(file.name, std::ios::binary);
      if (!stream) {
        const int error = errno;
        fail(file, std::string("cannot be opened") +
                       (error == 0 ? "" : ": " + std::generic_category().message(error)));
        return true;
      }
      if (!read_stream(file, stream, bytes)) return false;
    }
    if (stopped_) {
      stopped_ = false;
      return true;
    }
    parse(file, bytes);
    done_ += bytes.size();
    return true;
  }

  bool too_big(const FoundFile& file) {
    fail(file, "the input is larger than " + show_bytes(options_.max_bytes) +
                   ", which is the limit; --max-input raises it");
    return false;
  }

  bool read_stream(const FoundFile& file, std::istream& stream, std::string& bytes) {
    while (stream) {
      const std::size_t before = bytes.size();
      bytes.resize(before + kChunk);
      stream.read(bytes.data() + before, kChunk);
      bytes.resize(before + static_cast<std::size_t>(stream.gcount()));
      const std::string_view fresh = std::string_view(bytes).substr(before);
      if (const std::size_t zero = fresh.find('\0'); zero != std::string_view::npos) {
        fail(file, "not a text file: byte " + std::to_string(before + zero) +
                       " is zero; manifests are UTF-8");
        stopped_ = true;
        return true;
      }
      input_.bytes += fresh.size();
      if (input_.bytes > options_.max_bytes) return too_big(file);
      progress_.update("reading " + file.name, done_ + bytes.size(), total_);
    }
    if (stream.bad()) {
      fail(file, "cannot be read: is it a folder or a broken pipe?");
      stopped_ = true;
    }
    return true;
  }

  void parse(const FoundFile& file, const std::string& bytes) {
    int documents = 0;
    const auto take = [&](text::Document document) {
      const auto share = static_cast<std::uint64_t>(std::max(0, document.root().line()));
      if (options_.keep) {
        options_.keep(file.name, ++documents, std::move(document));
      } else {
        reader_.add(file.name, ++documents, document);
      }
      progress_.update("parsing " + file.name + ", line " + std::to_string(share), done_, total_);
    };
    text::Limits limits;
    limits.max_bytes = static_cast<std::size_t>(std::min(options_.max_bytes, kMostMaxInput));
    const std::size_t start = bytes.find_first_not_of(" \t\r\n");
    const bool json_like =
        start != std::string::npos && (bytes[start] == '{' || bytes[start] == '[');
    const bool json_name = file.name.ends_with(".json");
    if (json_like || json_name) {
      Result<text::Document> parsed = text::parse_json(bytes, {.limits = limits});
      if (parsed.ok()) return take(std::move(*parsed));
      if (json_name) return fail_parse(file, 1, parsed.error());
    }
    text::YamlOptions yaml;
    yaml.limits = limits;
    const Status status = text::read_yaml(
        bytes,
        [&](text::Document document) {
          take(std::move(document));
          return Status();
        },
        yaml);
    if (!status.ok()) fail_parse(file, documents + 1, status.error());
  }

  void fail_parse(const FoundFile& file, int document, const Error& error) {
    std::string message = error.to_string();
    const int line = take_line(message);
    fail(file, std::move(message), document, line);
  }

  const InputOptions& options_;
  std::istream& standard_input_;
  Progress& progress_;
  kinds::ManifestReader reader_;
  Input input_;
  std::uint64_t total_ = 0, done_ = 0;
  bool stopped_ = false;  // this file is reported; go on with the next
};

}  // namespace

Input read_input(const InputOptions& options, std::istream& standard_input, Progress& progress) {
  return InputReader(options, standard_input, progress).run();
}

}  // namespace berth::app
