// The squared error, and the losses by the names of dre_jax/losses.
#pragma once

#include <memory>
#include <string_view>

#include "listmle.h"

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

// For lists of up to n slots; null for an unknown name.
inline std::unique_ptr<Loss> make_loss(std::string_view name, int64_t n, bool wants_loss) {
  if (name == "listmle") return std::make_unique<ListMLE>(n, wants_loss);
  if (name == "mean_squared_error") return std::make_unique<MeanSquaredError>();
  return nullptr;
}

}  // namespace dre
