// A loss over the scores of one list, and its gradient: what all losses share.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace dre {

// One list of n slots in the order of relevance; see RankedList in dre_jax/losses/order.py.
struct Ranked {
  int64_t n;
  const float* response;
  const bool* where;
  const float* weight;
  const int32_t *first, *last;
};

// In float64 exp(-600) and its inverse are numbers still: no shift but one where scores are no further apart.
constexpr double kRange = 600.0;

// Of the scores of a list's items.
struct Range {
  double top = -std::numeric_limits<double>::infinity();
  double bottom = std::numeric_limits<double>::infinity();
  int64_t count = 0;
  bool finite = true;

  Range(const Ranked& list, const float* score) {
    for (int64_t i = 0; i < list.n; ++i) {
      if (!list.where[i]) continue;
      ++count;
      finite = finite && std::isfinite(score[i]);
      top = std::max<double>(top, score[i]);
      bottom = std::min<double>(bottom, score[i]);
    }
  }

  bool narrow() const { return top - bottom <= kRange; }
};

class Loss {
 public:
  virtual ~Loss() = default;

  // The gradient times `scale` goes to `gradient`, zero in empty slots; returns the loss, where it is wanted.
  double operator()(const Ranked& list, const float* score, float scale, float* gradient) {
    const Range range(list, score);
    if (!range.finite) {
      std::fill(gradient, gradient + list.n, std::numeric_limits<float>::quiet_NaN());
      return std::numeric_limits<double>::quiet_NaN();
    }
    return of_finite(list, score, range, scale, gradient);
  }

 private:
  virtual double of_finite(const Ranked& list, const float* score, const Range& range, float scale,
                           float* gradient) = 0;
};

}  // namespace dre
