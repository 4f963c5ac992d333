// Training steps with Adam of members that share a deep set, or of one that has its own: what dre_jax/training does as
// a scan, for a core whose cache holds one member.
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "deep_set.h"
#include "losses.h"
#include "scorer.h"
#include "state.h"

namespace dre {

// Everything that a call reads; lists have the dimensions [steps, members or 1, lists] in front.
struct Work {
  DeepSetPlan deep_set;
  ScorerPlan scorer;
  Rows deep_sets, scorers;
  int64_t n_rows, columns, n_steps, n_lists, n_support, n_query;
  bool own_lists, wants_losses;
  std::string_view loss_name;
  const float *x, *support_response, *response, *weight, *size, *floor;
  const bool *support_where, *query_where;
  const int32_t *support, *query, *first, *last;
  float* loss;  // [steps, members]

  int64_t members() const { return scorers.rows; }
  // Members whose deep set is one and the same are trained together.
  int64_t together() const { return deep_set.empty() ? 1 : members() / deep_sets.rows; }

  // Lists in all.
  int64_t count() const { return n_steps * (own_lists ? members() : 1) * n_lists; }

  int64_t list_number(int64_t step, int64_t member, int64_t list) const {
    return ((own_lists ? step * members() + member : step) * n_lists + list);
  }
};

// Whether all numbers are from 0 to bound - 1.
inline bool within(const int32_t* number, int64_t count, int64_t bound) {
  const auto end = static_cast<uint32_t>(std::min<int64_t>(bound, int64_t{1} << 31));
  uint32_t outside = 0;  // not a boolean: compilers make vectors of this
  for (int64_t i = 0; i < count; ++i) outside |= static_cast<uint32_t>(number[i]) >= end;
  return outside == 0;
}

// The rule that the work breaks; null where it breaks none. Sizes and row numbers are checked here and nowhere else.
inline const char* misfit(const Work& work) {
  if (!make_loss(work.loss_name, 0, false)) return "there is no loss of that name";
  if (work.scorers.size != work.scorer.packed || work.deep_sets.size != work.deep_set.packed)
    return "the parameters do not have the sizes of the layers";
  if (!work.deep_set.empty() && work.deep_sets.rows != work.members() && work.deep_sets.rows != 1)
    return "there must be a deep set for each member, or one for all";
  if (work.together() > 1 && work.own_lists) return "members that share a deep set must share lists";
  const int64_t queries = work.count() * work.n_query;
  if (!within(work.support, work.count() * work.n_support, work.n_rows) || !within(work.query, queries, work.n_rows))
    return "row numbers of support and query must be from 0 to the table's last row";
  if (!within(work.first, queries, work.n_query) || !within(work.last, queries, work.n_query))
    return "bounds of tie groups must be slots of their list";
  return nullptr;
}

class Trainer {
 public:
  explicit Trainer(const Work& work)
      : work_(work),
        scorer_(work.scorer, work.n_query),
        loss_(make_loss(work.loss_name, work.n_query, work.wants_losses)),
        deep_state_(work.deep_set.total),
        states_(work.together(), State(work.scorer.total)),
        losses_(work.together()),
        d_context_(work.scorer.context),
        support_(work.n_support * (work.columns + 1)),
        query_(work.n_query * work.columns),
        score_(work.n_query),
        slot_score_(work.n_query),
        d_score_(work.n_query) {
    if (!work.deep_set.empty()) deep_set_.emplace(work.deep_set, work.columns + 1, work.n_support);
  }

  // All steps of a group of members.
  void train(int64_t group) {
    const int64_t count = work_.together(), first = group * count;
    if (deep_set_) deep_state_.load(work_.deep_set, work_.deep_sets, group);
    for (int64_t m = 0; m < count; ++m) states_[m].load(work_.scorer, work_.scorers, first + m);
    for (int64_t step = 0; step < work_.n_steps; ++step) {
      one(step, first);
      for (int64_t m = 0; m < count; ++m)
        work_.loss[step * work_.members() + first + m] = static_cast<float>(losses_[m]) * share();
    }
    if (deep_set_) deep_state_.store(work_.deep_set, work_.deep_sets, group);
    for (int64_t m = 0; m < count; ++m) states_[m].store(work_.scorer, work_.scorers, first + m);
  }

 private:
  float share() const { return 1.0f / static_cast<float>(work_.n_lists); }

  void one(int64_t step, int64_t first) {
    std::fill(losses_.begin(), losses_.end(), 0.0);
    if (deep_set_) deep_set_->prepare(deep_state_.value.data());
    for (int64_t i = 0; i < work_.n_lists; ++i) one_list(work_.list_number(step, first, i), i == 0);
    const float size = work_.size[step], floor = work_.floor[step];
    if (deep_set_) deep_state_.step(size, floor);
    for (State& state : states_) state.step(size, floor);
  }

  void one_list(int64_t number, bool is_first) {
    read(number);
    const float* context = nullptr;
    if (deep_set_) context = deep_set_->forward(deep_state_.value.data(), support_.data(), filled_support_);
    std::fill(d_context_.begin(), d_context_.end(), 0.0f);
    for (size_t m = 0; m < states_.size(); ++m) {
      State& state = states_[m];
      if (is_first || states_.size() > 1) scorer_.prepare(state.value.data());
      scorer_.forward(state.value.data(), query_.data(), filled_query_, context, score_.data());
      losses_[m] += loss_of_list(number);
      scorer_.backward(state.value.data(), query_.data(), filled_query_, context, d_score_.data(), state.added.data(),
                       d_context_.data());
    }
    if (deep_set_)
      deep_set_->backward(deep_state_.value.data(), support_.data(), filled_support_, d_context_.data(),
                          deep_state_.added.data());
  }

  // The rows of the list. Only the slots that are filled take part, so that padding changes nothing.
  void read(int64_t number) {
    const int64_t at_support = number * work_.n_support, at_query = number * work_.n_query, d = work_.columns;
    filled_support_ = filled_query_ = 0;
    for (int64_t k = at_support; k < at_support + work_.n_support; ++k) {
      if (!work_.support_where[k]) continue;
      float* row = support_.data() + filled_support_++ * (d + 1);
      std::copy_n(work_.x + work_.support[k] * d, d, row);
      row[d] = work_.support_response[k];
    }
    for (int64_t q = at_query; q < at_query + work_.n_query; ++q)
      if (work_.query_where[q]) std::copy_n(work_.x + work_.query[q] * d, d, query_.data() + filled_query_++ * d);
  }

  // The loss of the scores, whose gradient it leaves in `d_score_`.
  double loss_of_list(int64_t number) {
    const int64_t at = number * work_.n_query;
    const bool* where = work_.query_where + at;
    for (int64_t q = 0, r = 0; q < work_.n_query; ++q) slot_score_[q] = where[q] ? score_[r++] : 0.0f;
    const Ranked ranked{work_.n_query,     work_.response + at, where,
                        work_.weight + at, work_.first + at,    work_.last + at};
    const double loss = (*loss_)(ranked, slot_score_.data(), share(), d_score_.data());
    for (int64_t q = 0, r = 0; q < work_.n_query; ++q)
      if (where[q]) d_score_[r++] = d_score_[q];
    return loss;
  }

  const Work& work_;
  std::optional<DeepSet> deep_set_;
  Scorer scorer_;
  std::unique_ptr<Loss> loss_;
  State deep_state_;
  std::vector<State> states_;
  std::vector<double> losses_;
  int64_t filled_support_ = 0, filled_query_ = 0;
  Floats d_context_, support_, query_, score_, slot_score_, d_score_;
};

}  // namespace dre
