// The web page's files (web/built), part of the program.
#pragma once

#include <string_view>

namespace berth::app {

struct PageFile {
  std::string_view path;  // "/page.js"
  std::string_view type;  // "text/javascript; charset=utf-8"
  std::string_view bytes;
};

const PageFile* find_page_file(std::string_view path);  // null: there is none

}  // namespace berth::app
