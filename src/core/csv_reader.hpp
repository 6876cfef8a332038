// SPDX-License-Identifier: Apache-2.0
// csv::Reader: rows of a comma-separated table by column, with every mismatch reported. For bodies only: it includes the
// parser.
#pragma once

#include <gpusched/core/checks.hpp>
#include <gpusched/core/errors.hpp>
#include <gpusched/core/file.hpp>
#include <gpusched/core/text.hpp>

#include "core/csv_parser.hpp"

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

/// The first line of a table.
enum class Header : std::uint8_t {
    none,    ///< it is a row as any other: the columns are known by their order
    known,   ///< it names columns in any order, and no unknown ones
    others,  ///< it names columns in any order; unknown ones are ignored
};

/// Lines that are skipped: blank ones, and with `#` those that begin with it.
using BlankLines = ::gpusched_csv::empty_line_comment;
using BlankLinesAndComments = ::gpusched_csv::single_and_empty_line_comment<'#'>;

/// Reads a table of UTF-8 text, with or without a byte order mark. Cells are trimmed and may stand in double quotes.
/// Of the columns that a header names the first `required` must be there; the others may be missing.
/// Problems are told as `source:line: column: expected ..., found ...`.
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
            } catch (const ::gpusched_csv::error::line_length_limit_exceeded&) {
                add(table_->get_file_line(), "longer than 2^24 bytes");
                table_.reset();
            } catch (const ::gpusched_csv::error::too_few_columns&) {
                add(table_->get_file_line(), "has too few cells");
            } catch (const ::gpusched_csv::error::too_many_columns&) {
                add(table_->get_file_line(), "has too many cells");
            } catch (const ::gpusched_csv::error::escaped_string_not_closed&) {
                add(table_->get_file_line(), "has a quote that does not end");
            }
        }
        return false;
    }

    /// The cell's text; empty where the column is missing.
    [[nodiscard]] std::string_view cell(std::size_t column) const {
        return cells_[column] ? cells_[column] : "";
    }

    /// The cell as an integer in low .. high, or `low` after reporting what is there instead.
    std::int64_t integer(std::size_t column, std::int64_t low, std::int64_t high) {
        if (const auto number = parsed(column, low, high)) return *number;
        expected(column, range_text(low, high));
        return low;
    }

    /// The same for a cell that may be empty; nothing after reporting what is there instead.
    std::optional<std::int64_t> optional_integer(std::size_t column, std::int64_t low, std::int64_t high) {
        if (cell(column).empty()) return std::nullopt;
        const auto number = parsed(column, low, high);
        if (!number) expected(column, range_text(low, high));
        return number;
    }

    /// The cell as a finite number >= 0, or nothing after reporting what is there instead.
    std::optional<double> quantity(std::size_t column) {
        double number = 0;
        if (read_number(cell(column), number) && std::isfinite(number) && number >= 0) return number;
        expected(column, "a finite number >= 0");
        return std::nullopt;
    }

    /// Reports that the present row's cell is not what it should be.
    void expected(std::size_t column, const std::string& what) {
        report(column, "expected " + what + ", found " + gpusched::quoted(printable(cell(column))));
    }
    /// Reports a problem with the present row's cell.
    void report(std::size_t column, const std::string& what) {
        add(table_->get_file_line(), std::string(columns_[column]) + ": " + what);
    }

  private:
    using Table = ::gpusched_csv::CSVReader<Columns, ::gpusched_csv::trim_chars<' ', '\t'>,
                                            ::gpusched_csv::double_quote_escape<',', '"'>,
                                            ::gpusched_csv::throw_on_overflow, SkippedLines>;

    bool read_header(std::size_t required, Header header) {
        auto policy = ::gpusched_csv::ignore_missing_column;
        if (header == Header::others) policy |= ::gpusched_csv::ignore_extra_column;
        try {
            std::apply([&](auto... names) { table_->read_header(policy, names...); }, columns_);
        } catch (const ::gpusched_csv::error::base& error) {
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
    void add(std::size_t line, const std::string& what) {
        problems_.add(source_ + ":" + std::to_string(line) + ": " + what);
    }
    /// The parser knows C strings only, and takes any bytes.
    bool check_text() {
        if (text_.size() > largest_document) {
            problems_.add(source_ + ": expected at most " + std::to_string(largest_document) + " bytes");
            return false;
        }
        const auto line_of = [&](std::size_t at) {
            return 1 + static_cast<std::size_t>(
                           std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
        };
        if (const auto at = text_.find('\0'); at != text_.npos) {
            add(line_of(at), "holds a NUL byte");
            return false;
        }
        if (const auto at = find_invalid_utf8(text_); at != text_.npos) {
            add(line_of(at), "is not UTF-8");
            return false;
        }
        return true;
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
