// What XLA calls: the handlers of the custom calls in dre_jax/native/ops.py.
#include "floyd.h"
#include "steps.h"
#include "xla/ffi/api/ffi.h"

namespace dre {
namespace ffi = xla::ffi;

using F32 = ffi::Buffer<ffi::F32>;
using I32 = ffi::Buffer<ffi::S32>;
using Bool = ffi::Buffer<ffi::PRED>;
using Widths = ffi::Span<const int64_t>;

ffi::Error steps(ffi::ThreadPool pool, F32 params, F32 mean, F32 square, F32 x, I32 support, Bool support_where,
                 F32 support_response, I32 query, F32 response, Bool query_where, F32 weight, I32 first, I32 last,
                 F32 size, F32 floor, ffi::ResultBuffer<ffi::F32> new_params, ffi::ResultBuffer<ffi::F32> new_mean,
                 ffi::ResultBuffer<ffi::F32> new_square, ffi::ResultBuffer<ffi::F32> loss, Widths hidden, Widths phi,
                 Widths rho, std::string_view loss_name, bool wants_losses, int64_t threads) {
  const auto widths = [](Widths w) { return std::vector<int64_t>(w.begin(), w.end()); };
  const int64_t columns = x.dimensions()[1], members = params.dimensions()[0];
  Plan plan({columns, widths(hidden), widths(phi), widths(rho)});
  const auto lists = support.dimensions();
  if (plan.packed_size() != params.dimensions()[1])
    return ffi::Error::InvalidArgument("the parameters do not have the sizes of the layers");
  if (!make_loss(loss_name, 0, false)) return ffi::Error::InvalidArgument("there is no loss of that name");
  const std::pair<const F32*, float*> copied[] = {
      {&params, new_params->typed_data()}, {&mean, new_mean->typed_data()}, {&square, new_square->typed_data()}};
  for (const auto& [from, to] : copied)
    if (from->typed_data() != to) std::copy_n(from->typed_data(), from->element_count(), to);
  auto crew = std::make_shared<Crew>(Work{.plan = plan,
                                          .members = members,
                                          .packed = params.dimensions()[1],
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
                                          .params = new_params->typed_data(),
                                          .mean = new_mean->typed_data(),
                                          .square = new_square->typed_data(),
                                          .loss = loss->typed_data()});
  for (int64_t i = 1; i < std::min(threads, members); ++i) pool.Schedule([crew] { crew->help(); });
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
                                  .Ret<dre::F32>()
                                  .Attr<dre::Widths>("hidden")
                                  .Attr<dre::Widths>("phi")
                                  .Attr<dre::Widths>("rho")
                                  .Attr<std::string_view>("loss")
                                  .Attr<bool>("wants_losses")
                                  .Attr<int64_t>("threads"));

XLA_FFI_DEFINE_HANDLER_SYMBOL(DreJaxDraw, dre::draw,
                              xla::ffi::Ffi::Bind().Arg<dre::I32>().Arg<dre::I32>().Arg<dre::I32>().Ret<dre::I32>());
