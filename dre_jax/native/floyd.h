// k distinct numbers by Floyd's algorithm, in increasing order (dre_jax/data/sampling.py).
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace dre {

class Floyd {
 public:
  // `draws` and `newest` have `length` numbers, of which the first k count; slots of `chosen` from k on are filled up.
  void operator()(int64_t length, const int32_t* draws, const int32_t* newest, int64_t k, int32_t* chosen) {
    k = std::clamp<int64_t>(k, 0, length);
    const int64_t range = k ? int64_t{newest[k - 1]} + 1 : 0;
    if (range <= kMarked)
      by_marks(draws, newest, k, range, chosen);
    else
      by_search(draws, newest, k, chosen);
    std::fill(chosen + k, chosen + length, std::numeric_limits<int32_t>::max());
  }

 private:
  static constexpr int64_t kMarked = 1 << 17;  // a bit a number: to look them all through takes less than sorting

  void by_marks(const int32_t* draws, const int32_t* newest, int64_t k, int64_t range, int32_t* chosen) {
    marks_.assign((range + 63) / 64, 0);
    const auto mark = [&](int32_t i) -> bool {
      uint64_t& word = marks_[i >> 6];
      const uint64_t bit = uint64_t{1} << (i & 63);
      const bool was = word & bit;
      word |= bit;
      return was;
    };
    for (int64_t j = 0; j < k; ++j)
      if (mark(draws[j])) mark(newest[j]);
    for (size_t w = 0; w < marks_.size(); ++w)
      for (uint64_t word = marks_[w]; word; word &= word - 1)
        *chosen++ = static_cast<int32_t>(64 * w + __builtin_ctzll(word));
  }

  // Looks each number up among those chosen before: k is small beside such a range.
  static void by_search(const int32_t* draws, const int32_t* newest, int64_t k, int32_t* chosen) {
    for (int64_t j = 0; j < k; ++j)
      chosen[j] = std::find(chosen, chosen + j, draws[j]) == chosen + j ? draws[j] : newest[j];
    std::sort(chosen, chosen + k);
  }

  std::vector<uint64_t> marks_;
};

}  // namespace dre
