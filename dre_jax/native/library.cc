// What XLA calls: the handlers of the custom calls in dre_jax/native/ops.py.
#include "crew.h"
#include "floyd.h"
#include "xla/ffi/api/ffi.h"

namespace dre {
namespace ffi = xla::ffi;

using F32 = ffi::Buffer<ffi::F32>;
using I32 = ffi::Buffer<ffi::S32>;
using Bool = ffi::Buffer<ffi::PRED>;
using Sizes = ffi::Span<const int64_t>;

ffi::Error steps(ffi::ThreadPool pool, F32 scorers, F32 deep_sets, F32 x, I32 support, Bool support_where,
                 F32 support_response, I32 query, F32 response, Bool query_where, F32 weight, I32 first, I32 last,
                 F32 size, F32 floor, ffi::ResultBuffer<ffi::F32> new_scorers,
                 ffi::ResultBuffer<ffi::F32> new_deep_sets, ffi::ResultBuffer<ffi::F32> loss, Sizes hidden, Sizes phi,
                 Sizes rho, std::string_view loss_name, bool wants_losses, int64_t threads) {
  const auto widths = [](Sizes sizes) { return Widths(sizes.begin(), sizes.end()); };
  const int64_t columns = x.dimensions()[1];
  const DeepSetPlan deep_set(columns + 1, widths(phi), widths(rho));
  const ScorerPlan scorer(columns, deep_set.context(), widths(hidden));
  const auto rows = [](const F32& from, ffi::ResultBuffer<ffi::F32>& to) {
    if (from.typed_data() != to->typed_data()) std::copy_n(from.typed_data(), from.element_count(), to->typed_data());
    return Rows{to->typed_data(), from.dimensions()[1], from.dimensions()[2]};
  };
  const auto lists = support.dimensions();
  auto work = Work{.deep_set = deep_set,
                   .scorer = scorer,
                   .deep_sets = rows(deep_sets, new_deep_sets),
                   .scorers = rows(scorers, new_scorers),
                   .n_rows = x.dimensions()[0],
                   .columns = columns,
                   .n_steps = lists[0],
                   .n_lists = lists[2],
                   .n_support = lists[3],
                   .n_query = query.dimensions()[3],
                   .own_lists = lists[1] != 1,
                   .wants_losses = wants_losses,
                   .loss_name = loss_name,
                   .x = x.typed_data(),
                   .support_response = support_response.typed_data(),
                   .response = response.typed_data(),
                   .weight = weight.typed_data(),
                   .size = size.typed_data(),
                   .floor = floor.typed_data(),
                   .support_where = support_where.typed_data(),
                   .query_where = query_where.typed_data(),
                   .support = support.typed_data(),
                   .query = query.typed_data(),
                   .first = first.typed_data(),
                   .last = last.typed_data(),
                   .loss = loss->typed_data()};
  if (const char* wrong = misfit(work)) return ffi::Error::InvalidArgument(wrong);
  auto crew = std::make_shared<Crew>(std::move(work));
  for (int64_t i = 1; i < std::min(threads, crew->groups()); ++i) pool.Schedule([crew] { crew->help(); });
  crew->help();
  crew->wait();
  return ffi::Error::Success();
}

ffi::Error draw(I32 draws, I32 newest, I32 k, ffi::ResultBuffer<ffi::S32> chosen) {
  const int64_t lists = k.element_count(), length = draws.dimensions().back();
  Floyd floyd;
  for (int64_t i = 0; i < lists; ++i)
    floyd(length, draws.typed_data() + i * length, newest.typed_data() + i * length, k.typed_data()[i],
          chosen->typed_data() + i * length);
  return ffi::Error::Success();
}

}  // namespace dre

XLA_FFI_DEFINE_HANDLER_SYMBOL(DreJaxSteps, dre::steps,
                              xla::ffi::Ffi::Bind()
                                  .Ctx<xla::ffi::ThreadPool>()
                                  .Arg<dre::F32>()
                                  .Arg<dre::F32>()
                                  .Arg<dre::F32>()
                                  .Arg<dre::I32>()
                                  .Arg<dre::Bool>()
                                  .Arg<dre::F32>()
                                  .Arg<dre::I32>()
                                  .Arg<dre::F32>()
                                  .Arg<dre::Bool>()
                                  .Arg<dre::F32>()
                                  .Arg<dre::I32>()
                                  .Arg<dre::I32>()
                                  .Arg<dre::F32>()
                                  .Arg<dre::F32>()
                                  .Ret<dre::F32>()
                                  .Ret<dre::F32>()
                                  .Ret<dre::F32>()
                                  .Attr<dre::Sizes>("hidden")
                                  .Attr<dre::Sizes>("phi")
                                  .Attr<dre::Sizes>("rho")
                                  .Attr<std::string_view>("loss")
                                  .Attr<bool>("wants_losses")
                                  .Attr<int64_t>("threads"));

XLA_FFI_DEFINE_HANDLER_SYMBOL(DreJaxDraw, dre::draw,
                              xla::ffi::Ffi::Bind().Arg<dre::I32>().Arg<dre::I32>().Arg<dre::I32>().Ret<dre::I32>());
