// A block of WARPS warps, which trains a member of a run: its arguments, how its warps share the rows, and its lists.

template <int V>
struct Int {
  static constexpr int value = V;
};

// Calls f(Int<I>()) for I = FIRST to LAST - 1.
template <int FIRST, int LAST, class F>
DEVICE void each(F f) {
  if constexpr (FIRST < LAST) {
    f(Int<FIRST>());
    each<FIRST + 1, LAST>(f);
  }
}

struct Args {
  const float *params, *first, *second;  // [runs, members, PARAMETERS]; moments may be null: zero
  const float* x;                        // [runs, rows, XS]
  const int* support;                    // [runs, steps, members or 1, lists, KS], rows of x; like all lists below
  const float* support_response;         // the same
  const int* n_support;                  // [runs, steps, members or 1, lists], filled slots, which come first
  const int* query;                      // [..., QS]
  const unsigned* bounds;                // the same: first | last << 16 of the slots of the item's tie group
  const float* weight;                   // the same
  const int* n_query;
  const float *size, *floor;  // [runs, steps]
  float *new_params, *new_first, *new_second;
  float* losses;  // [runs, steps, members] or null
  float* scratch;
  long long rows;
  unsigned has_runs;  // bit i: argument i above has an axis of runs
  int runs, steps, members, lists, own_lists;
  int multiprocessors;  // of the device
};

constexpr int ROW_TILES = (QP + 15) / 16;
constexpr int LEAST_TILES = (ROW_TILES + WARPS - 1) / WARPS;  // of a warp, if all take part
constexpr int QUERY_WARPS = (ROW_TILES + WARPS - 2) / (WARPS - 1) == LEAST_TILES ? WARPS - 1 : WARPS;
constexpr int AT_ONCE = S == 32 && LEAST_TILES > 1 ? 2 : 1;  // tiles of a warp in registers
constexpr int PASSES = (LEAST_TILES + AT_ONCE - 1) / AT_ONCE;
constexpr int TOP = LAYERS - 1;
constexpr int H_TOP = HIDDEN[TOP];
constexpr int DEEP_WARP = WARPS - 1;
constexpr int DEEP_TILES = (KP + 15) / 16;
constexpr int DEEP_WARPS = PHI_ROWS == 0 ? 1 : DEEP_TILES < WARPS ? DEEP_TILES : WARPS;  // the last ones have its rows
// The chain of the deep set's gradients begins beside the first layer's gradient, by sums that do not wait for it.
constexpr bool EARLY_SUMS = DEEP && PASSES == 1 && LAYERS > 1;
// Warps that compute the gradient of the first layer's weights: not that of the deep set's chain.
constexpr int FIRST_BY = DEEP ? DEEP_WARP : WARPS;
// Warps copy the next list while others compute: lists from this warp on, rows the warps below that one.
constexpr int LIST_COPIERS = QUERY_WARPS < WARPS ? QUERY_WARPS : 0;
constexpr int ROW_COPIERS = DEEP && DEEP_WARPS < WARPS ? WARPS - DEEP_WARPS : WARPS;
static_assert(PASSES == 1 || BUFFERS > LAYERS, "several passes need one more buffer");

using TopTile = Tile<H_TOP / 8>;

// What a thread knows of its block and of the list at hand; the roles of the block below add what they do.
struct State {
  Shared& s;
  const Args& a;
  float* h;  // BUFFERS of QP rows: activations of the scorer, then gradients
  Optimiser optimiser;
  int run, member, part, tid, lane, warp;  // part: of the lists of a step, which GROUP blocks share
  // Of the list at hand:
  int n_support, n_query, now;
  Step step;
  float *m, *v;  // the thread's moments

  DEVICE float* buffer(int layer) { return h + layer * QP * S; }
  // The gradient of a layer's output. It takes the place of activations that are no longer needed.
  DEVICE float* gradient_buffer(int layer) {
    const int other = (TOP - layer) & 1;
    return buffer(PASSES > 1 ? TOP + other : TOP - other);
  }
  DEVICE const float* small(int offset) { return s.w + MATRICES + offset; }
  DEVICE int first_row(int pass, int t) { return 16 * (warp + QUERY_WARPS * (pass * AT_ONCE + t)); }
  DEVICE bool has_rows(int pass) { return warp < QUERY_WARPS && first_row(pass, 0) < n_query; }
  // The block's lists of a step: part, part + GROUP, and so on.
  DEVICE int lists_of_step() { return (a.lists - part + GROUP - 1) / GROUP; }
  DEVICE long long list_index(int item) {
    const int count = lists_of_step(), step_number = item / count, list = part + (item - step_number * count) * GROUP;
    const int owners = a.own_lists ? a.members : 1, owner = a.own_lists ? member : 0;
    return (((long long)step_number * owners) + owner) * a.lists + list;
  }
  // The run's part of an argument with `size` elements a run.
  DEVICE long long of_run(int argument, long long size) { return a.has_runs >> argument & 1 ? run * size : 0; }

  // Starts to copy a list into the half `which` of the buffers, by `threads` threads, of which this is `thread`.
  // Slots that it has not are zero from the start.
  DEVICE void copy_list(int item, int which, int thread, int threads) {
    const long long lists = (long long)a.steps * (a.own_lists ? a.members : 1) * a.lists, index = list_index(item);
    if (thread == 0) copy_4_bytes(s.counts + 2 * which, a.n_query + of_run(10, lists) + index);
    for (int slot = thread; slot < QS; slot += threads) {
      const long long q = index * QS + slot, all = lists * QS;
      copy_4_bytes(s.row + which * QP + slot, a.query + of_run(7, all) + q);
      copy_4_bytes(s.bounds + which * QP + slot, a.bounds + of_run(8, all) + q);
      copy_4_bytes(s.weight + which * QP + slot, a.weight + of_run(9, all) + q);
    }
    if constexpr (DEEP) {
      if (thread == threads - 1) copy_4_bytes(s.counts + 2 * which + 1, a.n_support + of_run(6, lists) + index);
      for (int slot = thread; slot < KS; slot += threads) {
        const long long k = index * KS + slot, all = lists * KS;
        copy_4_bytes(s.support + which * KP + slot, a.support + of_run(4, all) + k);
        copy_4_bytes(s.ys + which * KP + slot, a.support_response + of_run(5, all) + k);
      }
    }
  }

  // Starts to copy the rows of a list that has arrived. Rows behind its end keep what they hold: finite numbers.
  DEVICE void copy_rows(int which, int thread, int threads) {
    const float* table = a.x + of_run(3, a.rows * XS);
    for (int i = thread; i < s.counts[2 * which] * (XS / 4); i += threads) {
      const int slot = i / (XS / 4), column = 4 * (i % (XS / 4));
      copy_16_bytes(s.x + at_x(place_of_row(slot), column), table + (long long)s.row[which * QP + slot] * XS + column);
    }
    if constexpr (DEEP)
      for (int i = thread; i < s.counts[2 * which + 1] * (XS / 4); i += threads) {
        const int slot = i / (XS / 4), column = 4 * (i % (XS / 4));
        copy_16_bytes(s.xs + which * KP * XS + at_x(place_of_row(slot), column),
                      table + (long long)s.support[which * KP + slot] * XS + column);
      }
  }
};
