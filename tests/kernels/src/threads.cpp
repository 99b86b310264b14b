// The kernels whose threads work together, each of a block's threads one of the host's: waits that
// are missing, or that some threads do not come to, show, as they do not where threads run one
// after the other.
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <vector>

#include "host.h"

namespace {

class Barrier {
 public:
  void wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    const unsigned turn = turn_;
    if (++waiting_ == kFbBlock) {
      waiting_ = 0;
      turn_++;
      all_.notify_all();
      return;
    }
    all_.wait(lock, [&] { return turn_ != turn; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable all_;
  unsigned waiting_ = 0;
  unsigned turn_ = 0;
};

Barrier barrier;
thread_local unsigned waits;
unsigned all_waits[kFbBlock];

void wait_for_all() {
  waits++;
  barrier.wait();
}

}  // namespace

#undef FB_TOGETHER
#undef FB_SHARED
#undef FB_EACH_THREAD
#undef FB_SYNC
#define FB_TOGETHER
#define FB_SHARED static
#define FB_EACH_THREAD
#define FB_SYNC wait_for_all()

// Beside those of launch.cpp.
#define fb_huffman_tables fb_other_huffman_tables
#define fb_huffman_guess fb_other_huffman_guess
#define fb_huffman_settle fb_other_huffman_settle
#define fb_huffman_place fb_other_huffman_place
#define fb_huffman_write fb_other_huffman_write
#define fb_inverse_dct_all fb_other_inverse_dct_all
#define fb_resample_across fb_other_resample_across
#define fb_resample_down fb_other_resample_down
#define fb_levels_to_tables fb_other_levels_to_tables
#define fb_add_layers fb_other_add_layers
#define fb_erase fb_other_erase
#define fb_mix fb_other_mix
#include "render.cu"

namespace {

void run(void (*kernel)(const fb_u8*, fb_u8*, fb_u64), const fb_u8* blob, fb_u8* scratch,
         fb_u64 jobs_offset, fb_u32 tiles, fb_u32 jobs) {
  std::vector<std::thread> threads;
  for (fb_u32 number = 0; number < kFbBlock; number++) {
    threads.emplace_back([=] {
      threadIdx.x = number;
      for (blockIdx.y = 0; blockIdx.y < jobs; blockIdx.y++) {
        for (blockIdx.x = 0; blockIdx.x < tiles; blockIdx.x++) {
          waits = 0;
          kernel(blob, scratch, jobs_offset);
          all_waits[number] = waits;
          barrier.wait();
          if (all_waits[number] != all_waits[0]) {
            std::abort();
          }
          barrier.wait();
        }
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

}  // namespace

#define FB_THREADS(name)                                                                      \
  void fb_threads_##name(const fb_u8* blob, fb_u8* scratch, fb_u64 jobs_offset, fb_u32 tiles, \
                         fb_u32 jobs) {                                                       \
    run(fb_other_##name, blob, scratch, jobs_offset, tiles, jobs);                            \
  }

extern "C" {
FB_THREADS(huffman_guess)
FB_THREADS(huffman_settle)
FB_THREADS(huffman_place)
FB_THREADS(huffman_write)
FB_THREADS(resample_across)
}
