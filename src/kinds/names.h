// The rules for names that the API server enforces (apimachinery validation).
#pragma once

#include <string>
#include <string_view>

namespace berth::kinds {

bool is_dns_label(std::string_view text);       // "team-a": a-z 0-9 -, at most 63
bool is_dns_subdomain(std::string_view text);   // "node-1.example.com", at most 253
bool is_qualified_name(std::string_view text);  // "cpu", "nvidia.com/gpu": as label keys are

std::string qualified(const std::string& ns, const std::string& name);  // "ns/name"

}  // namespace berth::kinds
