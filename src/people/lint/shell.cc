#include "people/lint/shell.h"

#include <algorithm>

namespace berth::lint {

namespace {

class ShellReader {
 public:
  explicit ShellReader(std::string_view script) : script_(script) {}

  std::vector<ShellCommand> run() {
    while (at_ < script_.size()) step();
    end_command();
    return std::move(out_);
  }
  std::optional<std::size_t> open_document() const { return open_; }

 private:
  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < script_.size() ? script_[at_ + ahead] : '\0';
  }

  void step() {
    const char c = peek();
    if (c == '\\' && (peek(1) == '\n' || (peek(1) == '\r' && peek(2) == '\n'))) {
      at_ += peek(1) == '\n' ? 2 : 3;
    } else if (c == ' ' || c == '\t' || c == '\r') {
      ++at_;
    } else if (c == '#') {
      at_ = std::min(script_.find('\n', at_), script_.size());
    } else if (c == '\n') {
      end_command();
      ++at_;
      skip_documents();
    } else if (c == ';' || c == '|' || c == '&' || c == '(' || c == ')') {
      end_command();
      ++at_;
    } else if (c == '<' && peek(1) == '<' && peek(2) != '<') {
      here_document();
    } else {
      word();
    }
  }

  void here_document() {
    document_at_ = at_;
    at_ += peek(2) == '-' ? 3 : 2;
    while (peek() == ' ') ++at_;
    const std::size_t from = at_;
    while (at_ < script_.size() &&
           std::string_view(" \t\r\n;&|<>").find(peek()) == std::string_view::npos)
      ++at_;
    std::string mark;
    for (const char c : script_.substr(from, at_ - from)) {
      if (c != '\'' && c != '"' && c != '\\') mark += c;
    }
    if (!mark.empty()) documents_.push_back(std::move(mark));
  }

  // The bodies of the here documents of the line that just ended.
  void skip_documents() {
    for (const std::string& mark : documents_) {
      bool ended = false;
      while (at_ < script_.size() && !ended) {
        const std::size_t end = std::min(script_.find('\n', at_), script_.size());
        std::string_view line = script_.substr(at_, end - at_);
        while (!line.empty() && line.front() == '\t') line.remove_prefix(1);
        if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
        at_ = std::min(end + 1, script_.size());
        ended = line == mark;
      }
      if (!ended && !open_) open_ = document_at_;
    }
    documents_.clear();
  }

  void word() {
    ShellWord made;
    made.begin = at_;
    while (at_ < script_.size()) {
      const char c = peek();
      if (c == '\\') {
        if (peek(1) == '\n') break;
        if (peek(1) != '\0') made.text += peek(1);
        at_ += 2;
      } else if (c == '\'' || c == '"') {
        quoted(c, made.text);
      } else if (c == '$' && peek(1) == '(') {
        substitution(made.text);
      } else if (std::string_view(" \t\r\n;|&()").find(c) != std::string_view::npos) {
        break;
      } else {
        made.text += c;
        ++at_;
      }
    }
    at_ = std::min(at_, script_.size());
    made.end = at_;
    if (made.end == made.begin) {
      ++at_;
      return;
    }
    command_.push_back(std::move(made));
  }

  void quoted(char quote, std::string& text) {
    ++at_;
    while (at_ < script_.size() && peek() != quote) {
      if (quote == '"' && peek() == '\\' && (peek(1) == '"' || peek(1) == '\\' || peek(1) == '$')) {
        ++at_;
      }
      text += peek();
      ++at_;
    }
    ++at_;
  }

  void substitution(std::string& text) {
    int depth = 0;
    while (at_ < script_.size()) {
      if (peek() == '(') ++depth;
      if (peek() == ')') --depth;
      text += peek();
      ++at_;
      if (depth == 0 && text.back() == ')') return;
    }
  }

  void end_command() {
    if (!command_.empty()) out_.push_back(std::move(command_));
    command_.clear();
  }

  std::string_view script_;
  std::size_t at_ = 0;
  ShellCommand command_;
  std::vector<std::string> documents_;
  std::size_t document_at_ = 0;
  std::optional<std::size_t> open_;
  std::vector<ShellCommand> out_;
};

}  // namespace

std::vector<ShellCommand> shell_commands(std::string_view script) {
  return ShellReader(script).run();
}

std::optional<std::size_t> open_here_document(std::string_view script) {
  ShellReader reader(script);
  reader.run();
  return reader.open_document();
}

}  // namespace berth::lint
