/* SPDX-License-Identifier: BSD-3-Clause
 *
 * local.c - the memory file of local.h, its events and its segments. */
#include "job/local.h"

#include "base/bug.h"
#include "base/error.h"
#include "base/limit.h"
#include "job/fds.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CONNECT = 1, DISCONNECTED = 2 }; /* flags by which one rank reports to another */
static const uint64_t look_every_ns = (uint64_t)50 * 1000 * 1000;

static struct rnl_local *local_of(struct rnl_env *env)
{
    return (struct rnl_local *)(void *)env;
}

/* ---- the file ---- */

/* Returns the size of the file without its segments. */
static size_t head_bytes(const struct rnl_local *l)
{
    size_t page = l->base.env.facts.page_bytes;
    size_t bytes = sizeof *l->page + l->count * sizeof l->page->rank[0] + (size_t)l->count * l->count;
    return (bytes + page - 1) / page * page;
}

int rnl_local_init(struct rnl_local *l, const uint32_t *rank, uint32_t count)
{
    const uint32_t size = l->base.env.size;
    l->count = count;
    l->rank = calloc(count, sizeof *l->rank);
    l->index_of = malloc(size * sizeof *l->index_of);
    l->gone = calloc(count, sizeof *l->gone);
    if (!l->rank || !l->index_of || !l->gone)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for a job of %u ranks", size);
    memset(l->index_of, 0xff, size * sizeof *l->index_of);
    for (uint32_t i = 0; i < count; i++) {
        l->rank[i] = rank[i];
        l->index_of[rank[i]] = i;
    }
    l->index = l->index_of[l->base.env.rank];
    return rnl_rank_env_segments(&l->base, count, l->index);
}

static int map_page(struct rnl_local *l)
{
    void *p = mmap(NULL, head_bytes(l), PROT_READ | PROT_WRITE, MAP_SHARED, l->base.file, 0);
    if (p == MAP_FAILED)
        return rnl_fail_errno(RNL_ERR_SYSTEM, errno,
                              "cannot map the memory that the %u ranks of this host share: raise the limit of address "
                              "space (ulimit -v)",
                              l->count);
    l->page = p;
    l->flags = (_Atomic uint8_t *)(void *)&l->page->rank[l->count];
    return 0;
}

int rnl_local_create(struct rnl_local *l, const unsigned char nonce[RNL_LOCAL_NONCE])
{
    int status = rnl_memfd_new("runnel-local", head_bytes(l), RNL_MEMFD_MAY_GROW | F_SEAL_SEAL, &l->base.file);
    if (status == 0)
        status = map_page(l);
    if (status < 0)
        return status;
    l->page->magic = RNL_LOCAL_MAGIC;
    l->page->version = RNL_LOCAL_VERSION;
    l->page->ranks = l->count;
    memcpy(l->page->nonce, nonce, RNL_LOCAL_NONCE);
    return 0;
}

static bool is_that_file(const struct rnl_local *l)
{
    struct stat st;
    int seals = fcntl(l->base.file, F_GET_SEALS);
    return seals >= 0 && (seals & F_SEAL_SHRINK) && fstat(l->base.file, &st) == 0 && S_ISREG(st.st_mode) &&
           st.st_uid == geteuid() && (uint64_t)st.st_size >= head_bytes(l);
}

int rnl_local_open(struct rnl_local *l, pid_t pid, int fd, const unsigned char nonce[RNL_LOCAL_NONCE])
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)pid, fd);
    l->base.file = open(path, O_RDWR | O_CLOEXEC);
    if (l->base.file < 0)
        return rnl_fail_errno(RNL_ERR_JOB, errno,
                              "the memory that rank %u shares with the ranks of its host cannot be opened at %s: they "
                              "need one user, one process namespace, and programs without set-user-id or capabilities",
                              l->rank[0], path);
    int status = is_that_file(l) ? map_page(l) : RNL_ERR_JOB;
    if (status == RNL_ERR_JOB ||
        (status == 0 &&
         (l->page->magic != RNL_LOCAL_MAGIC || l->page->version != RNL_LOCAL_VERSION || l->page->ranks != l->count ||
          (memcmp(l->page->nonce, nonce, RNL_LOCAL_NONCE) != 0 && !RNL_BUG(local_other_file)))))
        return rnl_fail(RNL_ERR_JOB,
                        "%s is not the memory that rank %u shares with the ranks of its host: its process is gone, or "
                        "runs in another process namespace",
                        path, l->rank[0]);
    return status;
}

static struct flock lock_of(uint32_t index)
{
    return (struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = index, .l_len = 1};
}

int rnl_local_join(struct rnl_local *l)
{
    struct rnl_local_rank *r = &l->page->rank[l->index];
    struct flock lock = lock_of(l->index);
    if (fcntl(l->base.file, F_SETLK, &lock) < 0)
        return rnl_fail_errno(RNL_ERR_JOB, errno,
                              "rank %u is open in another process: a job has one endpoint a rank, opened once",
                              l->base.env.rank);
    l->base.env.event_seq = &r->news;
    l->base.env.bell = &r->bell;
    atomic_store_explicit(&r->state, RNL_LOCAL_JOINED, memory_order_release);
    return 0;
}

/* ---- events ---- */

void rnl_local_notify(struct rnl_local *l, uint32_t index)
{
    struct rnl_local_rank *r = &l->page->rank[index];
    rnl_waitfd_announce(&l->base.wait, &r->news, &r->bell);
}

static void report(struct rnl_local *l, uint32_t to, uint8_t flag)
{
    atomic_fetch_or_explicit(&l->flags[(size_t)to * l->count + l->index], flag, memory_order_release);
    rnl_local_notify(l, to);
}

/* Whether the rank of that index has ended without leaving: its record lock is gone. The state is read again after the
 * lock, since the rank may have left in between. */
static bool is_dead(struct rnl_local *l, uint32_t index)
{
    struct rnl_local_rank *r = &l->page->rank[index];
    struct flock lock = lock_of(index);
    if (index == l->index || l->gone[index] ||
        atomic_load_explicit(&r->state, memory_order_acquire) != RNL_LOCAL_JOINED ||
        fcntl(l->base.file, F_GETLK, &lock) < 0 || lock.l_type != F_UNLCK)
        return false;
    return atomic_load_explicit(&r->state, memory_order_acquire) == RNL_LOCAL_JOINED;
}

static int deliver(const struct rnl_local *l, struct rnl_event *out, uint32_t index, uint32_t kind, int why)
{
    *out = (struct rnl_event){.kind = kind,
                              .rank = l->rank[index],
                              .incarnation = l->rank[index] + 1,
                              .why = why,
                              .detail = why == RNL_DEATH_EXIT ? -1 : 0};
    return 1;
}

int rnl_local_event(struct rnl_env *env, struct rnl_event *out)
{
    struct rnl_local *l = local_of(env);
    for (uint32_t i = 0; i < l->count; i++) {
        _Atomic uint8_t *flags = &l->flags[(size_t)l->index * l->count + i];
        uint8_t is = atomic_load_explicit(flags, memory_order_relaxed);
        uint8_t first = is & CONNECT ? CONNECT : is & DISCONNECTED;
        if (first == 0)
            continue;
        atomic_fetch_and_explicit(flags, (uint8_t)~first, memory_order_acquire); /* pairs with the release in report */
        return first == CONNECT ? deliver(l, out, i, RNL_EVENT_CONNECT, 0)
                                : deliver(l, out, i, RNL_EVENT_DEATH, RNL_DEATH_DISCONNECTED);
    }
    uint64_t now = rnl_host_now_ns(env);
    if (now < l->looked_ns + look_every_ns)
        return 0;
    for (uint32_t i = 0; i < l->count; i++)
        if (is_dead(l, i)) {
            l->deaths++;
            l->gone[i] = 1;
            return deliver(l, out, i, RNL_EVENT_DEATH, RNL_DEATH_EXIT);
        }
    l->looked_ns = now;
    return 0;
}

int rnl_local_disconnect(struct rnl_env *env, uint32_t rank, int why)
{
    struct rnl_local *l = local_of(env);
    int status = rnl_rank_env_forked(env);
    if (status == 0 && why == RNL_DEATH_BROKEN && rank < env->size && l->index_of[rank] != UINT32_MAX)
        report(l, l->index_of[rank], DISCONNECTED);
    return status;
}

struct rnl_bell *rnl_local_bell_of(struct rnl_env *env, uint32_t rank)
{
    struct rnl_local *l = local_of(env);
    return l->index_of[rank] == UINT32_MAX ? NULL : &l->page->rank[l->index_of[rank]].bell;
}

/* ---- segments ---- */

/* Returns the offset of the segment of this rank and `index`. Those of low ranks lie first, so the file grows late.
 * Untouched pages take no memory, so the file may be far larger than the memory of the host. */
static uint64_t offset_of(const struct rnl_local *l, uint32_t index, uint64_t bytes)
{
    uint64_t high = index > l->index ? index : l->index, low = index > l->index ? l->index : index;
    return head_bytes(l) + (high * (high + 1) / 2 + low) * bytes;
}

static bool is_at_least(const struct rnl_local *l, uint64_t bytes)
{
    struct stat st;
    return fstat(l->base.file, &st) == 0 && (uint64_t)st.st_size >= bytes;
}

/* Makes the file at least so large. The seal against shrinking makes ftruncate fail if another rank has made the file
 * larger meanwhile, so no rank undoes the growth by another. */
static int grow_to(const struct rnl_local *l, uint64_t bytes)
{
    int e = EFBIG;
    if (is_at_least(l, bytes))
        return 0;
    if (bytes <= INT64_MAX && rnl_limit_allows_file(bytes))
        e = ftruncate(l->base.file, (off_t)bytes) == 0 ? 0 : errno;
    if (e == 0 || is_at_least(l, bytes))
        return 0;
    return rnl_fail_errno(RNL_ERR_SYSTEM, e, "there is no room for a segment: %s", rnl_memfd_remedy(e));
}

int rnl_local_segment_open(struct rnl_env *env, uint32_t rank, size_t bytes, uint64_t wait_ns, int *segment)
{
    struct rnl_local *l = local_of(env);
    (void)wait_ns; /* this env never waits */
    if (rank >= env->size || l->index_of[rank] == UINT32_MAX || bytes == 0 || bytes % env->facts.page_bytes != 0)
        return rnl_fail(RNL_ERR_RANK, "no segment of %zu bytes with rank %u in a job of %u", bytes, rank, env->size);
    const uint32_t index = l->index_of[rank];
    int status = rnl_rank_segment_check(&l->base, rank, index);
    if (status < 0)
        return status;
    if (l->gone[index])
        return rnl_fail(RNL_ERR_PEER_DEAD, "rank %u is gone: there is no segment to share with it", rank);
    uint64_t all = 0;
    if (!atomic_compare_exchange_strong(&l->page->pair_bytes, &all, bytes) && all != bytes)
        return rnl_fail(RNL_ERR_JOB,
                        "a rank of this host has segments of another size: build all programs of a job with one "
                        "release");
    const uint64_t offset = offset_of(l, index, bytes);
    status = grow_to(l, offset + bytes);
    if (status < 0)
        return status;
    l->base.segment[index] = (struct rnl_rank_segment){.state = RNL_SEGMENT_OPEN, .fd = l->base.file, .offset = offset};
    *segment = (int)index;
    if (index != l->index)
        report(l, index, CONNECT);
    return 0;
}

/* ---- the end ---- */

void rnl_local_close(struct rnl_local *l, bool left)
{
    if (left && l->page && getpid() == l->base.owner)
        atomic_store_explicit(&l->page->rank[l->index].state, RNL_LOCAL_LEFT, memory_order_release);
    rnl_rank_env_end(&l->base);
    if (l->page)
        munmap(l->page, head_bytes(l));
    if (l->base.file >= 0)
        close(l->base.file); /* and with it the record lock */
    free(l->rank);
    free(l->index_of);
    free(l->gone);
}
