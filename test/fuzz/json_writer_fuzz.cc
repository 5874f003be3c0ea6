// The JSON writer: any calls in an allowed order, with any bytes, give JSON the reader takes.
#include <cmath>
#include <cstring>

#include "fuzz.h"
#include "text/json.h"
#include "text/json_writer.h"

namespace {

// Reads the input as a program: one byte says what to write next.
class Program {
 public:
  explicit Program(std::string_view bytes) : bytes_(bytes) {}

  void run(berth::text::JsonWriter& out, int depth) {
    const int op = depth > 50 ? 0 : take() % 8;
    switch (op) {
      case 1:
        return out.value(take() % 2 == 0);
      case 2:
        return out.value(word<std::int64_t>());
      case 3:
        return out.value(word<std::uint64_t>());
      case 4: {
        const auto v = word<double>();
        return out.value(std::isfinite(v) ? v : 0.0);
      }
      case 5:
        return out.value(text());
      case 6:
        return list(out, depth);
      case 7:
        return object(out, depth);
      default:
        return out.null();
    }
  }

 private:
  void list(berth::text::JsonWriter& out, int depth) {
    out.array([&] {
      for (int n = take() % 5; n > 0; --n) run(out, depth + 1);
    });
  }
  void object(berth::text::JsonWriter& out, int depth) {
    out.object([&] {
      for (int n = take() % 5; n > 0; --n) {
        std::string key = std::to_string(n);  // keys must differ
        key += text();
        out.key(key);
        run(out, depth + 1);
      }
    });
  }
  unsigned char take() {
    if (bytes_.empty()) return 0;
    const auto c = static_cast<unsigned char>(bytes_.front());
    bytes_.remove_prefix(1);
    return c;
  }
  std::string_view text() {
    const std::string_view out = bytes_.substr(0, take() % 32);
    bytes_.remove_prefix(out.size() < bytes_.size() ? out.size() : bytes_.size());
    return out;
  }
  template <class T>
  T word() {
    T v{};
    const std::size_t n = bytes_.size() < sizeof(T) ? bytes_.size() : sizeof(T);
    std::memcpy(&v, bytes_.data(), n);
    bytes_.remove_prefix(n);
    return v;
  }

  std::string_view bytes_;
};

}  // namespace

BERTH_FUZZ_TARGET(json_writer) {
  using namespace berth;
  if (size > 4096) return 0;
  const std::string_view input = fuzz::text_of(data, size);
  text::JsonWriter compact;
  Program(input).run(compact, 0);
  text::JsonWriter indented({.indent = 2});
  Program(input).run(indented, 0);
  fuzz::check(compact.complete() && indented.complete(), "complete");
  const auto one = text::parse_json(compact.text());
  const auto two = text::parse_json(indented.text());
  fuzz::check(one.ok() && two.ok(), "the writer's text is JSON");
  fuzz::check(text::equal(one->root(), two->root()), "both styles say the same");
  fuzz::check(text::to_json(one->root()) == compact.text(), "copied byte for byte");
  return 0;
}
