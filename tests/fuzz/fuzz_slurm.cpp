// SPDX-License-Identifier: Apache-2.0
// Any bytes, in parts between lines of "%%%", are either a snapshot, which can be built, written and
// read again, or an InvalidInput.
#include "cluster_checks.hpp"

#include <gpusched/io/slurm.hpp>

#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    auto text = fuzzing::text_of(data, size);
    std::vector<gpusched::io::NamedText> texts;
    for (;;) {
        const auto end = text.find("%%%\n");
        texts.push_back({text.substr(0, end)});
        if (end == text.npos) break;
        text.remove_prefix(end + 4);
    }
    return fuzzing::cluster_or_problems([&] { return gpusched::io::slurm_from_texts(texts); });
}
