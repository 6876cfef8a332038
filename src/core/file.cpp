// SPDX-License-Identifier: Apache-2.0
#include <gpusched/config.hpp>
#include <gpusched/core/errors.hpp>
#include <gpusched/core/file.hpp>

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

GPUSCHED_EXPORT std::string read_file(const std::string& path) {
    const file_detail::OpenFile file(std::fopen(path.c_str(), "rb"));
    if (!file) file_detail::fail(path, "cannot be opened");
    std::string text;
    // Read to the end instead of asking for a size: pipes have none.
    for (std::size_t room = std::size_t{1} << 16;; room *= 2) {
        const auto have = text.size();
        text.resize(have + room);
        const auto got = std::fread(text.data() + have, 1, room, file.get());
        text.resize(have + got);
        if (text.size() > largest_document)
            throw InvalidInput(path + ": expected at most " + std::to_string(largest_document) + " bytes");
        if (got < room) break;
    }
    if (std::ferror(file.get()) != 0) file_detail::fail(path, "cannot be read");
    return text;
}

GPUSCHED_EXPORT void write_file(const std::string& path, std::string_view text) {
    file_detail::OpenFile file(std::fopen(path.c_str(), "wb"));
    if (!file) file_detail::fail(path, "cannot be created");
    const bool written = std::fwrite(text.data(), 1, text.size(), file.get()) == text.size();
    // Closing is where a full disk may show first.
    if (!written || std::fclose(file.release()) != 0) file_detail::fail(path, "cannot be written");
}

}  // namespace gpusched
