// SPDX-License-Identifier: Apache-2.0
// Reads and writes files.
#include <gpusched/config.hpp>
#include <gpusched/core/errors.hpp>
#include <gpusched/core/file.hpp>
#include <gpusched/core/text.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

namespace gpusched {

namespace file_detail {

struct CloseFile {
    void operator()(std::FILE* file) const noexcept { std::fclose(file); }
};
using OpenFile = std::unique_ptr<std::FILE, CloseFile>;

[[noreturn]] inline void fail(const std::string& path, const char* what) {
    throw BackendError(path + ": " + what + ": " + std::strerror(errno));
}

}  // namespace file_detail

GPUSCHED_EXPORT void require_text(std::string_view text, std::string_view source) {
    if (text.size() > largest_document)
        throw InvalidInput(concat(source, ": expected at most ", largest_document, " bytes"));
    const auto invalid = find_invalid_utf8(text), nul = text.find('\0');
    const auto at = std::min(invalid, nul);
    if (at == text.npos) return;
    const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
    throw InvalidInput(concat(source, ":", line, at == nul ? ": holds a NUL byte" : ": is not UTF-8"));
}

GPUSCHED_EXPORT std::string read_file(const std::string& path) {
    const file_detail::OpenFile file(std::fopen(path.c_str(), "rb"));
    if (!file) file_detail::fail(path, "cannot be opened");
    std::string text;
    // Reads to the end without asking for a size: pipes have none.
    for (std::size_t chunk = std::size_t{1} << 16;; chunk *= 2) {
        const auto have = text.size();
        text.resize(have + chunk);
        const auto got = std::fread(text.data() + have, 1, chunk, file.get());
        text.resize(have + got);
        if (text.size() > largest_document)
            throw InvalidInput(path + ": expected at most " + std::to_string(largest_document) + " bytes");
        if (got < chunk) break;
    }
    if (std::ferror(file.get()) != 0) file_detail::fail(path, "cannot be read");
    return text;
}

GPUSCHED_EXPORT void write_file(const std::string& path, std::string_view text) {
    file_detail::OpenFile file(std::fopen(path.c_str(), "wb"));
    if (!file) file_detail::fail(path, "cannot be created");
    const bool written = std::fwrite(text.data(), 1, text.size(), file.get()) == text.size();
    // A full disk may show only when the file is closed.
    if (!written || std::fclose(file.release()) != 0) file_detail::fail(path, "cannot be written");
}

}  // namespace gpusched
