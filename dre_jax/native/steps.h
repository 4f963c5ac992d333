// Training steps of an ensemble with Adam, all steps of a member before the next member's: what
// dre_jax/training does as a scan, for a core whose cache holds one member.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>

#include "adam.h"
#include "losses.h"
#include "network.h"
#include "plan.h"

namespace dre {

// Everything that a call reads: lists have the dimensions [steps, members or 1, lists] in front.
struct Work {
  Plan plan;
  int64_t members, packed, columns, n_steps, n_lists, n_support, n_query;
  bool own_lists, wants_losses;
  std::string_view loss_name;
  const float *x, *support_response, *response, *weight, *size, *floor;
  const bool *support_where, *query_where;
  const int32_t *support, *query, *first, *last;
  float *params, *mean, *square, *loss;  // [members, packed] and [steps, members]

  int64_t list_number(int64_t step, int64_t member, int64_t list) const {
    return ((own_lists ? step * members + member : step) * n_lists + list);
  }
};

class Trainer {
 public:
  explicit Trainer(const Work& work)
      : work_(work),
        network_(work.plan, work.columns, work.n_support, work.n_query),
        loss_(make_loss(work.loss_name, work.n_query, work.wants_losses)),
        params_(work.plan.total),
        mean_(work.plan.total),
        square_(work.plan.total),
        added_(work.plan.total),
        support_(work.n_support * (work.columns + 1)),
        query_(work.n_query * work.columns),
        score_(work.n_query),
        slot_score_(work.n_query),
        d_score_(work.n_query) {}

  void train(int64_t member) {
    float* const packed[] = {work_.params, work_.mean, work_.square};
    Floats* const here[] = {&params_, &mean_, &square_};
    for (int i = 0; i < 3; ++i) {
      const float* from = packed[i] + member * work_.packed;
      work_.plan.each_run([&](int64_t a, int64_t b, int64_t n) { std::copy_n(from + a, n, here[i]->data() + b); });
    }
    for (int64_t step = 0; step < work_.n_steps; ++step) work_.loss[step * work_.members + member] = one(step, member);
    for (int i = 0; i < 3; ++i) {
      float* to = packed[i] + member * work_.packed;
      work_.plan.each_run([&](int64_t a, int64_t b, int64_t n) { std::copy_n(here[i]->data() + b, n, to + a); });
    }
  }

 private:
  float one(int64_t step, int64_t member) {
    const float share = 1.0f / static_cast<float>(work_.n_lists);
    double loss = 0.0;
    network_.prepare(params_.data());
    for (int64_t i = 0; i < work_.n_lists; ++i) loss += one_list(work_.list_number(step, member, i), share);
    adam(work_.plan.total, added_.data(), work_.size[step], work_.floor[step], params_.data(), mean_.data(),
         square_.data());
    return static_cast<float>(loss) * share;
  }

  // Only the slots that are filled take part, so that padding changes nothing.
  double one_list(int64_t number, float share) {
    const int64_t at_support = number * work_.n_support, at_query = number * work_.n_query, d = work_.columns;
    const bool* where = work_.query_where + at_query;
    List list{0, 0, support_.data(), query_.data()};
    for (int64_t k = 0; k < work_.n_support; ++k) {
      if (!work_.support_where[at_support + k]) continue;
      float* row = support_.data() + list.n_support++ * (d + 1);
      std::copy_n(work_.x + work_.support[at_support + k] * d, d, row);
      row[d] = work_.support_response[at_support + k];
    }
    for (int64_t q = 0; q < work_.n_query; ++q)
      if (where[q]) std::copy_n(work_.x + work_.query[at_query + q] * d, d, query_.data() + list.n_query++ * d);
    network_.forward(params_.data(), list, score_.data());
    for (int64_t q = 0, r = 0; q < work_.n_query; ++q) slot_score_[q] = where[q] ? score_[r++] : 0.0f;
    const Ranked ranked{work_.n_query,           work_.response + at_query, where,
                        work_.weight + at_query, work_.first + at_query,    work_.last + at_query};
    const double loss = (*loss_)(ranked, slot_score_.data(), share, d_score_.data());
    for (int64_t q = 0, r = 0; q < work_.n_query; ++q)
      if (where[q]) d_score_[r++] = d_score_[q];
    network_.backward(params_.data(), list, d_score_.data(), added_.data());
    return loss;
  }

  const Work& work_;
  Network network_;
  std::unique_ptr<Loss> loss_;
  Floats params_, mean_, square_, added_, support_, query_, score_, slot_score_, d_score_;
};

// Members, one after the other, by whoever is free. The caller takes part, so that it never waits for a thread that has
// not begun: a call can be made from every thread of a pool at once.
class Crew {
 public:
  explicit Crew(Work work) : work_(std::move(work)), left_(work_.members) {}

  void help() {
    std::optional<Trainer> trainer;
    for (;;) {
      const int64_t member = next_.fetch_add(1);
      if (member >= work_.members) return;
      if (!trainer) trainer.emplace(work_);
      trainer->train(member);
      const std::lock_guard<std::mutex> lock(mutex_);
      if (--left_ == 0) done_.notify_all();
    }
  }

  void wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    done_.wait(lock, [&] { return left_ == 0; });
  }

 private:
  Work work_;
  std::atomic<int64_t> next_{0};
  std::mutex mutex_;
  std::condition_variable done_;
  int64_t left_;
};

}  // namespace dre
