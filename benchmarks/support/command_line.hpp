// SPDX-License-Identifier: Apache-2.0
// The command line of a benchmark.
#pragma once

#include <CLI/CLI.hpp>

#include <cstdlib>
#include <string>

namespace gpusched::bench {

/// A check of a number.
inline CLI::Validator at_least(int least) {
    const auto check = [least](const std::string& text) {
        double number = 0;
        const bool fine = CLI::detail::lexical_cast(text, number) && number >= least;
        return fine ? std::string() : text + "; expected at least " + std::to_string(least);
    };
    return {check, "at least " + std::to_string(least), "at least"};
}

/// Options of CLI11, and --smoke. The constructor already knows --smoke, so that defaults can depend on it;
/// given options have precedence:
///
///     bench::CommandLine line("How fast plans are checked.", argc, argv);
///     int nodes = line.smoke() ? 500 : 37'707;
///     line.option("--nodes", nodes, "nodes of the cluster");
///     line.read();
class CommandLine {
  public:
    CommandLine(const std::string& what, int argc, const char* const* argv)
        : app_(what), argc_(argc), argv_(argv) {
        for (int i = 1; i < argc; ++i) smoke_ = smoke_ || std::string(argv[i]) == "--smoke";
        app_.add_flag("--smoke", smoke_, "a very short run; its figures mean nothing");
    }
    [[nodiscard]] bool smoke() const { return smoke_; }

    /// Adds an option with a value. A vector takes values between commas or from repeated options. The
    /// variable's value is the default and appears in the help.
    template <class T>
    CLI::Option* option(const std::string& name, T& value, const std::string& help) {
        auto* const made = app_.add_option(name, value, help)->capture_default_str();
        auto otherwise = made->get_default_str();
        if constexpr (CLI::detail::is_mutable_container<T>::value) {
            made->expected(1)->allow_extra_args(false)->take_all()->delimiter(',');
            otherwise = otherwise.substr(1, otherwise.size() - 2);  // without brackets
        }
        return made->default_str("")->description(help +
                                                  "; default: " + (otherwise.empty() ? "none" : otherwise));
    }
    CLI::Option* flag(const std::string& name, bool& value, const std::string& help) {
        return app_.add_flag(name, value, help);
    }

    /// Ends the program with status 2 if the arguments are wrong, and with 0 after --help.
    void read() {
        try {
            app_.parse(argc_, argv_);
        } catch (const CLI::ParseError& error) {
            std::exit(app_.exit(error) == 0 ? 0 : 2);
        }
    }

  private:
    CLI::App app_;
    int argc_;
    const char* const* argv_;
    bool smoke_ = false;
};

}  // namespace gpusched::bench
