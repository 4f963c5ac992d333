// All steps of training in one launch: a block of WARPS warps trains a member of a run from the first step to the last.
//
// `plan.py` writes the sizes, the layout of the parameters and `struct Shared` in front of this file. Weights,
// activations and lists are in shared memory, most of Adam's moments in registers. The last warps compute the deep set;
// the others share the tiles of 16 rows of the query. What does not fit is in `scratch`, in global memory.
//
// Scores, list and deep set of one list: 13 barriers with four hidden layers, and 12 if one warp has all of the
// support's rows.

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) take_steps(Args a) {
  SHARED_MEMORY(memory);
  Shared& s = *(Shared*)memory;
  const int tid = threadIdx.x;
  int number = blockIdx.x;
  if constexpr (SHARED || GROUP > 1) {  // blocks that wait for each other are numbered in the order in which they begin
    if (tid == 0) s.number[0] = atomicAdd((int*)a.scratch, 1);
    __syncthreads();
    number = s.number[0];
    __syncthreads();
  }
  float m[IN_REGISTERS ? IN_REGISTERS : 1], v[IN_REGISTERS ? IN_REGISTERS : 1];
  // Warps of the blocks on a multiprocessor take turns in the role that has no rows of the query. In blocks that add up
  // their gradients, a thread owns the same weights.
  const int round = 2 * (blockIdx.x / a.multiprocessors & 1);  // blocks of a round are on different multiprocessors
  const int role = ((tid >> 5) + (GROUP > 1 ? 0 : blockIdx.x + round)) % WARPS;
  float* scratch = a.scratch + HEADER + (long long)number * SCRATCH;
  const int run_and_member = number / GROUP;
  const int run = run_and_member / a.members, member = run_and_member % a.members;
  float* h = ACTIVATIONS_SHARED ? s.h : scratch;
  Block b = {{{{s, a, h, {}, run, member, number % GROUP, tid, tid & 31, role}}}};
  b.m = m, b.v = v;
  b.optimiser = {scratch + MOMENTS_AT, scratch + GRADIENT_AT, tid};

  // Everything that might be read before it is written is zero.
  for (int i = tid; i < (int)(sizeof(Shared) / 4); i += THREADS) ((float*)memory)[i] = 0.0f;
  if constexpr (!ACTIVATIONS_SHARED)
    for (int i = tid; i < BUFFERS * QP * S; i += THREADS) b.h[i] = 0.0f;
  __syncthreads();
  const long long parameters = (long long)a.members * PARAMETERS, own = (long long)b.member * PARAMETERS;
  const float* params = a.params + b.of_run(0, parameters) + own;
  for (int i = tid; i < MATRICES; i += THREADS) s.w[at(i / S, i % S)] = params[i];
  for (int i = tid; i < SMALL; i += THREADS) s.w[MATRICES + i] = params[MATRICES + i];
  const float* first = a.first ? a.first + b.of_run(1, parameters) + own : nullptr;
  const float* second = a.second ? a.second + b.of_run(2, parameters) + own : nullptr;
  if (a.first)
    for (int i = tid; i < SMALL; i += THREADS) s.ms[i] = first[MATRICES + i], s.vs[i] = second[MATRICES + i];
#pragma unroll
  for (int i = 0; i < IN_REGISTERS; ++i) m[i] = v[i] = 0.0f;
  b.visit_owned([&](int i, int place) {
    const float p = first ? first[place] : 0.0f, q = second ? second[place] : 0.0f;
    if (i < IN_REGISTERS)
      m[i < IN_REGISTERS ? i : 0] = p, v[i < IN_REGISTERS ? i : 0] = q;
    else
      moment_of(i, b.optimiser)[0] = p, moment_of(i, b.optimiser)[4 * THREADS] = q;
  });

  b.copy_list(0, 0, tid, THREADS);
  await_copies();
  __syncthreads();
  b.copy_rows(0, tid, THREADS);
  await_copies();
  __syncthreads();

  const float share = 1.0f / (float)a.lists;
  const long long step_sizes = b.of_run(11, a.steps), step_floors = b.of_run(12, a.steps);
  float loss = 0.0f;
  const int lists = b.lists_of_step(), items = a.steps * lists;
  int step_number = 0, list_number = 0;
#pragma unroll 1
  for (int item = 0; item < items; ++item) {
    b.now = item & 1;
    b.n_query = s.counts[2 * b.now], b.n_support = s.counts[2 * b.now + 1];
    b.step = {a.size[step_sizes + step_number], a.floor[step_floors + step_number], list_number == 0,
              list_number == lists - 1};
    TopTile top[AT_ONCE];
    if (DEEP && b.has_deep_rows()) b.deep_mean();
    if (DEEP_WARPS > 1) __syncthreads();  // the parts of the mean are ready
    if (DEEP && b.warp == DEEP_WARP) b.chain_forward();
    Tile<HIDDEN[0] / 8> t[AT_ONCE];
    if (b.has_rows(0)) b.first_layer(t, 0);
    __syncthreads();  // the context is ready
    if (item + 1 < items && b.warp >= LIST_COPIERS)
      b.copy_list(item + 1, b.now ^ 1, LIST_COPIERS ? b.lane : tid, 32 * (WARPS - LIST_COPIERS));
#pragma unroll 1
    for (int pass = 0; pass < PASSES; ++pass) {
      if (!b.has_rows(pass)) break;
      if (pass) b.first_layer(t, pass);
      b.layers<EQUAL_WIDTHS != 0>(t, top, pass);
      b.scores(top, pass);
    }
    __syncthreads();  // the scores are ready
    if (b.warp == DEEP_WARP) {
      const float list_loss = listmle(s.scores, s.weight + b.now * QP, s.bounds + b.now * QP, s.score_gradient, s.scan,
                                      b.n_query, share, a.losses != nullptr, b.lane);
      loss = list_number == 0 ? share * list_loss : loss + share * list_loss;
      if (GROUP == 1 && a.losses && b.step.last && b.lane == 0)
        a.losses[((long long)b.run * a.steps + step_number) * a.members + b.member] = loss;
    }
    __syncthreads();  // and so are their gradients
    float sums[2 * (H_TOP / 8)];
#pragma unroll
    for (int i = 0; i < 2 * (H_TOP / 8); ++i) sums[i] = 0.0f;
#pragma unroll 1
    for (int pass = 0; pass < PASSES; ++pass) {
      if (!b.has_rows(pass)) break;
      if constexpr (PASSES > 1) {
#pragma unroll
        for (int i = 0; i < AT_ONCE; ++i) load(top[i], b.buffer(TOP), b.first_row(pass, i), QP, b.lane);
      }
      b.scores_back(top, sums, pass);
      if constexpr (PASSES > 1) {
#pragma unroll
        for (int i = 0; i < AT_ONCE; ++i) store(top[i], b.gradient_buffer(TOP), b.first_row(pass, i), QP, b.lane);
      }
    }
    if (b.warp < QUERY_WARPS) store_column_sums<H_TOP / 8>(sums, s.part + b.warp * S, b.lane);
    if (b.warp == DEEP_WARP) {
      float sum = 0.0f;
#pragma unroll
      for (int i = 0; i < ITEMS; ++i) sum += s.score_gradient[b.lane + 32 * i];
      sum = warp_sum(sum);
      if (b.lane == 0) s.gs[OUT_BIAS_AT] = sum;
    }
    b.all_layers_back<EQUAL_WIDTHS != 0>(top);
    if constexpr (DEEP) {
      if (b.warp == DEEP_WARP) b.chain_backward(item);
      __syncthreads();  // the gradient of the mean is ready
      if (b.has_deep_rows()) b.mean_back();
    }
    // Over the rows of the query, which are not needed any longer.
    if (item + 1 < items && b.warp < ROW_COPIERS) b.copy_rows(b.now ^ 1, 32 * b.warp + b.lane, 32 * ROW_COPIERS);
    if constexpr (DEEP) {
      __syncthreads();
      b.deep_weights();
      __syncthreads();
    }
    if constexpr (SEVERAL_LISTS) b.add_small();
    if constexpr (GROUP > 1) {
      if (b.step.last) {
        __syncthreads();  // all gradients of the block are added up
        b.step_of_group(step_number, loss);
        if (a.losses && b.part == 0 && tid == 0)
          a.losses[((long long)b.run * a.steps + step_number) * a.members + b.member] = loss;
        __syncthreads();
      }
    }
    if (b.step.last) b.small_steps();
    await_copies();
    if (++list_number == lists) list_number = 0, ++step_number;
    __syncthreads();
  }

  if (b.part) return;
  float* new_params = a.new_params + (long long)b.run * parameters + own;
  for (int i = tid; i < MATRICES; i += THREADS) new_params[i] = s.w[at(i / S, i % S)];
  for (int i = tid; i < SMALL; i += THREADS) new_params[MATRICES + i] = s.w[MATRICES + i];
  if (a.new_first) {
    float *new_first = a.new_first + (long long)b.run * parameters + own,
          *new_second = a.new_second + (long long)b.run * parameters + own;
    for (int i = tid; i < PARAMETERS; i += THREADS) new_first[i] = new_second[i] = 0.0f;
    __syncthreads();
    for (int i = tid; i < SMALL; i += THREADS) new_first[MATRICES + i] = s.ms[i], new_second[MATRICES + i] = s.vs[i];
    b.visit_owned([&](int i, int place) {
      if (i < IN_REGISTERS)
        new_first[place] = m[i < IN_REGISTERS ? i : 0], new_second[place] = v[i < IN_REGISTERS ? i : 0];
      else
        new_first[place] = moment_of(i, b.optimiser)[0], new_second[place] = moment_of(i, b.optimiser)[4 * THREADS];
    });
  }
}
