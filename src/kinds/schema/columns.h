// Between columns.cc (tables in general) and cells.cc (what single kinds show).
#pragma once

#include <string>
#include <vector>

#include "kinds/schema/node.h"

namespace berth::sim {

std::string age_of(const text::Value& time, std::int64_t now_ns);  // "<unknown>" when absent
std::string lower_case(std::string_view text);
std::string joined_words(const std::vector<std::string>& words, std::string_view by);
std::string or_none(std::string_view text);
// The cells of built-in kinds that need more than a path; false: not one of them.
bool special_cells(const Kind& kind, const text::Value& object, std::int64_t now_ns,
                   text::JsonWriter& out);

void signing_request_cells(const text::Value& object, const std::string& age,
                           text::JsonWriter& out);
void flow_cells(const Kind& kind, const text::Value& object, const std::string& age,
                text::JsonWriter& out);

}  // namespace berth::sim
