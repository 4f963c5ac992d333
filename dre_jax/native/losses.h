// The losses by the names of dre_jax/losses.
#pragma once

#include <memory>
#include <string_view>

#include "listmle.h"
#include "listnet.h"
#include "ranknet.h"
#include "squares.h"

namespace dre {

// For lists of up to n slots; null where nobody knows the name.
inline std::unique_ptr<Loss> make_loss(std::string_view name, int64_t n, bool wants_loss) {
  if (name == "listmle") return std::make_unique<ListMLE>(n, wants_loss);
  if (name == "listnet") return std::make_unique<ListNet>(n);
  if (name == "ranknet") return std::make_unique<RankNet>(n, wants_loss);
  if (name == "subset_regression") return std::make_unique<SubsetRegression>(n);
  if (name == "mean_squared_error") return std::make_unique<MeanSquaredError>();
  return nullptr;
}

}  // namespace dre
