// Transposes of small matrices, a square of kLanes vectors at a time.
#pragma once

#include <cstdint>
#include <utility>

#include "product.h"

namespace dre {

// The numbers of two vectors in turn: those of their lower halves, or of their upper.
template <bool kUpper, size_t... kIndex>
inline Vec zip(Vec a, Vec b, std::index_sequence<kIndex...>) {
  return __builtin_shufflevector(a, b, ((kIndex % 2 ? kLanes : 0) + (kUpper ? kLanes / 2 : 0) + kIndex / 2)...);
}

// In each round row i is zipped with the row half a square below; when all numbers have moved the rows are columns.
inline void transpose_square(Vec (&rows)[kLanes]) {
  constexpr auto lanes = std::make_index_sequence<kLanes>{};
  for (int round = 1; round < kLanes; round *= 2) {
    Vec next[kLanes];
    for (int i = 0; i < kLanes / 2; ++i) {
      next[2 * i] = zip<false>(rows[i], rows[i + kLanes / 2], lanes);
      next[2 * i + 1] = zip<true>(rows[i], rows[i + kLanes / 2], lanes);
    }
    for (int i = 0; i < kLanes; ++i) rows[i] = next[i];
  }
}

// to [n_columns, padded(n_rows)] from [n_rows, width]; columns of `to` beyond n_rows become zero.
inline void transpose(int64_t n_rows, int64_t n_columns, const float* from, int64_t width, float* to) {
  const int64_t stride = padded(n_rows);
  for (int64_t r = 0; r < n_rows; r += kLanes)
    for (int64_t c = 0; c < n_columns; c += kLanes) {
      Vec square[kLanes];
      for (int64_t i = 0; i < kLanes; ++i) square[i] = r + i < n_rows ? at(from + (r + i) * width + c) : Vec{};
      transpose_square(square);
      for (int64_t i = 0; i < kLanes && c + i < n_columns; ++i) at(to + (c + i) * stride + r) = square[i];
    }
}

}  // namespace dre
