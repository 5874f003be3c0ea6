// A cluster as one List, for `berth snapshot`: what -f of every command reads again.
//
// Left out is what kinds/kept.h names; arguments: commands, arguments, probes, unknown
// annotations and so on are there too, but never values of environment variables. One object a
// line, in the order of the listing.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "app/views/cluster_lister.h"

namespace berth::app {

// Annotations of the List. Several values stand in lines.
inline constexpr std::string_view kTakenAnnotation = "berth.dev/taken-at";  // RFC 3339
inline constexpr std::string_view kServerAnnotation = "berth.dev/server";
inline constexpr std::string_view kVersionAnnotation = "berth.dev/server-version";
inline constexpr std::string_view kUnseenAnnotation = "berth.dev/unseen";
inline constexpr std::string_view kAbsentAnnotation = "berth.dev/absent";

std::string snapshot_text(const Listed& listed, std::string_view server, std::int64_t now_ns,
                          bool arguments = false);

}  // namespace berth::app
