// Builds a Document from the inside out, in the order a parser meets things.
//
//   begin_object(line); key("a", line); number("1", line); end_object();
//
// Checks depth, the number of nodes and duplicate keys; the first failed check stays as the error
// and later calls do nothing useful, so a parser may test failed() where it is convenient. Text is
// not copied unless it comes through copy(): it must live in the arena, or longer than the
// Document. Calls in a wrong order are programmer errors.
//
// Cost: children wait on a stack and move to the arena when their parent ends, so arrays and
// objects are contiguous. Duplicate keys: quadratic up to 16 members, sorted beyond.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/value.h"

namespace berth::text {

class Builder {
 public:
  explicit Builder(const Limits& limits);

  void begin_array(int line) { open(Kind::kArray, line); }
  void begin_object(int line) { open(Kind::kObject, line); }
  void end();  // the innermost open array or object
  void key(std::string_view text, int line, std::uint32_t column = 0) {
    if (failed()) return;
    members_.push_back({text, Value()});
    places_.push_back({line, column});
  }

  void null(int line) { add(Value::make_null(line)); }
  void boolean(bool v, int line) { add(Value::make_bool(v, line)); }
  void number(std::string_view lexeme, int line) { add(Value::make_number(lexeme, line)); }
  void string(std::string_view text, int line) { add(Value::make_string(text, line)); }
  void deep_copy(const Value& value);  // texts are copied as well; counts every node

  // A finished value whose memory outlives the Document; counted as one node.
  void add(const Value& value) {
    if (++nodes_ > limits_.max_nodes) over_nodes();
    if (failure_ != Failure::kNone) return;
    last_ = value;
    if (frames_.empty()) {
      root_ = value;
    } else if (frames_.back().kind == Kind::kObject) {
      members_.back().value = value;
    } else {
      items_.push_back(value);
    }
  }

  // The value that was completed last; its memory stays where it is until the Document goes.
  Value last() const { return last_; }
  // Takes the newest member of the open object out again. Only right after its value.
  Member pop_member();
  // The members of the open object so far; valid until the next call.
  std::span<const Member> open_members() const;

  std::string_view copy(std::string_view text) { return arena_.copy(text); }
  Arena& arena() { return arena_; }

  int depth() const { return static_cast<int>(frames_.size()); }
  std::size_t nodes() const { return nodes_; }
  bool failed() const { return failure_ != Failure::kNone; }
  Error error() const;  // only when failed()
  // Where a duplicate key stands; {0, 0} for other failures.
  int failed_line() const { return failed_line_; }
  std::uint32_t failed_column() const { return failed_column_; }

  Document finish() && { return Document(std::move(arena_), root_); }

 private:
  enum class Failure : std::uint8_t { kNone, kDepth, kNodes, kDuplicate };
  struct Frame {
    Kind kind;
    int line;
    std::size_t first;  // of its children in items_ or members_
  };
  struct KeyPlace {
    int line;
    std::uint32_t column;
  };

  void open(Kind kind, int line);
  void over_nodes();
  void check_duplicates(std::size_t first);
  void fail_duplicate(std::size_t member);

  Limits limits_;
  Arena arena_;
  Value root_;
  Value last_;
  std::vector<Frame> frames_;
  std::vector<Value> items_;
  std::vector<Member> members_;
  std::vector<KeyPlace> places_;  // beside members_
  std::vector<std::pair<std::string_view, std::size_t>> sorted_;
  std::size_t nodes_ = 0;
  Failure failure_ = Failure::kNone;
  std::string_view failed_key_;
  int failed_line_ = 0;
  std::uint32_t failed_column_ = 0;
};

}  // namespace berth::text
