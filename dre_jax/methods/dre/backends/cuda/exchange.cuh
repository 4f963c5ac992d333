// What threads own of the parameters, and what blocks tell each other: those that share the lists of a member, and
// members that share a deep set.

struct Exchange : State {
  // Members with one deep set add up the gradients of its output. Each then takes the same step of a copy of its own.
  DEVICE void sum_over_members(int item, float* d) {
    float* exchange = a.scratch + HEADER + (long long)a.runs * a.members * GROUP * SCRATCH +
                      (long long)run * (2 * a.members * S + 32);
    unsigned* arrived = (unsigned*)(exchange + 2 * a.members * S);
    float* slots = exchange + (item & 1) * a.members * S;  // a member is at most one list ahead of the others
    for (int o = lane; o < S; o += 32) store_for_all(slots + member * S + o, d[o]);
    __threadfence();
    __syncwarp();
    if (lane == 0) {
      atomicAdd(arrived, 1u);
      while (load_of_all(arrived) < (unsigned)(item + 1) * a.members) pause();
    }
    __syncwarp();
    __threadfence();
    for (int o = lane; o < S; o += 32) {
      float sum = 0.0f;
      for (int i = 0; i < a.members; ++i) sum += load_of_all(slots + i * S + o);
      d[o] = sum;
    }
    __syncwarp();
  }

  // Calls f(index of the thread's weight, place in global memory) for all weights of matrices that the thread owns.
  template <class F>
  DEVICE void visit_owned(F f) {
    each<0, LAYERS>([&](auto layer) {
      constexpr int L = decltype(layer)::value, IN = L ? HIDDEN[L ? L - 1 : 0] : D8;
      visit_pieces<IN, HIDDEN[L], L ? WARPS : FIRST_BY>(warp, lane,
                                  [&](int i, int r, int c) { f(HIDDEN_OWNED_AT[L] + i, HIDDEN_AT[L] + r * S + c); });
    });
    if constexpr (DEEP) {
      each<0, PHI_ROWS>([&](auto layer) {
        constexpr int I = decltype(layer)::value, IN = I ? PHI[I ? I - 1 : 0] : D8;
        visit_pieces<IN, PHI[I], WARPS>(warp, lane,
                                 [&](int i, int r, int c) { f(PHI_OWNED_AT[I] + i, PHI_AT[I] + r * S + c); });
      });
      each<0, CHAIN>([&](auto layer) {
        constexpr int I = decltype(layer)::value;
        visit_outer<CHAIN_IN[I], CHAIN_OUT[I]>(
            tid, [&](int i, int r, int c) { f(CHAIN_OWNED_AT[I] + i, CHAIN_AT[I] + r * S + c); });
      });
    }
  }

  // What the blocks of a member exchange, in the half `which`: gradients, then those of small parameters, then the
  // loss.
  DEVICE float* exchanged(int block, int which) {
    float* first = a.scratch + HEADER + ((long long)run * a.members + member) * GROUP * SCRATCH;
    return first + (long long)block * SCRATCH + GRADIENT_AT + which * EXCHANGED;
  }

  // Adds up the gradients of the blocks that share the lists of a member; each then takes the same step of its own
  // copy.
  DEVICE void step_of_group(int step_number, float& loss) {
    const int which = step_number & 1;  // a block is at most one step ahead of the others
    float* own = exchanged(part, which);
    for (int i = tid; i < SMALL; i += THREADS) own[OWNED * THREADS + i] = s.sum_gs[i];
    if (warp == DEEP_WARP && lane == 0) own[OWNED * THREADS + SMALL] = loss;
    unsigned* arrived = (unsigned*)(exchanged(0, 0) + 2 * EXCHANGED);
    __threadfence();
    __syncthreads();
    if (tid == 0) {
      atomicAdd(arrived, 1u);
      while (load_of_all(arrived) < (unsigned)(step_number + 1) * GROUP) pause();
      __threadfence();
    }
    __syncthreads();
    const auto sum_of = [&](int place) {
      float sum = 0.0f;
#pragma unroll 4
      for (int block = 0; block < GROUP; ++block) sum += load_of_all((const float*)exchanged(block, which) + place);
      return sum;
    };
    visit_owned([&](int i, int place) {
      float& weight = s.w[at(place / S, place % S)];
      const float gradient = sum_of(i * THREADS + tid);
      const bool in_registers = i < IN_REGISTERS;
      float* first = in_registers ? m + i : moment_of(i, optimiser);
      float* second = in_registers ? v + i : first + 4 * THREADS;
      weight = adam(weight, gradient, *first, *second, step);
    });
    for (int i = tid; i < SMALL; i += THREADS) s.sum_gs[i] = sum_of(OWNED * THREADS + i);
    loss = sum_of(OWNED * THREADS + SMALL);
    optimiser.gradient = exchanged(part, which ^ 1);
  }

  // Adds up the small parameters' gradients over the block's lists.
  DEVICE void add_small() {
    for (int i = tid; i < SMALL; i += THREADS) s.sum_gs[i] = step.first ? s.gs[i] : s.sum_gs[i] + s.gs[i];
  }

  DEVICE void small_steps() {
#pragma unroll
    for (int i = tid; i < SMALL; i += THREADS) {
      const float g = SEVERAL_LISTS ? s.sum_gs[i] : s.gs[i];
      float first = s.ms[i], second = s.vs[i];
      s.w[MATRICES + i] = adam(s.w[MATRICES + i], g, first, second, step);
      s.ms[i] = first, s.vs[i] = second;
    }
  }
};
