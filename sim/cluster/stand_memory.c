/* SPDX-License-Identifier: BSD-3-Clause
 *
 * stand_memory.c - the heap of a copy, and the memory it maps. Blocks are powers of two behind a header of 16 bytes, in
 * free lists by size: the same calls give the same addresses in each run. Mapped memory is taken from the other end of
 * the slot, in whole pages. */
#include "sim/cluster/arena.h"
#include "sim/cluster/inside.h"
#include "sim/cluster/stand.h"

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
    while (bin < RNL_ARENA_BINS && ((size_t)1 << bin) < n)
        bin++;
    return bin;
}

/* *fresh: was never used, and reads as zeros. */
static void *take(size_t n, size_t align, int *fresh)
{
    struct rnl_arena *a = rnl_arena_now();
    size_t more = align > HEAD ? align : 0;
    unsigned bin = n < RNL_GUEST_SLOT_MAX ? bin_of(n + HEAD + more) : RNL_ARENA_BINS;
    *fresh = 0;
    if (bin >= RNL_ARENA_BINS) {
        errno = ENOMEM;
        return NULL;
    }
    unsigned char *block = a->bin[bin];
    if (block != NULL) {
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

void *rnl_arena_alloc(size_t n, size_t align)
{
    int fresh;
    return take(n, align, &fresh);
}

char *rnl_arena_text(const char *text)
{
    size_t n = strlen(text) + 1;
    char *copy = rnl_arena_alloc(n, HEAD);
    return copy ? memcpy(copy, text, n) : NULL;
}

void rnl_arena_init(struct rnl_guest *g)
{
    struct rnl_arena *a = rnl_arena_of(g);
    const struct rnl_image *m = g->cluster->image;
    a->next = g->arena + ((sizeof *a + PAGE - 1) & ~(size_t)(PAGE - 1));
    a->top = g->slot + g->cluster->slot_bytes;
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

/* ---- the stand-ins ---- */

/* NULL, with the copy ended: it does not point to a block, or its header was overwritten. */
static struct head *head_of(void *p)
{
    struct rnl_guest *g = rnl_guest_now;
    const struct rnl_arena *a = rnl_arena_now();
    unsigned char *at = p;
    struct head *h = (struct head *)(void *)(at - HEAD);
    if ((uintptr_t)at % HEAD == 0 && at >= g->arena + sizeof *a + HEAD && at < a->next && h->mark == BLOCK_MARK &&
        h->bin >= FIRST_BIN && h->bin < RNL_ARENA_BINS && h->back >= HEAD && h->back < (uint64_t)1 << h->bin)
        return h;
    rnl_guards_report(g,
                      "gave back %p, where no block of memory begins (or its header "
                      "was overwritten)",
                      p);
    rnl_guest_end(g, RNL_END_SIGNAL, 6);
    return NULL;
}

static size_t room_of(const struct head *h)
{
    return ((size_t)1 << h->bin) - h->back;
}

static void *stand_malloc(size_t n)
{
    rnl_guest_called(rnl_guest_now);
    return rnl_arena_alloc(n, HEAD);
}

void rnl_arena_free(void *p)
{
    if (p == NULL)
        return;
    struct head *h = head_of(p);
    struct rnl_arena *a = rnl_arena_now();
    unsigned bin = h->bin;
    unsigned char *block = (unsigned char *)p - h->back;
    h->mark = 0; /* a second free is found */
    memcpy(block + HEAD, &a->bin[bin], sizeof(void *));
    a->bin[bin] = block;
}

static void stand_free(void *p)
{
    rnl_guest_called(rnl_guest_now);
    rnl_arena_free(p);
}

static void *stand_calloc(size_t n, size_t each)
{
    int fresh;
    size_t bytes;
    rnl_guest_called(rnl_guest_now);
    if (__builtin_mul_overflow(n, each, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    void *p = take(bytes, HEAD, &fresh);
    return p && !fresh ? memset(p, 0, bytes) : p;
}

static void *stand_realloc(void *p, size_t n)
{
    if (p == NULL)
        return stand_malloc(n);
    rnl_guest_called(rnl_guest_now);
    struct head *h = head_of(p);
    size_t have = room_of(h);
    if (n == 0) {
        rnl_arena_free(p);
        return NULL;
    }
    if (n <= have)
        return p;
    void *q = rnl_arena_alloc(n, HEAD);
    if (q != NULL) {
        memcpy(q, p, have);
        rnl_arena_free(p);
    }
    return q;
}

static void *stand_reallocarray(void *p, size_t n, size_t each)
{
    size_t bytes;
    if (!__builtin_mul_overflow(n, each, &bytes))
        return stand_realloc(p, bytes);
    errno = ENOMEM;
    return NULL;
}

static int power_of_two(size_t n)
{
    return n != 0 && (n & (n - 1)) == 0;
}

static void *stand_aligned_alloc(size_t align, size_t n)
{
    rnl_guest_called(rnl_guest_now);
    if (power_of_two(align) && align <= RNL_GUEST_SLOT_MAX)
        return rnl_arena_alloc(n, align);
    errno = EINVAL;
    return NULL;
}

static int stand_posix_memalign(void **out, size_t align, size_t n)
{
    int before = errno;
    if (align % sizeof(void *) != 0 || !power_of_two(align))
        return EINVAL;
    void *p = stand_aligned_alloc(align, n);
    errno = before;
    if (p == NULL)
        return ENOMEM;
    *out = p;
    return 0;
}

static size_t stand_malloc_usable_size(void *p)
{
    return p ? room_of(head_of(p)) : 0;
}

static char *stand_strndup(const char *s, size_t n)
{
    size_t have = strnlen(s, n);
    char *copy = stand_malloc(have + 1);
    if (copy == NULL)
        return NULL;
    memcpy(copy, s, have);
    copy[have] = '\0';
    return copy;
}

static char *stand_strdup(const char *s)
{
    return stand_strndup(s, SIZE_MAX);
}

static void *stand_mmap(void *at, size_t n, int protection, int flags, int fd, off_t offset)
{
    struct rnl_arena *a = rnl_arena_now();
    (void)at, (void)offset, (void)protection; /* a wish; anonymous memory has none; it stays readable and writable */
    rnl_guest_called(rnl_guest_now);
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
static int stand_munmap(void *at, size_t n)
{
    struct rnl_guest *g = rnl_guest_now;
    struct rnl_arena *a = rnl_arena_now();
    unsigned char *from = at;
    size_t bytes = (n + PAGE - 1) & ~(size_t)(PAGE - 1);
    rnl_guest_called(g);
    if ((uintptr_t)at % PAGE != 0 || from < a->top || bytes < n ||
        bytes > (size_t)(g->slot + g->cluster->slot_bytes - from)) {
        errno = EINVAL;
        return -1;
    }
    (void)madvise(from, bytes, MADV_DONTNEED);
    if (from == a->top)
        a->top += bytes;
    return 0;
}

static int stand_madvise(void *at, size_t n, int advice)
{
    (void)at, (void)n, (void)advice; /* wishes about speed */
    return 0;
}

static void *stand___tls_get_addr(const uint64_t index[2])
{
    return rnl_arena_now()->tls + index[1];
}

const struct rnl_stand rnl_stand_memory[] = {
    RNL_STAND(malloc),
    RNL_STAND(free),
    RNL_STAND(calloc),
    RNL_STAND(realloc),
    RNL_STAND(reallocarray),
    RNL_STAND(aligned_alloc),
    RNL_STAND_AS(memalign, stand_aligned_alloc),
    RNL_STAND(posix_memalign),
    RNL_STAND(malloc_usable_size),
    RNL_STAND(strdup),
    RNL_STAND_AS(__strdup, stand_strdup),
    RNL_STAND(strndup),
    RNL_STAND(mmap),
    RNL_STAND_AS(mmap64, stand_mmap),
    RNL_STAND(munmap),
    RNL_STAND(madvise),
    RNL_STAND(__tls_get_addr),
    RNL_STAND_END,
};
