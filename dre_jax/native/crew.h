// Groups of members, one after the other, by whoever is free.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>

#include "trainer.h"

namespace dre {

// The caller takes part, so that it never waits for a thread that has not begun: a call can be made from every thread
// of a pool at once.
class Crew {
 public:
  explicit Crew(Work work) : work_(std::move(work)), left_(groups()) {}

  int64_t groups() const { return work_.members() / work_.together(); }

  void help() {
    std::optional<Trainer> trainer;
    for (;;) {
      const int64_t group = next_.fetch_add(1);
      if (group >= groups()) return;
      if (!trainer) trainer.emplace(work_);
      trainer->train(group);
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
