// SPDX-License-Identifier: Apache-2.0
// Rng: a small splittable random number generator with its own distributions.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace gpusched {

/// Random numbers that are the same bits for every compiler, standard library and thread count.
///
/// The generator is xoshiro256** (Blackman and Vigna, 2018), seeded through SplitMix64. The distributions are
/// defined here because those of the standard library differ between implementations, and those of
/// Boost.Random between versions. Pass a generator by reference; give each parallel unit of work its own
/// `split(stream)`.
class Rng {
  public:
    using result_type = std::uint64_t;

    explicit constexpr Rng(std::uint64_t seed = 0) noexcept : seed_(seed) {
        std::uint64_t x = seed;
        for (auto& word : state_) word = split_mix(x);
    }

    /// An independent generator. It depends on the seed and on `stream`, but not on the numbers drawn so far.
    [[nodiscard]] constexpr Rng split(std::uint64_t stream) const noexcept {
        std::uint64_t x = seed_ ^ (stream + 1) * 0xD1342543DE82EF95ull;
        return Rng(split_mix(x));
    }

    static constexpr result_type min() noexcept { return 0; }
    static constexpr result_type max() noexcept { return ~result_type{0}; }

    /// 64 uniform bits.
    constexpr result_type operator()() noexcept {
        const auto result = std::rotl(state_[1] * 5, 7) * 9;
        const auto t = state_[1] << 17;
        state_[2] ^= state_[0];
        state_[3] ^= state_[1];
        state_[1] ^= state_[2];
        state_[0] ^= state_[3];
        state_[2] ^= t;
        state_[3] = std::rotl(state_[3], 45);
        return result;
    }

    /// Uniform in 0 .. bound - 1 without bias; `bound` >= 1.
    constexpr std::uint64_t below(std::uint64_t bound) noexcept {
        const std::uint64_t threshold = (0 - bound) % bound;
        for (;;) {
            const auto x = (*this)();
            if (x >= threshold) return x % bound;
        }
    }

    /// Uniform in low .. high, both included.
    constexpr std::int64_t between(std::int64_t low, std::int64_t high) noexcept {
        const auto span = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low);
        const auto offset = span == max() ? (*this)() : below(span + 1);
        return static_cast<std::int64_t>(static_cast<std::uint64_t>(low) + offset);
    }

    /// Uniform in [0, 1) with 53 random bits.
    constexpr double uniform() noexcept { return static_cast<double>((*this)() >> 11) * 0x1.0p-53; }

    /// True with the given probability.
    constexpr bool chance(double probability) noexcept { return uniform() < probability; }

    /// A uniformly chosen element of a non-empty sequence.
    template <class T, std::size_t Extent>
    constexpr T& pick(std::span<T, Extent> values) noexcept {
        return values[static_cast<std::size_t>(below(values.size()))];
    }

    /// Fisher-Yates shuffle in place.
    template <class T, std::size_t Extent>
    constexpr void shuffle(std::span<T, Extent> values) noexcept {
        for (std::size_t i = values.size(); i > 1; --i) {
            using std::swap;
            swap(values[i - 1], values[static_cast<std::size_t>(below(i))]);
        }
    }

  private:
    static constexpr std::uint64_t split_mix(std::uint64_t& x) noexcept {
        x += 0x9E3779B97F4A7C15ull;
        std::uint64_t z = x;
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
        return z ^ (z >> 31);
    }

    std::uint64_t seed_;
    std::array<std::uint64_t, 4> state_{};
};

}  // namespace gpusched
