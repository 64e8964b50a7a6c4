/* SPDX-License-Identifier: BSD-3-Clause
 *
 * shim_memory.c - the heap of a virtual process, and the memory it maps. Blocks are powers of two behind a header of 16
 * bytes, in free lists by size: the same calls give the same addresses in each run. Mapped memory is taken from the
 * other end of the slot, in whole pages. */
#include "sim/cluster/arena.h"
#include "sim/cluster/cluster_internal.h"
#include "sim/cluster/shim.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { FIRST_BIN = 5, HEAD = 16, PAGE = 4096 };
#define BLOCK_MARK ((uint32_t)0x524e4c42)

struct head { /* before the bytes that were asked for */
    uint32_t mark, bin;
    uint64_t back; /* from the bytes to the block's beginning: more than HEAD where they had to be aligned */
};
static_assert(sizeof(struct head) == HEAD, "blocks stay aligned to 16 bytes");

static unsigned bin_of(size_t n)
{
    unsigned bin = FIRST_BIN;
    while (bin < VC_ARENA_BINS && ((size_t)1 << bin) < n)
        bin++;
    return bin;
}

/* *fresh: was never used, and reads as zeros. */
static void *take(size_t n, size_t align, int *fresh)
{
    struct vc_arena *a = vc_arena_now();
    size_t more = align > HEAD ? align : 0;
    unsigned bin = n < VC_PROCESS_SLOT_MAX ? bin_of(n + HEAD + more) : VC_ARENA_BINS;
    *fresh = 0;
    if (bin >= VC_ARENA_BINS) {
        errno = ENOMEM;
        return NULL;
    }
    unsigned char *block = a->bin[bin];
    if (block) {
        memcpy(&a->bin[bin], block + HEAD, sizeof(void *));
    } else {
        if ((size_t)(a->top - a->next) < (size_t)1 << bin) {
            errno = ENOMEM;
            return NULL;
        }
        block = a->next;
        a->next += (size_t)1 << bin;
        *fresh = 1;
    }
    unsigned char *at = block + HEAD;
    if (more)
        at = (unsigned char *)(((uintptr_t)at + align - 1) & ~(uintptr_t)(align - 1));
    *(struct head *)(void *)(at - HEAD) = (struct head){.mark = BLOCK_MARK, .bin = bin, .back = (uint64_t)(at - block)};
    return at;
}

void *vc_arena_alloc(size_t n, size_t align)
{
    int fresh;
    return take(n, align, &fresh);
}

char *vc_arena_text(const char *text)
{
    size_t n = strlen(text) + 1;
    char *copy = vc_arena_alloc(n, HEAD);
    return copy ? memcpy(copy, text, n) : NULL;
}

void vc_arena_init(struct vc_process *vp)
{
    struct vc_arena *a = vc_arena_of(vp);
    const struct vc_image *m = vp->cluster->image;
    a->next = vp->arena + ((sizeof *a + PAGE - 1) & ~(size_t)(PAGE - 1));
    a->top = vp->slot + vp->cluster->slot_bytes;
    if (m->tls_bytes) { /* zeros but for what the file has */
        a->tls = a->next;
        memcpy(a->tls, m->file + m->tls_file_at, m->tls_file_bytes);
        a->next += (m->tls_bytes + PAGE - 1) & ~(size_t)(PAGE - 1);
    }
    for (int i = 0; i < 3; i++) {
        a->file[i].fd = i;
        a->file[i].open = 1;
        a->file[i].writes = i > 0;
    }
    a->in = &a->file[0];
    a->out = &a->file[1];
    a->err = &a->file[2];
    a->index = a->tell = 1;
    a->environment = a->no_environment;
    a->exits = &a->exits_first;
}

/* ---- the shims ---- */

/* NULL, with the process ended: it does not point to a block, or its header was overwritten. */
static struct head *head_of(void *p)
{
    struct vc_process *vp = vc_process_now;
    const struct vc_arena *a = vc_arena_now();
    unsigned char *at = p;
    struct head *h = (struct head *)(void *)(at - HEAD);
    if ((uintptr_t)at % HEAD == 0 && at >= vp->arena + sizeof *a + HEAD && at < a->next && h->mark == BLOCK_MARK &&
        h->bin >= FIRST_BIN && h->bin < VC_ARENA_BINS && h->back >= HEAD && h->back < (uint64_t)1 << h->bin)
        return h;
    vc_guards_report(vp,
                     "gave back %p, where no block of memory begins (or its header "
                     "was overwritten)",
                     p);
    vc_process_end(vp, VC_END_SIGNAL, 6);
    return NULL;
}

static size_t room_of(const struct head *h)
{
    return ((size_t)1 << h->bin) - h->back;
}

static void *shim_malloc(size_t n)
{
    vc_process_called(vc_process_now);
    return vc_arena_alloc(n, HEAD);
}

void vc_arena_free(void *p)
{
    if (!p)
        return;
    struct head *h = head_of(p);
    struct vc_arena *a = vc_arena_now();
    unsigned bin = h->bin;
    unsigned char *block = (unsigned char *)p - h->back;
    h->mark = 0; /* a second free is found */
    memcpy(block + HEAD, &a->bin[bin], sizeof(void *));
    a->bin[bin] = block;
}

static void shim_free(void *p)
{
    vc_process_called(vc_process_now);
    vc_arena_free(p);
}

static void *shim_calloc(size_t n, size_t each)
{
    int fresh;
    size_t bytes;
    vc_process_called(vc_process_now);
    if (__builtin_mul_overflow(n, each, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    void *p = take(bytes, HEAD, &fresh);
    return p && !fresh ? memset(p, 0, bytes) : p;
}

static void *shim_realloc(void *p, size_t n)
{
    if (!p)
        return shim_malloc(n);
    vc_process_called(vc_process_now);
    struct head *h = head_of(p);
    size_t have = room_of(h);
    if (n == 0) {
        vc_arena_free(p);
        return NULL;
    }
    if (n <= have)
        return p;
    void *q = vc_arena_alloc(n, HEAD);
    if (q) {
        memcpy(q, p, have);
        vc_arena_free(p);
    }
    return q;
}

static void *shim_reallocarray(void *p, size_t n, size_t each)
{
    size_t bytes;
    if (!__builtin_mul_overflow(n, each, &bytes))
        return shim_realloc(p, bytes);
    errno = ENOMEM;
    return NULL;
}

static bool power_of_two(size_t n)
{
    return n != 0 && (n & (n - 1)) == 0;
}

static void *shim_aligned_alloc(size_t align, size_t n)
{
    vc_process_called(vc_process_now);
    if (power_of_two(align) && align <= VC_PROCESS_SLOT_MAX)
        return vc_arena_alloc(n, align);
    errno = EINVAL;
    return NULL;
}

static int shim_posix_memalign(void **out, size_t align, size_t n)
{
    int before = errno;
    if (align % sizeof(void *) != 0 || !power_of_two(align))
        return EINVAL;
    void *p = shim_aligned_alloc(align, n);
    errno = before;
    if (!p)
        return ENOMEM;
    *out = p;
    return 0;
}

static size_t shim_malloc_usable_size(void *p)
{
    return p ? room_of(head_of(p)) : 0;
}

static char *shim_strndup(const char *s, size_t n)
{
    size_t have = strnlen(s, n);
    char *copy = shim_malloc(have + 1);
    if (!copy)
        return NULL;
    memcpy(copy, s, have);
    copy[have] = '\0';
    return copy;
}

static char *shim_strdup(const char *s)
{
    return shim_strndup(s, SIZE_MAX);
}

static void *shim_mmap(void *at, size_t n, int protection, int flags, int fd, off_t offset)
{
    struct vc_arena *a = vc_arena_now();
    (void)at, (void)offset, (void)protection; /* a wish; anonymous memory has none; it stays readable and writable */
    vc_process_called(vc_process_now);
    if (n == 0 || (flags & MAP_FIXED)) {
        errno = EINVAL;
        return MAP_FAILED;
    }
    if (!(flags & MAP_ANONYMOUS) || fd >= 0 || (flags & MAP_SHARED)) {
        errno = ENODEV; /* files are read and written here, not mapped */
        return MAP_FAILED;
    }
    if (n > (size_t)(a->top - a->next)) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    size_t bytes = (n + PAGE - 1) & ~(size_t)(PAGE - 1);
    if (bytes > (size_t)(a->top - a->next)) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    a->top -= bytes;
    return a->top;
}

/* Its pages go back; its addresses only if it was mapped last. */
static int shim_munmap(void *at, size_t n)
{
    struct vc_process *vp = vc_process_now;
    struct vc_arena *a = vc_arena_now();
    unsigned char *from = at;
    size_t bytes = (n + PAGE - 1) & ~(size_t)(PAGE - 1);
    vc_process_called(vp);
    if ((uintptr_t)at % PAGE != 0 || from < a->top || bytes < n ||
        bytes > (size_t)(vp->slot + vp->cluster->slot_bytes - from)) {
        errno = EINVAL;
        return -1;
    }
    (void)madvise(from, bytes, MADV_DONTNEED);
    if (from == a->top)
        a->top += bytes;
    return 0;
}

static int shim_madvise(void *at, size_t n, int advice)
{
    (void)at, (void)n, (void)advice; /* wishes about speed */
    return 0;
}

static void *shim___tls_get_addr(const uint64_t index[2])
{
    return vc_arena_now()->tls + index[1];
}

const struct vc_shim vc_shim_memory[] = {
    VC_SHIM(malloc),
    VC_SHIM(free),
    VC_SHIM(calloc),
    VC_SHIM(realloc),
    VC_SHIM(reallocarray),
    VC_SHIM(aligned_alloc),
    VC_SHIM_AS(memalign, shim_aligned_alloc),
    VC_SHIM(posix_memalign),
    VC_SHIM(malloc_usable_size),
    VC_SHIM(strdup),
    VC_SHIM_AS(__strdup, shim_strdup),
    VC_SHIM(strndup),
    VC_SHIM(mmap),
    VC_SHIM_AS(mmap64, shim_mmap),
    VC_SHIM(munmap),
    VC_SHIM(madvise),
    VC_SHIM(__tls_get_addr),
    VC_SHIM_END,
};
