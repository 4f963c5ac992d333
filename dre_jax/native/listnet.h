// ListNet of a list: the cross-entropy between the top-one probabilities of its responses and of its scores.
#pragma once

#include "loss.h"

namespace dre {

class ListNet : public Loss {
 public:
  explicit ListNet(int64_t n) : target_(n), probability_(n) {}

 private:
  double of_finite(const Ranked& list, const float* score, const Range& range, float scale, float* gradient) override {
    if (range.count == 0) {
      std::fill(gradient, gradient + list.n, 0.0f);
      return 0.0;
    }
    softmax(list, list.response, Range(list, list.response).top, target_);
    const double log_total = softmax(list, score, range.top, probability_);
    double wanted = 0.0, loss = 0.0;
    for (int64_t i = 0; i < list.n; ++i) {
      if (!list.where[i]) continue;
      target_[i] *= list.weight[i];
      wanted += target_[i];
      loss += target_[i] * (log_total - score[i]);
    }
    for (int64_t i = 0; i < list.n; ++i)
      gradient[i] = list.where[i] ? scale * static_cast<float>(wanted * probability_[i] - target_[i]) : 0.0f;
    return loss;
  }

  // Returns the logarithm of the sum of the exponentials.
  static double softmax(const Ranked& list, const float* value, double top, std::vector<double>& share) {
    double total = 0.0;
    for (int64_t i = 0; i < list.n; ++i) total += share[i] = list.where[i] ? std::exp(value[i] - top) : 0.0;
    for (int64_t i = 0; i < list.n; ++i) share[i] /= total;
    return top + std::log(total);
  }

  std::vector<double> target_, probability_;
};

}  // namespace dre
