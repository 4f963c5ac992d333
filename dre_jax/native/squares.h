// Squared distances from targets: the mean squared error, and subset regression.
#pragma once

#include "loss.h"

namespace dre {

class MeanSquaredError : public Loss {
  double of_finite(const Ranked& list, const float* score, const Range& range, float scale, float* gradient) override {
    double loss = 0.0;
    for (int64_t i = 0; i < list.n; ++i) {
      const double error = list.where[i] ? static_cast<double>(score[i]) - list.response[i] : 0.0;
      const double term = list.where[i] ? list.weight[i] * error / range.count : 0.0;
      gradient[i] = scale * static_cast<float>(2.0 * term);
      loss += term * error;
    }
    return loss;
  }
};

// The target of the score, times the number of items, is that number + 1 - rank: tied items share their mean rank.
class SubsetRegression : public Loss {
 public:
  explicit SubsetRegression(int64_t n) : level_(n) {}

 private:
  double of_finite(const Ranked& list, const float* score, const Range& range, float scale, float* gradient) override {
    find_levels(list, range.count);
    double loss = 0.0;
    for (int64_t i = 0; i < list.n; ++i) {
      const double error = list.where[i] ? static_cast<double>(range.count) * score[i] - level_[i] : 0.0;
      const double term = list.where[i] ? list.weight[i] * error : 0.0;
      gradient[i] = scale * static_cast<float>(2.0 * term);
      loss += term * error;
    }
    return loss / std::max<int64_t>(range.count, 1);
  }

  void find_levels(const Ranked& list, int64_t count) {
    int64_t before = 0;
    for (int64_t i = 0; i < list.n;) {
      int64_t end = i + 1, tied = list.where[i];
      while (tied && end < list.n && (!list.where[end] || list.first[end] == list.first[i]))
        tied += list.where[end++];
      std::fill(level_.begin() + i, level_.begin() + end, count + 1.0 - (before + (1.0 + tied) / 2.0));
      before += tied;
      i = end;
    }
  }

  std::vector<double> level_;
};

}  // namespace dre
