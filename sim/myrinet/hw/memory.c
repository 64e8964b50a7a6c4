/* SPDX-License-Identifier: BSD-3-Clause
 *
 * memory.c - the memory of cards and hosts: where it comes from, and how the engines move blocks of the SRAM, whose
 * words have their most significant byte first.
 *
 * Memory is mapped, not allocated: after a first run an allocator has freed room of that size, and would clear all of
 * it for the next one, 16 MB for each host, of which an experiment uses some pages. */
#include "sim/myrinet/hw/lanai.h"

#include <string.h>
#include <sys/mman.h>

void *myri_memory_new(size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
        return NULL;
#ifdef MADV_NOHUGEPAGE
    (void)madvise(p, bytes, MADV_NOHUGEPAGE); /* a large page would be cleared for some bytes of it */
#endif
    return p;
}

void myri_memory_free(void *memory, size_t bytes)
{
    if (memory)
        munmap(memory, bytes);
}

/* How many of n bytes from `at` on come before the first whole word. */
static uint32_t before_word(uint32_t at, uint32_t n)
{
    uint32_t k = -at & 3;
    return k < n ? k : n;
}

void myri_lanai_read(const struct myri_lanai *m, uint32_t at, uint8_t *out, uint32_t n)
{
    uint32_t i = 0, first = before_word(at, n);
    for (; i < first; i++)
        out[i] = myri_lanai_byte(m, at + i);
    for (; n - i >= 4; i += 4) {
        uint32_t w = __builtin_bswap32(m->sram[(at + i) >> 2]);
        memcpy(out + i, &w, 4);
    }
    for (; i < n; i++)
        out[i] = myri_lanai_byte(m, at + i);
}

void myri_lanai_write(struct myri_lanai *m, uint32_t at, const uint8_t *in, uint32_t n)
{
    uint32_t i = 0, first = before_word(at, n);
    for (; i < first; i++)
        myri_lanai_set_byte(m, at + i, in[i]);
    for (; n - i >= 4; i += 4) {
        uint32_t w;
        memcpy(&w, in + i, 4);
        m->sram[(at + i) >> 2] = __builtin_bswap32(w);
    }
    for (; i < n; i++)
        myri_lanai_set_byte(m, at + i, in[i]);
}

uint32_t myri_lanai_same(const struct myri_lanai *m, uint32_t at, const uint8_t *bytes, uint32_t n)
{
    uint32_t i = 0, first = before_word(at, n);
    for (; i < first; i++)
        if (myri_lanai_byte(m, at + i) != bytes[i])
            return i;
    for (; n - i >= 4; i += 4) {
        uint32_t w;
        memcpy(&w, bytes + i, 4);
        if (m->sram[(at + i) >> 2] != __builtin_bswap32(w))
            break;
    }
    while (i < n && myri_lanai_byte(m, at + i) == bytes[i])
        i++;
    return i;
}
