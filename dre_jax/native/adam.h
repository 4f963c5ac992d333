// Adam with its bias correction folded into the step size (dre_jax/training/adam.py).
#pragma once

#include <cmath>
#include <cstdint>

#include "product.h"

namespace dre {

// m / (sqrt(v) + floor). The processor's root and quotient of 16 numbers take as long as forty products: where it has
// estimates good to 14 bits, one step of Newton's makes them good to float32's 23.
inline Vec update(Vec m, Vec v, float floor) {
#if defined(__AVX512F__)
  const Vec smallest = Vec{} + 1e-37f;  // keeps the inverse of a root finite
  v = v < smallest ? smallest : v;
  Vec root = (Vec)_mm512_rsqrt14_ps((__m512)v);
  root *= 1.5f - 0.5f * v * root * root;
  const Vec denominator = v * root + floor;
  Vec inverse = (Vec)_mm512_rcp14_ps((__m512)denominator);
  inverse *= 2.0f - denominator * inverse;
  return m * inverse;
#else
  for (int i = 0; i < kLanes; ++i) m[i] /= std::sqrt(v[i]) + floor;
  return m;
#endif
}

// One step over n padded parameters; the gradient is used up and zero afterwards.
inline void adam(int64_t n, float* gradient, float size, float floor, float* param, float* mean, float* square) {
  constexpr float b1 = 0.9f, b2 = 0.999f;
  for (int64_t i = 0; i < n; i += kLanes) {
    const Vec g = at(gradient + i);
    at(gradient + i) = Vec{};
    const Vec m = at(mean + i) = b1 * at(mean + i) + (1.0f - b1) * g;
    const Vec v = at(square + i) = b2 * at(square + i) + (1.0f - b2) * g * g;
    at(param + i) -= size * update(m, v, floor);
  }
}

}  // namespace dre
