// SPDX-License-Identifier: Apache-2.0
#include "core/csv_reader.hpp"

#include <gpusched/config.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/core/file.hpp>
#include <gpusched/core/text.hpp>
#include <gpusched/serving/profile_csv.hpp>

#include <cmath>
#include <limits>
#include <utility>

namespace gpusched::serving {

GPUSCHED_EXPORT std::vector<ProfilePoint> parse_profile_csv(std::string_view text, double unit_s,
                                                            std::string_view source) {
    require_range("unit_s", unit_s, std::numeric_limits<double>::min(), 1e6);
    enum { size, time };
    Problems problems(10);
    csv::Reader<2, csv::BlankLinesAndComments> table(text, std::string(source), {"size", "time"}, 2, problems,
                                                     csv::Header::none);
    const auto is_number = [&](std::size_t column) {
        double number = 0;
        return read_number(table.cell(column), number);
    };
    std::vector<ProfilePoint> points;
    for (bool first = true; table.next(); first = false) {
        if (first && !is_number(size) && !is_number(time)) continue;  // names of the columns
        const auto tokens = table.quantity(size), units = table.quantity(time);
        if (!tokens || !units || *tokens == 0) continue;
        if (!std::isfinite(*units * unit_s))
            table.expected(time, "a time that is finite in seconds");
        else if (!points.empty() && points.back().size >= *tokens)
            table.expected(size, "more than " + number_text(points.back().size) + ", the size before");
        else
            points.push_back({*tokens, *units * unit_s});
    }
    if (problems.empty() && points.empty())
        problems.add(std::string(source) + ": no points; expected lines size,time with a size above 0");
    problems.throw_if_any();
    return points;
}

GPUSCHED_EXPORT LayerProfile read_layer_profile(const std::string& prefill_path,
                                                const std::string& decode_path, const std::string& model,
                                                const std::string& gpu, int degree, double unit_s) {
    LayerProfile profile{model, gpu, degree, parse_profile_csv(read_file(prefill_path), unit_s, prefill_path),
                         parse_profile_csv(read_file(decode_path), unit_s, decode_path)};
    EstimateOptions options;
    options.profiles = {profile};
    validate(options);
    return profile;
}

}  // namespace gpusched::serving
