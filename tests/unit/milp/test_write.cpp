// SPDX-License-Identifier: Apache-2.0
#include "small_models.hpp"

#include <cstdio>
#include <fstream>
#include <regex>

using namespace gpusched;
using namespace gpusched::milp;

namespace {

/// All that can go wrong on the way: names, offset, ranges, free, negative and fixed columns, integers without an end, an
/// empty row, an empty column, a row without sides.
Model awkward(Sense sense) {
    ModelBuilder b("a name with spaces");
    const double sign = sense == Sense::maximise ? -1 : 1;
    const int free = b.column("free", -infinity, infinity, sign * 1.5);
    const int negative = b.column("e5", -7.25, -1, sign * 0.125);
    const int fixed = b.column("1st", 3, 3, sign * 2);
    const int whole = b.column("x[1,2] + y", 0, infinity, sign * 1, true);
    const int below = b.column("x[1,2] - y", -infinity, 4, sign * -0.1, true);
    const int spaced = b.column("naïve \"name\"", 0, 1, sign * -3, true);
    b.column(std::string(150, 'n'), 0, 5, sign);
    b.column(std::string(150, 'n') + "2", 1, 5, sign);
    b.column("unused", 2, 9);
    const Entry first[] = {{free, 1}, {negative, 1}, {whole, 2}};
    const Entry second[] = {{free, 1}, {below, -1}, {fixed, 1e-3}};
    const Entry third[] = {{whole, 1}, {spaced, -1}};
    const Entry fourth[] = {{below, 1}};
    b.row("g", "range", -4.5, first, 12.5);
    b.row("g", "obj", -2, second, 8);
    b.row("g", "RHS", 1.0 / 3, third, infinity);
    b.row("g", "open", -infinity, fourth, infinity);
    b.row("g", "empty", -1, {}, 1);
    b.row("g", "st", -2.5, fourth, infinity);
    b.set_sense(sense, 100.25);
    return b.finish();
}

struct Folder {
    std::filesystem::path path =
        std::filesystem::temp_directory_path() / ("gpusched_write_" + std::to_string(std::random_device{}()));
    Folder() { std::filesystem::create_directory(path); }
    ~Folder() { std::filesystem::remove_all(path); }
};

bool installed(const std::string& program) {
    return std::system(("command -v " + program + " >/dev/null 2>&1").c_str()) == 0;
}

std::string output_of(const std::string& command) {
    std::FILE* pipe = popen((command + " 2>&1").c_str(), "r");
    std::string text;
    char part[4096];
    while (std::fgets(part, sizeof part, pipe) != nullptr) text += part;
    pclose(pipe);
    return text;
}

double number_after(const std::string& text, const std::string& pattern) {
    std::smatch found;
    if (!std::regex_search(text, found, std::regex(pattern))) {
        UNSCOPED_INFO(text);
        return std::numeric_limits<double>::quiet_NaN();
    }
    return std::stod(found[1]);
}

double by_glpsol(const std::string& file, bool mps) {
    const auto report = file + ".glpsol";
    const auto log =
        output_of("glpsol " + std::string(mps ? "--freemps " : "--lp ") + file + " -o " + report);
    std::ifstream in(report);
    std::stringstream text;
    text << in.rdbuf();
    return number_after(text.str() + log, "Objective: +[^=]*= *([-+0-9.e]+)");
}

double by_cbc(const std::string& file) {
    const auto report = file + ".cbc";
    const auto log = output_of("cbc " + file + " -solve -solu " + report);
    std::ifstream in(report);
    std::stringstream text;
    text << in.rdbuf();
    return number_after(text.str() + log, "objective value +([-+0-9.e]+)");
}

}  // namespace

TEST_CASE("names that readers would misread are changed, others stay") {
    const auto names = file_names({"x(c0,w1)", "x[1]", "", "free", "E7", "3d", "a b", "a b", "y", "ST"});
    CHECK(names == std::vector<std::string>{"x(c0,w1)", "x%5B1%5D", "_", "_free", "_E7", "_3d", "a%20b",
                                            "a%20b~7", "y", "_ST"});
    const auto longest = file_names({std::string(300, 'q'), std::string(301, 'q')});
    CHECK(longest[0].size() == 100);
    CHECK(longest[1].size() == 100);
    CHECK(longest[0] != longest[1]);
}

TEST_CASE("files are written as documented") {
    const auto m = test::knapsack();
    CHECK(to_mps(m) == R"(* 2 rows, 3 columns
* a maximisation: the objective is negated
NAME knapsack FREE
ROWS
 N obj
 L weight%20limit
 L a%20alone
COLUMNS
 MARKER 'MARKER' 'INTORG'
 x%20a obj -4
 x%20a weight%20limit 2
 x%20a a%20alone 1
 x%20b obj -5
 x%20b weight%20limit 3
 MARKER 'MARKER' 'INTEND'
 x%20c obj -1
 x%20c weight%20limit 4
 _constant obj -10
RHS
 RHS weight%20limit 6
 RHS a%20alone 1
RANGES
 RANGE a%20alone 1
BOUNDS
 LO BND x%20a 0
 UP BND x%20a 1
 LO BND x%20b 0
 UP BND x%20b 1
 UP BND x%20c 2
 FX BND _constant 1
ENDATA
)");
    CHECK(to_lp(m) == R"(\ knapsack
Maximize
 obj: + 4 x%20a + 5 x%20b + 1 x%20c + 10 _constant
Subject To
 weight%20limit: + 2 x%20a + 3 x%20b + 4 x%20c <= 6
 a%20alone: + 1 x%20a >= 0
 a%20alone~upper: + 1 x%20a <= 1
Bounds
 0 <= x%20a <= 1
 0 <= x%20b <= 1
 0 <= x%20c <= 2
 _constant = 1
General
 x%20a
 x%20b
End
)");
}

TEST_CASE("a file that cannot be written is an error of the environment") {
    REQUIRE_THROWS_MESSAGE(write_mps(test::knapsack(), "/nonexistent/folder/m.mps"), BackendError,
                           "/nonexistent/folder/m.mps cannot created");
    REQUIRE_THROWS_MESSAGE(write_lp(test::knapsack(), "/nonexistent/folder/m.lp"), BackendError,
                           "/nonexistent/folder/m.lp cannot created");
}

TEST_CASE("cbc and glpsol read both formats back to the same optimum") {
    const Folder folder;
    int read = 0;
    const auto try_all = [&](const Model& m, double optimum) {
        const double mps_sign = m.sense == Sense::maximise ? -1 : 1;
        const auto mps = (folder.path / "m.mps").string(), lp = (folder.path / "m.lp").string();
        write_mps(m, mps);
        write_lp(m, lp);
        CAPTURE(m.name, enum_name(m.sense));
        if (installed("glpsol")) {
            CHECK(by_glpsol(mps, true) == Catch::Approx(mps_sign * optimum).epsilon(1e-6));
            CHECK(by_glpsol(lp, false) == Catch::Approx(optimum).epsilon(1e-6));
            ++read;
        }
        if (installed("cbc")) {
            CHECK(by_cbc(mps) == Catch::Approx(mps_sign * optimum).epsilon(1e-6));
            // cbc reports a maximisation with the sign turned.
            CHECK(std::abs(by_cbc(lp)) == Catch::Approx(std::abs(optimum)).epsilon(1e-6));
            ++read;
        }
    };
    try_all(test::knapsack(), 19.25);
    for (const auto sense : {Sense::minimise, Sense::maximise}) {
        const auto m = awkward(sense);
        if (available_solvers().empty()) continue;
        const auto s = solve(m);
        REQUIRE(s.status == Status::optimal);
        try_all(m, s.objective);
    }
    ModelBuilder nothing("nothing");
    nothing.column("x", 1, 2, 3);
    try_all(nothing.finish(), 3);
    if (read == 0) WARN("neither cbc nor glpsol is installed: the files were not read back");
}
