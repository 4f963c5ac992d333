// Weighted ListMLE of a list in the order of relevance, and its gradient, exact at any range of scores.
#pragma once

#include "loss.h"

namespace dre {

constexpr double kNothing = -std::numeric_limits<double>::infinity();

inline double log_add(double a, double b) {
  const double top = std::max(a, b);
  return top == kNothing ? kNothing : top + std::log(std::exp(a - top) + std::exp(b - top));
}

class ListMLE : public Loss {
 public:
  ListMLE(int64_t n, bool wants_loss) : wants_loss_(wants_loss), term_(n), sum_(n + 1), seen_(n) {}

 private:
  double of_finite(const Ranked& list, const float* score, const Range& range, float scale, float* gradient) override {
    return range.narrow() ? with_one_shift(list, score, range.top, scale, gradient)
                          : in_logarithms(list, score, scale, gradient);
  }

  // Item j stands in the denominators of all items up to the end of its tie group: d/ds_j = sum_i w_i p_ij - w_j.
  double with_one_shift(const Ranked& list, const float* score, double top, float scale, float* gradient) {
    const int64_t n = list.n;
    sum_[n] = 0.0;
    for (int64_t i = n - 1; i >= 0; --i) {
      term_[i] = list.where[i] ? std::exp(score[i] - top) : 0.0;
      sum_[i] = sum_[i + 1] + term_[i];
    }
    double prefix = 0.0, loss = 0.0;
    for (int64_t i = 0; i < n; ++i) {
      if (list.where[i]) {
        const double denominator = sum_[list.first[i]];
        prefix += list.weight[i] / denominator;
        if (wants_loss_) loss += list.weight[i] * (std::log(denominator) + top - score[i]);
      }
      seen_[i] = prefix;
    }
    for (int64_t i = 0; i < n; ++i)
      gradient[i] = list.where[i] ? scale * static_cast<float>(term_[i] * seen_[list.last[i]] - list.weight[i]) : 0.0f;
    return loss;
  }

  double in_logarithms(const Ranked& list, const float* score, float scale, float* gradient) {
    const int64_t n = list.n;
    sum_[n] = kNothing;
    for (int64_t i = n - 1; i >= 0; --i) sum_[i] = list.where[i] ? log_add(sum_[i + 1], score[i]) : sum_[i + 1];
    double prefix = kNothing, loss = 0.0;
    for (int64_t i = 0; i < n; ++i) {
      if (list.where[i]) {
        const double denominator = sum_[list.first[i]];
        prefix = log_add(prefix, std::log(static_cast<double>(list.weight[i])) - denominator);
        loss += list.weight[i] * (denominator - score[i]);
      }
      seen_[i] = prefix;
    }
    for (int64_t i = 0; i < n; ++i) {
      const double share = std::exp(score[i] + seen_[list.last[i]]);
      gradient[i] = list.where[i] ? scale * static_cast<float>(share - list.weight[i]) : 0.0f;
    }
    return loss;
  }

  bool wants_loss_;
  std::vector<double> term_, sum_, seen_;
};

}  // namespace dre
