// SPDX-License-Identifier: Apache-2.0
// Writers of models in MPS and LP format.
#include <gpusched/config.hpp>
#include <gpusched/core/errors.hpp>
#include <gpusched/core/file.hpp>
#include <gpusched/milp/matrix.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <string_view>
#include <unordered_set>
#include <utility>

namespace gpusched::milp {

namespace detail {

/// The shortest text that is read as the same number.
static std::string exact_text(double value) {
    std::array<char, 32> text{};
    const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
    return {text.data(), end};
}

static std::string file_name(std::string_view name) {
    constexpr std::string_view plain = "_.,()'#@~$";
    constexpr std::array words{
        "free",     "inf",  "infinity", "st",       "st.",      "s.t.",     "subject",  "such",    "bound",
        "bounds",   "bin",  "binary",   "binaries", "gen",      "general",  "generals", "int",     "integer",
        "integers", "end",  "min",      "minimum",  "minimize", "minimise", "max",      "maximum", "maximize",
        "maximise", "sos",  "sos1",     "sos2",     "semi",     "semis",    "range",    "ranges",  "rhs",
        "obj",      "rows", "columns",  "endata",   "name",     "lazy",     "user"};
    std::string text;
    std::string lower;
    for (const char c : name) {
        const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (letter || (c >= '0' && c <= '9') || plain.find(c) != std::string_view::npos) {
            text += c;
        } else {
            std::array<char, 4> code{};
            std::snprintf(code.data(), code.size(), "%%%02X",
                          static_cast<unsigned>(static_cast<unsigned char>(c)));
            text += code.data();
        }
        lower += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    }
    // Names must not start like numbers or exponents (e5), or be words of the formats.
    const char first = text.empty() ? ' ' : text.front();
    const bool letter = (first >= 'a' && first <= 'z') || (first >= 'A' && first <= 'Z') || first == '_';
    if (!letter || first == 'e' || first == 'E' ||
        std::find(words.begin(), words.end(), lower) != words.end())
        text.insert(text.begin(), '_');
    constexpr std::size_t longest = 100;
    if (text.size() > longest) text.resize(longest);
    return text;
}

/// Folds long lines, because some readers stop at 255 characters.
class FoldedText {
  public:
    explicit FoldedText(std::string& out) : out_(out) {}
    void add(const std::string& word) {
        if (width_ + word.size() > 200) {
            out_ += "\n ";
            width_ = 1;
        }
        out_ += ' ';
        out_ += word;
        width_ += word.size() + 1;
    }
    void start(const std::string& word) {
        out_ += word;
        width_ = word.size();
    }
    void end() {
        out_ += '\n';
        width_ = 0;
    }

  private:
    std::string& out_;
    std::size_t width_ = 0;
};

static void add_term(FoldedText& line, double value, const std::string& name) {
    line.add(value < 0 ? "-" : "+");
    line.add(exact_text(std::abs(value)));
    line.add(name);
}

}  // namespace detail

GPUSCHED_EXPORT std::vector<std::string> file_names(const std::vector<std::string>& names) {
    std::vector<std::string> result;
    std::unordered_set<std::string> taken;
    result.reserve(names.size());
    for (std::size_t i = 0; i < names.size(); ++i) {
        auto text = detail::file_name(names[i]);
        for (std::size_t suffix = i; !taken.insert(text).second; ++suffix) {
            const auto tail = "~" + std::to_string(suffix);
            text = detail::file_name(names[i]).substr(0, 100 - tail.size()) + tail;
        }
        result.push_back(std::move(text));
    }
    return result;
}

GPUSCHED_EXPORT std::string to_mps(const Model& model) {
    validate(model);
    using detail::exact_text;
    auto all = model.column_names;
    all.emplace_back("_constant");
    const auto rows = file_names(model.row_names), columns = file_names(all);
    const auto column_count = model.column_names.size();
    const double sign = model.sense == Sense::maximise ? -1 : 1;
    std::string out =
        "* " + std::to_string(rows.size()) + " rows, " + std::to_string(column_count) + " columns\n";
    if (sign < 0) out += "* a maximisation: the objective is negated\n";
    // FREE, because otherwise CBC reads a file with short names as one with fixed columns.
    out += "NAME " + detail::file_name(model.name) + " FREE\nROWS\n N obj\n";
    const auto kind = [&](std::size_t i) {
        const bool low = std::isfinite(model.row_lower[i]), high = std::isfinite(model.row_upper[i]);
        return !low && !high                                             ? ' '
               : low && high && model.row_lower[i] == model.row_upper[i] ? 'E'
               : high                                                    ? 'L'
                                                                         : 'G';
    };
    for (std::size_t i = 0; i < rows.size(); ++i)
        if (kind(i) != ' ') (out += ' ') += kind(i) + (" " + rows[i] + "\n");
    out += "COLUMNS\n";
    bool in_integers = false;
    const auto marker = [&](bool start) {
        out += start ? " MARKER 'MARKER' 'INTORG'\n" : " MARKER 'MARKER' 'INTEND'\n";
        in_integers = start;
    };
    for (std::size_t j = 0; j < column_count; ++j) {
        if ((model.integer[j] != 0) != in_integers) marker(!in_integers);
        bool empty = true;
        const auto entry = [&](const std::string& row, double value) {
            out += " " + columns[j] + " " + row + " " + exact_text(value) + "\n";
            empty = false;
        };
        if (model.objective[j] != 0) entry("obj", sign * model.objective[j]);
        for (int k = model.column_start[j]; k < model.column_start[j + 1]; ++k) {
            const auto i = static_cast<std::size_t>(model.row_index[static_cast<std::size_t>(k)]);
            if (kind(i) != ' ') entry(rows[i], model.value[static_cast<std::size_t>(k)]);
        }
        if (empty) entry("obj", 0);  // keeps the column
    }
    if (in_integers) marker(false);
    // Readers disagree about the sign of a right-hand side of the objective.
    if (model.offset != 0) out += " " + columns.back() + " obj " + exact_text(sign * model.offset) + "\n";
    out += "RHS\n";
    std::string ranges;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        if (kind(i) == ' ') continue;
        const double side = kind(i) == 'G' ? model.row_lower[i] : model.row_upper[i];
        if (side != 0) out += " RHS " + rows[i] + " " + exact_text(side) + "\n";
        if (kind(i) == 'L' && std::isfinite(model.row_lower[i]))
            ranges += " RANGE " + rows[i] + " " + exact_text(model.row_upper[i] - model.row_lower[i]) + "\n";
    }
    if (!ranges.empty()) out += "RANGES\n" + ranges;
    out += "BOUNDS\n";
    for (std::size_t j = 0; j < column_count; ++j) {
        const double low = model.column_lower[j], high = model.column_upper[j];
        const auto bound = [&](const char* type) {
            out += std::string(" ") + type + " BND " + columns[j] + "\n";
        };
        const auto valued = [&](const char* type, double value) {
            out += std::string(" ") + type + " BND " + columns[j] + " " + exact_text(value) + "\n";
        };
        if (low == high) {
            valued("FX", low);
        } else if (low == -infinity && high == infinity) {
            bound("FR");
        } else {
            if (low == -infinity)
                bound("MI");
            else if (low != 0 || high < 0 || model.integer[j] != 0)
                valued("LO", low);
            if (high < infinity)
                valued("UP", high);
            else if (model.integer[j] != 0)
                bound("PL");
        }
    }
    if (model.offset != 0) out += " FX BND " + columns.back() + " 1\n";
    return out + "ENDATA\n";
}

GPUSCHED_EXPORT std::string to_lp(const Model& model) {
    validate(model);
    using detail::exact_text;
    auto all = model.column_names;
    all.emplace_back("_constant");
    auto all_rows = model.row_names;
    for (const auto& name : model.row_names) all_rows.push_back(name + "~upper");
    const auto rows = file_names(all_rows), columns = file_names(all);
    const auto row_count = model.row_names.size();
    const auto& constant = columns.back();
    std::string out = "\\ " + detail::file_name(model.name) + "\n";
    out += model.sense == Sense::maximise ? "Maximize\n" : "Minimize\n";
    detail::FoldedText line(out);
    line.start(" obj:");
    bool needs_constant = model.offset != 0;
    bool empty = true;
    for (std::size_t j = 0; j + 1 < columns.size(); ++j) {
        if (model.objective[j] == 0) continue;
        detail::add_term(line, model.objective[j], columns[j]);
        empty = false;
    }
    if (model.offset != 0 || empty) {
        detail::add_term(line, model.offset, constant);
        needs_constant = true;
    }
    line.end();
    const auto matrix = by_rows(model);
    out += "Subject To\n";
    const auto row = [&](std::size_t i, const std::string& label, const char* relation, double side) {
        line.start(" " + label + ":");
        RowMatrix::InnerIterator entry(matrix, static_cast<Eigen::Index>(i));
        const bool no_entry = !entry;
        for (; entry; ++entry)
            detail::add_term(line, entry.value(), columns[static_cast<std::size_t>(entry.col())]);
        if (no_entry) {
            detail::add_term(line, 0, constant);
            needs_constant = true;
        }
        line.add(relation);
        line.add(exact_text(side));
        line.end();
    };
    bool any_row = false;
    for (std::size_t i = 0; i < row_count; ++i) {
        const bool low = std::isfinite(model.row_lower[i]), high = std::isfinite(model.row_upper[i]);
        any_row = any_row || low || high;
        if (low && high && model.row_lower[i] == model.row_upper[i]) {
            row(i, rows[i], "=", model.row_lower[i]);
        } else {
            if (low) row(i, rows[i], ">=", model.row_lower[i]);
            if (high) row(i, low ? rows[row_count + i] : rows[i], "<=", model.row_upper[i]);
        }
    }
    if (!any_row) {  // the section must not be empty
        out += " _none: 0 " + constant + " <= 0\n";
        needs_constant = true;
    }
    out += "Bounds\n";
    for (std::size_t j = 0; j + 1 < columns.size(); ++j) {
        const double low = model.column_lower[j], high = model.column_upper[j];
        if (low == high)
            out += " " + columns[j] + " = " + exact_text(low) + "\n";
        else if (low == -infinity && high == infinity)
            out += " " + columns[j] + " free\n";
        else
            out += " " + (low == -infinity ? std::string("-inf") : exact_text(low)) + " <= " + columns[j] +
                   (high == infinity ? std::string() : " <= " + exact_text(high)) + "\n";
    }
    if (needs_constant) out += " " + constant + " = 1\n";
    if (model.integer_columns() > 0) {
        out += "General\n";
        for (std::size_t j = 0; j + 1 < columns.size(); ++j)
            if (model.integer[j] != 0) out += " " + columns[j] + "\n";
    }
    return out + "End\n";
}

GPUSCHED_EXPORT void write_mps(const Model& model, const std::string& path) {
    write_file(path, to_mps(model));
}

GPUSCHED_EXPORT void write_lp(const Model& model, const std::string& path) { write_file(path, to_lp(model)); }

}  // namespace gpusched::milp
