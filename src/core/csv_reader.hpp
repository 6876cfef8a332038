// SPDX-License-Identifier: Apache-2.0
// csv::Reader: reads the rows of a comma-separated table by column and reports every mismatch.
#pragma once

#include <gpusched/core/checks.hpp>
#include <gpusched/core/errors.hpp>
#include <gpusched/core/file.hpp>
#include <gpusched/core/text.hpp>

#define CSV_IO_NO_THREAD  // texts are in memory: nothing is read ahead
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wstringop-truncation"  // the parser truncates long file names on purpose
#include <csv.h>
#pragma GCC diagnostic pop
#else
#include <csv.h>
#endif

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

namespace gpusched::csv {

/// The meaning of the first line of a table.
enum class Header : std::uint8_t {
    none,    ///< a row: the order of the columns is fixed
    known,   ///< names of columns in any order; an unknown name is a problem
    others,  ///< names of columns in any order; unknown ones are ignored
};

/// Which lines are skipped: blank lines, or blank lines and those that begin with `#`.
using BlankLines = ::io::empty_line_comment;
using BlankLinesAndComments = ::io::single_and_empty_line_comment<'#'>;

/// Reads a table of UTF-8 text, with or without a byte order mark. Cells are trimmed and may be in double
/// quotes. The first `required` columns must be present; the others may be missing. Problems read
/// `source:line: column: expected ..., found ...`.
template <std::size_t Columns, class SkippedLines = BlankLines>
class Reader {
  public:
    Reader(std::string_view text, std::string source, const std::array<const char*, Columns>& columns,
           std::size_t required, Problems& problems, Header header = Header::known)
        : text_(text), source_(std::move(source)), columns_(columns), problems_(problems) {
        if (!check_text()) return;
        if (text_.empty() || text_.back() != '\n') text_ += '\n';  // the parser reads past the end otherwise
        table_.emplace(source_, text_.data(), text_.data() + text_.size());
        if (header == Header::none)
            std::apply([&](auto... names) { table_->set_header(names...); }, columns_);
        else if (!read_header(required, header))
            table_.reset();
    }

    /// Goes to the next row that has as many cells as there are columns; false at the end.
    bool next() {
        while (table_) {
            cells_.fill(nullptr);
            try {
                return std::apply([&](auto&... cells) { return table_->read_row(cells...); }, cells_);
            } catch (const ::io::error::line_length_limit_exceeded&) {
                add(table_->get_file_line(), "longer than 2^24 bytes");
                table_.reset();
            } catch (const ::io::error::too_few_columns&) {
                add(table_->get_file_line(), "has too few cells");
            } catch (const ::io::error::too_many_columns&) {
                add(table_->get_file_line(), "has too many cells");
            } catch (const ::io::error::escaped_string_not_closed&) {
                add(table_->get_file_line(), "has a quote that does not end");
            }
        }
        return false;
    }

    /// The cell's text; empty if the column is missing.
    [[nodiscard]] std::string_view cell(std::size_t column) const {
        return cells_[column] ? cells_[column] : "";
    }

    /// The cell as an integer from low to high. Reports anything else and returns `low`.
    std::int64_t integer(std::size_t column, std::int64_t low, std::int64_t high) {
        if (const auto number = parsed(column, low, high)) return *number;
        expected(column, range_text(low, high));
        return low;
    }

    /// The same for a cell that may be empty. Reports anything else and returns nothing.
    std::optional<std::int64_t> optional_integer(std::size_t column, std::int64_t low, std::int64_t high) {
        if (cell(column).empty()) return std::nullopt;
        const auto number = parsed(column, low, high);
        if (!number) expected(column, range_text(low, high));
        return number;
    }

    /// The cell as a finite number >= 0. Reports anything else and returns nothing.
    std::optional<double> quantity(std::size_t column) {
        double number = 0;
        if (read_number(cell(column), number) && std::isfinite(number) && number >= 0) return number;
        expected(column, "a finite number >= 0");
        return std::nullopt;
    }

    /// Reports that a cell of the current row does not meet the expectation.
    void expected(std::size_t column, const std::string& expectation) {
        report(column, "expected " + expectation + ", found " + gpusched::quoted(printable(cell(column))));
    }
    /// Reports a problem with a cell of the current row.
    void report(std::size_t column, const std::string& problem) {
        add(table_->get_file_line(), std::string(columns_[column]) + ": " + problem);
    }

  private:
    using Table = ::io::CSVReader<Columns, ::io::trim_chars<' ', '\t'>, ::io::double_quote_escape<',', '"'>,
                                  ::io::throw_on_overflow, SkippedLines>;

    bool read_header(std::size_t required, Header header) {
        auto policy = ::io::ignore_missing_column;
        if (header == Header::others) policy |= ::io::ignore_extra_column;
        try {
            std::apply([&](auto... names) { table_->read_header(policy, names...); }, columns_);
        } catch (const ::io::error::base& error) {
            add(1, "the first line must name the columns " + listed() + ": " + printable(error.what(), 200));
            return false;
        }
        bool good = true;
        for (std::size_t i = 0; i < required; ++i)
            if (!table_->has_column(columns_[i])) {
                add(table_->get_file_line(), "column " + gpusched::quoted(columns_[i]) + " is missing");
                good = false;
            }
        return good;
    }
    std::optional<std::int64_t> parsed(std::size_t column, std::int64_t low, std::int64_t high) const {
        std::int64_t number = 0;
        const bool good = read_number(cell(column), number) && number >= low && number <= high;
        return good ? std::optional(number) : std::nullopt;
    }
    static std::string range_text(std::int64_t low, std::int64_t high) {
        return low == high ? std::to_string(low)
                           : "an integer from " + std::to_string(low) + " to " + std::to_string(high);
    }
    void add(std::size_t line, const std::string& problem) {
        problems_.add(source_ + ":" + std::to_string(line) + ": " + problem);
    }
    // The parser handles C strings only, and accepts any bytes.
    bool check_text() {
        const auto before = problems_.count();
        collect(problems_, [&] { require_text(text_, source_); });
        return problems_.count() == before;
    }
    [[nodiscard]] std::string listed() const {
        std::string out;
        for (const auto* name : columns_) out += (out.empty() ? "" : ", ") + std::string(name);
        return out;
    }

    std::string text_;
    std::string source_;
    std::array<const char*, Columns> columns_;
    Problems& problems_;
    std::optional<Table> table_;
    std::array<const char*, Columns> cells_{};
};

}  // namespace gpusched::csv
