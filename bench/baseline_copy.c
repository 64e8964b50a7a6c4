/* SPDX-License-Identifier: BSD-3-Clause
 *
 * baseline_copy.c - see baseline_copy.h. */
#include "baseline_copy.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static void copy_plain(void *to, const void *from, size_t n)
{
    memcpy(to, from, n);
}

#if defined(__x86_64__)
#include <immintrin.h>

/* The processor moves whole lines without fetching them first: what a far reader wants. */
static void copy_string(void *to, const void *from, size_t n)
{
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n)::"memory");
}

__attribute__((target("avx2"))) static void copy_avx2(void *to, const void *from, size_t n)
{
    unsigned char *t = to;
    const unsigned char *f = from;
    size_t i = 0;
    for (; i + 128 <= n; i += 128) {
        __m256i a = _mm256_loadu_si256((const void *)(f + i)), b = _mm256_loadu_si256((const void *)(f + i + 32));
        __m256i c = _mm256_loadu_si256((const void *)(f + i + 64)), d = _mm256_loadu_si256((const void *)(f + i + 96));
        _mm256_storeu_si256((void *)(t + i), a);
        _mm256_storeu_si256((void *)(t + i + 32), b);
        _mm256_storeu_si256((void *)(t + i + 64), c);
        _mm256_storeu_si256((void *)(t + i + 96), d);
    }
    memcpy(t + i, f + i, n - i);
}

__attribute__((target("avx512f"))) static void copy_avx512(void *to, const void *from, size_t n)
{
    unsigned char *t = to;
    const unsigned char *f = from;
    size_t i = 0;
    for (; i + 128 <= n; i += 128) {
        __m512i a = _mm512_loadu_si512(f + i), b = _mm512_loadu_si512(f + i + 64);
        _mm512_storeu_si512(t + i, a);
        _mm512_storeu_si512(t + i + 64, b);
    }
    memcpy(t + i, f + i, n - i);
}

/* Past the caches: lines that another processor has are not fetched before they are written. */
__attribute__((target("avx2"))) static void stream_avx2(void *to, const void *from, size_t n)
{
    unsigned char *t = to;
    const unsigned char *f = from;
    size_t i = 0;
    for (; i + 64 <= n; i += 64) {
        __m256i a = _mm256_loadu_si256((const void *)(f + i)), b = _mm256_loadu_si256((const void *)(f + i + 32));
        _mm256_stream_si256((void *)(t + i), a);
        _mm256_stream_si256((void *)(t + i + 32), b);
    }
    memcpy(t + i, f + i, n - i);
    _mm_sfence();
}

__attribute__((target("avx512f"))) static void stream_avx512(void *to, const void *from, size_t n)
{
    unsigned char *t = to;
    const unsigned char *f = from;
    size_t i = 0;
    for (; i + 64 <= n; i += 64)
        _mm512_stream_si512((void *)(t + i), _mm512_loadu_si512(f + i));
    memcpy(t + i, f + i, n - i);
    _mm_sfence();
}

static baseline_copy *widest(void)
{
    if (__builtin_cpu_supports("avx512f"))
        return copy_avx512;
    return __builtin_cpu_supports("avx2") ? copy_avx2 : copy_plain;
}

baseline_copy *baseline_copy_way(enum baseline_copy_way way)
{
    if (way == BASELINE_COPY_PLAIN)
        return copy_plain;
    if (way == BASELINE_COPY_STRING)
        return copy_string;
    if (way == BASELINE_COPY_VECTOR)
        return widest();
    bool avx512 = __builtin_cpu_supports("avx512f");
    if (avx512 && way == BASELINE_COPY_STREAM)
        return stream_avx512;
    return __builtin_cpu_supports("avx2") && avx512 == (way == BASELINE_COPY_STREAM32) ? stream_avx2 : NULL;
}
#else
baseline_copy *baseline_copy_way(enum baseline_copy_way way)
{
    return way == BASELINE_COPY_PLAIN || way == BASELINE_COPY_VECTOR ? copy_plain : NULL;
}
#endif

/* The number of a combination that exists becomes *out, as if those before it were counted; returns how many exist. */
static unsigned walk(unsigned number, struct baseline_through *out)
{
    static const enum baseline_copy_way in[] = {BASELINE_COPY_STRING, BASELINE_COPY_VECTOR, BASELINE_COPY_STREAM,
                                                BASELINE_COPY_STREAM32},
                                        outs[] = {BASELINE_COPY_VECTOR, BASELINE_COPY_STRING};
    static const size_t rings[] = {512 << 10, 1 << 20, 256 << 10};
    unsigned n = 0;
    for (unsigned r = 0; r < sizeof rings / sizeof *rings; r++)
        for (unsigned o = 0; o < sizeof outs / sizeof *outs; o++)
            for (unsigned i = 0; i < sizeof in / sizeof *in; i++)
                if (baseline_copy_way(in[i]) && baseline_copy_way(outs[o])) {
                    if (n == number)
                        *out = (struct baseline_through){in[i], outs[o], rings[r]};
                    n++;
                }
    return n;
}

unsigned baseline_throughs(void)
{
    struct baseline_through unused;
    return walk(BASELINE_THROUGH_MAX, &unused);
}

struct baseline_through baseline_through(unsigned number)
{
    struct baseline_through t = {BASELINE_COPY_PLAIN, BASELINE_COPY_PLAIN, 512 << 10};
    walk(number, &t);
    return t;
}

void baseline_through_text(unsigned number, char *out, size_t size)
{
    static const char *const name[] = {"memcpy", "movsb", "nt", "vector", "nt32"};
    struct baseline_through t = baseline_through(number);
    snprintf(out, size, "%s in, %s out, ring of %zuK", name[t.in], name[t.out], t.ring >> 10);
}
