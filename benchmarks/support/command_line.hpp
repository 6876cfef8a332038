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

/// Options of CLI11 beside --smoke, which every benchmark has and which is known from the start, because defaults depend on
/// it; options that are given count all the same:
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
        app_.add_flag("--smoke", smoke_, "a run as brief as can be, whose figures mean nothing");
    }
    [[nodiscard]] bool smoke() const { return smoke_; }

    /// One that takes a value, a vector values between commas or in several such options. What the variable holds is the
    /// default, which the help tells.
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

    /// Ends the program where arguments are wrong, with 2, and after --help.
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
