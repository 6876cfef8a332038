// SPDX-License-Identifier: Apache-2.0
// Runs a fuzz target over stored inputs without libFuzzer: each file of the given folders as it is, cut short at several
// places, and with its values replaced by values of other types if it is JSON; and the empty input. A crash, a sanitizer
// report or an uncaught exception fails the test.
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

void feed(const std::string& bytes, std::size_t size) {
    // An own allocation of the exact size, so that a sanitizer sees reads past the end.
    const std::vector<std::uint8_t> copy(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
    LLVMFuzzerTestOneInput(copy.data(), copy.size());
}

/// Replaces each value of a JSON text by values of all types, in turn, and removes it.
void swap_types(const std::string& bytes) {
    using Json = nlohmann::json;
    const auto document = Json::parse(bytes, nullptr, false);
    if (bytes.size() > 20'000 || document.is_discarded()) return;
    const auto others = Json::parse(
        R"([null, true, -1, 0, 9223372036854775807, 1e300, 0.5, "", "x", [], [0], [[], {}, 1, "y"], {},
         {"a": 0}])");
    std::vector<Json::json_pointer> places(1);
    for (std::size_t i = 0; i < places.size() && places.size() < 300; ++i) {
        const auto at = places[i];
        if (!document.at(at).is_structured()) continue;
        for (const auto& [key, value] : document.at(at).items()) places.push_back(at / key);
    }
    const auto run = [](const Json& changed) {
        const auto text = changed.dump();
        feed(text, text.size());
    };
    for (const auto& at : places) {
        auto changed = document;
        for (const auto& other : others) {
            changed[at] = other;
            run(changed);
        }
        if (at.empty()) continue;
        changed = document;
        auto& above = changed[at.parent_pointer()];
        if (above.is_object())
            above.erase(at.back());
        else
            above.erase(std::stoul(at.back()));
        run(changed);
    }
}

}  // namespace

int main(int argc, char** argv) {
    namespace fs = std::filesystem;
    std::vector<fs::path> files;
    for (int i = 1; i < argc; ++i) {
        if (fs::is_directory(argv[i])) {
            for (const auto& entry : fs::recursive_directory_iterator(argv[i])) {
                if (entry.is_regular_file()) files.push_back(entry.path());
            }
        } else if (fs::exists(argv[i])) {
            files.emplace_back(argv[i]);
        }
    }
    std::sort(files.begin(), files.end());

    feed("", 0);
    for (const auto& file : files) {
        std::ifstream in(file, std::ios::binary);
        const std::string bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
        if (!in) {
            std::fprintf(stderr, "cannot read %s\n", file.c_str());
            return 1;
        }
        std::printf("%s (%zu bytes)\n", file.filename().c_str(), bytes.size());
        std::fflush(stdout);  // the last name printed is the input that crashed
        feed(bytes, bytes.size());
        const std::size_t step = std::max<std::size_t>(1, bytes.size() / 32);
        for (std::size_t cut = 0; cut < bytes.size(); cut += step) feed(bytes, cut);
        swap_types(bytes);
    }
    std::printf("%zu inputs replayed\n", files.size());
    return files.empty() ? 1 : 0;
}
