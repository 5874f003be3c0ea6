#include "app/cli/complete.h"

#include <algorithm>
#include <set>

#include "app/cli/kubectl_flags.h"
#include "kinds/kind_table.h"
#include "text/escape.h"

namespace berth::app {

namespace {

using Option = CompletionCommand::Option;

// Nothing that a shell reads as more than a word.
bool is_plain_word(std::string_view text) {
  return !text.empty() &&
         text.find_first_not_of(
             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
             "._-/@:") == std::string_view::npos &&
         text.front() != '-';
}

class Completer {
 public:
  Completer(const std::vector<std::string>& words, const std::vector<CompletionCommand>& commands,
            const CompletionNames& names)
      : words_(words), commands_(commands), names_(names) {}

  Completion run() {
    if (words_.empty()) return {};
    const std::string current = words_.back();
    read_before();
    if (lost_) return {};
    const std::size_t equals = current.find('=');
    if (waits_ != nullptr) {
      value_of(*waits_, current);
    } else if (current.starts_with("--") && equals != std::string::npos) {
      const Option* option = find(current.substr(0, equals));
      if (option != nullptr) value_of(*option, current.substr(equals + 1));
    } else if (current.starts_with('-')) {
      for (const Option& option : options()) offer(option.shown, current, "", option.help);
    } else if (command_ == nullptr) {
      for (const CompletionCommand& command : commands_) {
        offer(command.name, current, "", command.help);
      }
    } else {
      place(current);
    }
    return std::move(out_);
  }

 private:
  // Before the command kubectl's flags alone may stand.
  const std::vector<Option>& options() const {
    return command_ != nullptr ? command_->options : before_command_;
  }

  const Option* find(const std::string& shown) const {
    for (const Option& option : options()) {
      if (option.shown == shown) return &option;
    }
    return nullptr;
  }

  void read_before() {
    for (const KubectlFlag& flag : kubectl_flags()) {
      before_command_.push_back({std::string(flag.name), "", flag.value, {}, flag.file});
    }
    for (std::size_t i = 0; i + 1 < words_.size(); ++i) {
      const std::string& word = words_[i];
      if (word == "--") continue;
      if (!word.starts_with('-')) {
        if (command_ != nullptr) {
          given_.push_back(word);
        } else {
          for (const CompletionCommand& command : commands_) {
            if (command.name == word) command_ = &command;
          }
          if (command_ == nullptr) {
            lost_ = true;
            return;
          }
        }
        continue;
      }
      const std::size_t equals = word.find('=');
      const Option* option = find(word.substr(0, equals));
      if (option == nullptr || !option->value) continue;
      if (equals != std::string::npos) {
        note(option->shown, word.substr(equals + 1));
      } else if (i + 2 == words_.size()) {
        waits_ = option;
      } else {
        note(option->shown, words_[++i]);
      }
    }
  }

  // Which cluster the words are about.
  void note(const std::string& option, const std::string& value) {
    if (option == "-n" || option == "--namespace") ask_.ns = value;
    if (option == "-f" || option == "--file") files_ = true;
    set_kubectl_flag(option, value, ask_.cluster);
  }

  void value_of(const Option& option, const std::string& current) {
    for (const std::string& value : option.values) offer(value, current, "");
    if (!option.values.empty()) return;
    const std::pair<std::string_view, std::string_view> kNames[] = {
        {"-n", "namespaces"},
        {"--namespace", "namespaces"},
        {"--context", "contexts"},
        {"--cluster", "clusters"},
        {"--user", "users"},
        {"--queue", "localqueues"},
        {"--priority-class", "priorityclasses"},
    };
    for (const auto& [shown, what] : kNames) {
      if (option.shown == shown) return names(std::string(what), current, "");
    }
    out_.files = option.file;
  }

  // What is not an option.
  void place(const std::string& current) {
    const std::string& name = command_->name;
    if (name == "lint" || name == "convert" || name == "replay") {
      out_.files = true;
    } else if (name == "completion") {
      for (const char* shell : {"bash", "zsh", "fish"}) offer(shell, current, "");
    } else if (name == "why") {
      why_subject(current);
    } else if (given_.empty() && name == "why-no-gpu") {
      names("pods", current, "");
    } else if (given_.empty() && name == "preempted") {
      names("jobs", current, "");
    } else if (given_.empty() && name == "queue") {
      names("clusterqueues", current, "");
      names("localqueues", current, "");
    }
  }

  // "NAME", "KIND NAME" or "KIND/NAME".
  void why_subject(const std::string& current) {
    std::vector<std::string_view> all = {"pod", "job", "workload", "podgroup"};
    all.insert(all.end(), kinds::maker_words().begin(), kinds::maker_words().end());
    const auto plural = [&](std::string_view kind) {
      const bool known = std::find(all.begin(), all.end(), kind) != all.end();
      return known ? std::string(kind) + 's' : "";
    };
    const std::size_t slash = current.find('/');
    if (given_.empty() && slash != std::string::npos) {
      const std::string what = plural(std::string_view(current).substr(0, slash));
      if (!what.empty()) names(what, current.substr(slash + 1), current.substr(0, slash + 1));
    } else if (given_.empty()) {
      for (const std::string_view kind : all) offer(std::string(kind), current, "");
      names("jobs", current, "");
    } else if (given_.size() == 1 && !plural(given_[0]).empty()) {
      names(plural(given_[0]), current, "");
    }
  }

  void names(const std::string& what, const std::string& current, const std::string& before) {
    if (files_) return;
    ask_.what = what;
    for (const std::string& name : names_(ask_)) {
      if (is_plain_word(name)) offer(name, current, before);
    }
  }

  void offer(const std::string& word, const std::string& current, const std::string& before,
             const std::string& help = {}) {
    constexpr std::size_t kMost = 1000;
    if (!word.starts_with(current) || out_.candidates.size() >= kMost) return;
    if (!seen_.insert(word).second) return;
    out_.candidates.emplace_back(before + word, help);
  }

  const std::vector<std::string>& words_;
  const std::vector<CompletionCommand>& commands_;
  const CompletionNames& names_;
  std::vector<Option> before_command_;
  const CompletionCommand* command_ = nullptr;
  const Option* waits_ = nullptr;  // for its value: the last word
  std::vector<std::string> given_;
  bool files_ = false;  // -f: the cluster is not what is looked at
  bool lost_ = false;   // there is no such command
  CompletionAsk ask_;
  std::set<std::string> seen_;
  Completion out_;
};

constexpr const char* kBashScript = R"(# bash completion of berth: source <(berth completion bash)
_berth() {
  local words=() word line files=4
  for word in "${COMP_WORDS[@]:1:COMP_CWORD}"; do
    # bash takes --option=value apart
    if [ "${#words[@]}" -gt 0 ] && { [ "$word" = "=" ] || [[ "${words[-1]}" == --*= ]]; }; then
      words[-1]+="$word"
    else
      words+=("$word")
    fi
  done
  COMPREPLY=()
  while IFS= read -r line; do
    case "$line" in
      :*) files="${line#:}" ;;
      *) COMPREPLY+=("${line%%$'\t'*}") ;;
    esac
  done < <("${COMP_WORDS[0]}" __complete "${words[@]}" 2>/dev/null)
  if [ "$files" = 0 ]; then
    compopt -o filenames
    mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -- "${COMP_WORDS[COMP_CWORD]#=}")
  fi
}
complete -F _berth berth kubectl-berth
)";

constexpr const char* kZshScript = R"(#compdef berth kubectl-berth
# zsh completion of berth: source <(berth completion zsh)
_berth() {
  local -a lines found
  local line files=4
  lines=("${(@f)$("${words[1]}" __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  for line in "${lines[@]}"; do
    case "$line" in
      :*) files="${line#:}" ;;
      ?*) line="${line//:/\\:}"; found+=("${line/$'\t'/:}") ;;
    esac
  done
  [[ "${words[CURRENT]}" = --*=* ]] && compset -P 1 '*='
  (( $#found )) && _describe 'berth' found
  [[ "$files" = 0 ]] && _files
}
compdef _berth berth kubectl-berth
)";

constexpr const char* kFishScript = R"(# fish completion of berth: berth completion fish | source
function __berth_complete
  set -l words (commandline -opc) (commandline -ct)
  set -l lines ($words[1] __complete $words[2..-1] 2>/dev/null)
  set -l stem (string match -r -- '^--[^=]*=' $words[-1])
  string match -v -r '^:\d+$' -- $lines | string replace -r -- '^' "$stem"
  if contains -- ':0' $lines
    __fish_complete_path (string replace -- "$stem" '' $words[-1]) |
      string replace -r -- '^' "$stem"
  end
end
complete -c berth -f -a '(__berth_complete)'
complete -c kubectl-berth -f -a '(__berth_complete)'
)";

}  // namespace

Completion complete(const std::vector<std::string>& words,
                    const std::vector<CompletionCommand>& commands, const CompletionNames& names) {
  return Completer(words, commands, names).run();
}

std::string completion_lines(const Completion& completion) {
  std::string out;
  for (const auto& [word, help] : completion.candidates) {
    out += text::terminal_safe(word);
    if (!help.empty()) out += '\t' + text::terminal_safe(help);
    out += '\n';
  }
  return out + (completion.files ? ":0\n" : ":4\n");
}

Result<std::string> completion_script(const std::string& shell) {
  if (shell == "bash") return std::string(kBashScript);
  if (shell == "zsh") return std::string(kZshScript);
  if (shell == "fish") return std::string(kFishScript);
  return invalid("found shell " + text::terminal_safe(shell) + ", want bash, zsh or fish");
}

}  // namespace berth::app
