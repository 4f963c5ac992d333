extern "C" void take_steps_on_host(const Args* args, unsigned blocks, unsigned threads, size_t shared_bytes) {
  if (shared_bytes != sizeof(Shared) || threads != THREADS) abort();
  emu::launch(blocks, threads, shared_bytes, SHARED ? 3 * args->members : 3 * GROUP - 2, [&] { take_steps(*args); });
}
