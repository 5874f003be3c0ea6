// What the commands for people have in common: look, make a screen of it, print it, perhaps again
// and again.
//
// A screen is made by a function of the view and the style; here are the options, the errors, the
// refresh, and the notes on what could not be seen (on standard error, so that output stays
// readable for machines). Exit codes: docs/cli.md.
#pragma once

#include <functional>
#include <string>

#include "app/views/cluster_view.h"
#include "app/views/sheet.h"

namespace berth::app {

enum class ViewFormat : std::uint8_t { kTable, kJson, kYaml, kCsv };

struct ViewArguments {
  ViewOptions view;
  std::string output = "table";
  bool watch = false;
  int every_s = 2;
};

struct ViewStyle {
  ViewFormat format = ViewFormat::kTable;
  Paint paint{false};
  std::string program = "berth";  // how people call it: "berth", "kubectl berth"
};

struct Screen {
  std::string text;
  int code = 0;
};

using MakeScreen = std::function<Result<Screen>(const ClusterView&, const ViewStyle&)>;

// Code::kInvalid of make is a wrong command line, every other error something that is not there.
int show_view(const ViewArguments& arguments, Terminal& terminal, const MakeScreen& make);

// The text of a format; json is called for JSON and YAML.
Screen render(const ViewStyle& style, int code, const std::function<std::string()>& table,
              const std::function<std::string()>& json, const std::function<Sheet()>& sheet);

// In the namespace that was asked for, or everywhere.
bool in_sight(const ViewOptions& options, const ClusterView& view, std::string_view ns);

}  // namespace berth::app
