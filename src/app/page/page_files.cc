#include "app/page/page_files.h"

#include <array>

// The files as they are, without a compiler reading them as literals.
#define BERTH_EMBED(symbol, file)          \
  asm(".section .rodata\n"                 \
      ".global berth_page_" symbol         \
      "\n"                                 \
      "berth_page_" symbol                 \
      ":\n"                                \
      ".incbin \"" BERTH_PAGE_DIR "/" file \
      "\"\n"                               \
      ".global berth_page_" symbol         \
      "_end\n"                             \
      "berth_page_" symbol                 \
      "_end:\n"                            \
      ".byte 0\n"                          \
      ".text\n")

BERTH_EMBED("index", "index.html");
BERTH_EMBED("js", "page.js");
BERTH_EMBED("css", "page.css");

extern "C" {
extern const char berth_page_index[], berth_page_index_end[];
extern const char berth_page_js[], berth_page_js_end[];
extern const char berth_page_css[], berth_page_css_end[];
}

namespace berth::app {

namespace {

std::string_view between(const char* begin, const char* end) {
  return {begin, static_cast<std::size_t>(end - begin)};
}

}  // namespace

const PageFile* find_page_file(std::string_view path) {
  static const std::array<PageFile, 3> files = {{
      {"/", "text/html; charset=utf-8", between(berth_page_index, berth_page_index_end)},
      {"/page.js", "text/javascript; charset=utf-8", between(berth_page_js, berth_page_js_end)},
      {"/page.css", "text/css; charset=utf-8", between(berth_page_css, berth_page_css_end)},
  }};
  for (const PageFile& file : files) {
    if (file.path == path) return &file;
  }
  return nullptr;
}

}  // namespace berth::app
