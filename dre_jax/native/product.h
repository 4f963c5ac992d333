// Matrix products for matrices that fit in a core's cache: no packing, registers hold a tile of the result.
#pragma once

#include <cstdint>

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

namespace dre {

#if defined(__AVX512F__)
constexpr int kLanes = 16, kTileRows = 8;
#elif defined(__AVX__)
constexpr int kLanes = 8, kTileRows = 4;
#else
constexpr int kLanes = 4, kTileRows = 6;
#endif

// Unaligned: rows start anywhere.
typedef float Vec __attribute__((vector_size(kLanes * sizeof(float)), aligned(sizeof(float)), may_alias));

inline int64_t padded(int64_t width) { return (width + kLanes - 1) / kLanes * kLanes; }

inline Vec& at(float* p) { return *reinterpret_cast<Vec*>(p); }
inline const Vec& at(const float* p) { return *reinterpret_cast<const Vec*>(p); }

// The sum of a vector's numbers.
inline float total(Vec v) {
#if defined(__AVX512F__)
  return _mm512_reduce_add_ps((__m512)v);
#else
  float sum = 0.0f;
  for (int i = 0; i < kLanes; ++i) sum += v[i];
  return sum;
#endif
}

// The left factor: element (i, k) lies at data[i * row + k * column], so that a transpose is two numbers swapped.
struct Left {
  const float* data;
  int64_t row, column;
};

// A tile of kRows rows and kVecs vectors of columns of the product, added to what `out` holds, or to a bias for all
// rows.
template <int kRows, int kVecs>
inline void tile(Left a, int64_t depth, const float* b, int64_t width, float* out, const float* bias) {
  Vec sum[kRows][kVecs];
  for (int r = 0; r < kRows; ++r)
    for (int c = 0; c < kVecs; ++c) sum[r][c] = at((bias ? bias : out + r * width) + c * kLanes);
  for (int64_t k = 0; k < depth; ++k) {
    Vec right[kVecs];
    for (int c = 0; c < kVecs; ++c) right[c] = at(b + k * width + c * kLanes);
    for (int r = 0; r < kRows; ++r) {
      const float left = a.data[r * a.row + k * a.column];
      for (int c = 0; c < kVecs; ++c) sum[r][c] += left * right[c];
    }
  }
  for (int r = 0; r < kRows; ++r)
    for (int c = 0; c < kVecs; ++c) at(out + r * width + c * kLanes) = sum[r][c];
}

template <int kRows>
inline void band(Left a, int64_t depth, const float* b, int64_t width, float* out, const float* bias) {
  int64_t j = 0;
  for (; j + 2 * kLanes <= width; j += 2 * kLanes)
    tile<kRows, 2>(a, depth, b + j, width, out + j, bias ? bias + j : nullptr);
  if (j < width) tile<kRows, 1>(a, depth, b + j, width, out + j, bias ? bias + j : nullptr);
}

// The last rows, fewer than kRows.
template <int kRows>
inline void rest(int64_t rows, Left a, int64_t depth, const float* b, int64_t width, float* out, const float* bias) {
  if constexpr (kRows > 0) {
    if (rows == kRows) return band<kRows>(a, depth, b, width, out, bias);
    rest<kRows - 1>(rows, a, depth, b, width, out, bias);
  }
}

// out [rows, width] = a [rows, depth] @ b [depth, width] + bias, or + out where there is no bias. Widths are padded.
inline void product(int64_t rows, Left a, int64_t depth, const float* b, int64_t width, float* out, const float* bias) {
  for (; rows >= kTileRows; rows -= kTileRows, a.data += kTileRows * a.row, out += kTileRows * width)
    band<kTileRows>(a, depth, b, width, out, bias);
  rest<kTileRows - 1>(rows, a, depth, b, width, out, bias);
}

}  // namespace dre
