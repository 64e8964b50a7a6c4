/* SPDX-License-Identifier: BSD-3-Clause
 *
 * area.c - see area.h. */
#include "area.h"
#include "machine.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

long bench_futex_wait(_Atomic uint32_t *word, uint32_t expected, unsigned ms)
{
    struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};
    return syscall(SYS_futex, word, FUTEX_WAIT, expected, &t, NULL, 0);
}

void bench_futex_wake_all(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE, 1 << 30, NULL, NULL, 0);
}

static struct bench_area *map(int fd)
{
    void *at = mmap(NULL, sizeof(struct bench_area), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    return at == MAP_FAILED ? NULL : at;
}

int bench_area_create(struct bench_area **out, int *fd)
{
    int f = memfd_create("runnel-bench", MFD_CLOEXEC);
    if (f < 0)
        return -errno;
    struct bench_area *a = NULL;
    if (ftruncate(f, sizeof *a) || !(a = map(f))) {
        int e = errno;
        close(f);
        return -e;
    }
    a->magic = BENCH_AREA_MAGIC;
    a->bytes = sizeof *a;
    *out = a;
    *fd = f;
    return 0;
}

void bench_area_free(struct bench_area *a, int fd)
{
    munmap(a, sizeof *a);
    close(fd);
}

int bench_area_attach(const char *path, struct bench_area **out)
{
    struct stat st;
    int f = open(path, O_RDWR | O_CLOEXEC);
    if (f < 0)
        return -errno;
    struct bench_area *a = NULL;
    int e = 0;
    if (fstat(f, &st))
        e = -errno;
    else if (!S_ISREG(st.st_mode) || st.st_size != (off_t)sizeof *a)
        e = -EPROTO;
    else if (!(a = map(f)))
        e = -errno;
    else if (a->magic != BENCH_AREA_MAGIC || a->bytes != sizeof *a) {
        munmap(a, sizeof *a);
        e = -EPROTO;
    }
    close(f);
    if (e == 0)
        *out = a;
    return e;
}

void bench_pair_order(struct bench_pair *p, const struct bench_order *order)
{
    p->order = *order;
    uint32_t turn = atomic_load_explicit(&p->turn, memory_order_relaxed);
    /* pairs with the acquire in bench_pair_next: who sees the turn sees its order */
    atomic_store_explicit(&p->turn, turn + 1, memory_order_release);
    bench_futex_wake_all(&p->turn);
    if (order->test == BENCH_QUIT) {
        atomic_store_explicit(&p->over, 1, memory_order_release);
        bench_futex_wake_all(&p->over);
    }
}

int bench_pair_wait(struct bench_pair *p, unsigned timeout_ms, int (*alive)(void *), void *arg)
{
    uint32_t want = p->resting + bench_pair_ranks(p) * (atomic_load_explicit(&p->turn, memory_order_relaxed) + 1);
    uint64_t end = bench_now_ns() + (uint64_t)timeout_ms * 1000000u;
    for (;;) {
        /* pairs with the release in bench_pair_done: who sees both done sees their answers */
        uint32_t done = atomic_load_explicit(&p->done, memory_order_acquire);
        if (bench_pair_failure(p))
            return -EPROTO;
        if (done == want)
            return 0;
        bench_futex_wait(&p->done, done, 50);
        int e = alive ? alive(arg) : 0;
        if (e && !bench_pair_failure(p) && atomic_load_explicit(&p->done, memory_order_acquire) != want)
            return e;
        if (bench_now_ns() > end)
            return -ETIMEDOUT;
    }
}

const char *bench_pair_failure(const struct bench_pair *p)
{
    /* pairs with the release in bench_pair_fail */
    uint32_t failed = atomic_load_explicit(&p->failed, memory_order_acquire);
    return failed ? p->answer[failed & 1 ? 0 : 1].text : NULL;
}

void bench_pair_fail(struct bench_pair *p, unsigned rank, const char *sentence)
{
    struct bench_answer *a = &p->answer[rank % 2];
    size_t n = strnlen(sentence, sizeof a->text - 1);
    memcpy(a->text, sentence, n);
    a->text[n] = 0;
    atomic_fetch_or_explicit(&p->failed, 1u << rank % 2, memory_order_release);
    atomic_fetch_add_explicit(&p->done, 1, memory_order_acq_rel);
    bench_futex_wake_all(&p->done);
}

void bench_pair_attach(struct bench_pair *p)
{
    bench_pair_done(p);
}

uint32_t bench_pair_next(struct bench_pair *p, uint32_t turn, struct bench_order *out)
{
    uint32_t now;
    /* pairs with the release in bench_pair_order */
    while ((now = atomic_load_explicit(&p->turn, memory_order_acquire)) == turn)
        bench_futex_wait(&p->turn, turn, 10000);
    *out = p->order;
    return now;
}

void bench_pair_done(struct bench_pair *p)
{
    /* The last one to finish wakes the coordinator: another would make it run on a core that is still measuring. */
    uint32_t before = atomic_fetch_add_explicit(&p->done, 1, memory_order_acq_rel);
    if ((before + 1 - p->resting) % bench_pair_ranks(p) == 0)
        bench_futex_wake_all(&p->done);
}

void bench_pair_rest(struct bench_pair *p)
{
    while (!atomic_load_explicit(&p->over, memory_order_acquire))
        bench_futex_wait(&p->over, 0, 10000);
}

void bench_meet_begin(struct bench_pair *p, uint64_t *count)
{
    *count += bench_pair_ranks(p);
    /* acq_rel with the acquire in bench_met: what either process wrote before is seen by the other after */
    atomic_fetch_add_explicit(&p->meet, 1, memory_order_acq_rel);
}

bool bench_met(const struct bench_pair *p, uint64_t count)
{
    return atomic_load_explicit(&p->meet, memory_order_acquire) >= count;
}

void bench_meet(struct bench_pair *p, uint64_t *count, bool one_core)
{
    bench_meet_begin(p, count);
    for (unsigned spins = 0; !bench_met(p, *count); spins++) {
        if (one_core || spins > 100000)
            sched_yield();
        else
            bench_pause();
    }
}
