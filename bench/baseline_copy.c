/* SPDX-License-Identifier: BSD-3-Clause
 *
 * baseline_copy.c - see baseline_copy.h. */
#include "baseline_copy.h"

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

unsigned baseline_copies_in(void)
{
    return 2;
}

baseline_copy *baseline_copy_in(unsigned variant)
{
    return variant == 0 ? copy_string : widest();
}

baseline_copy *baseline_copy_out(void)
{
    return widest();
}

baseline_copy *baseline_copy_way(enum baseline_copy_way way)
{
    if (way == BASELINE_COPY_PLAIN)
        return copy_plain;
    if (way == BASELINE_COPY_STRING)
        return copy_string;
    if (__builtin_cpu_supports("avx512f"))
        return stream_avx512;
    return __builtin_cpu_supports("avx2") ? stream_avx2 : NULL;
}
#else
unsigned baseline_copies_in(void)
{
    return 1;
}

baseline_copy *baseline_copy_in(unsigned variant)
{
    (void)variant;
    return copy_plain;
}

baseline_copy *baseline_copy_out(void)
{
    return copy_plain;
}

baseline_copy *baseline_copy_way(enum baseline_copy_way way)
{
    return way == BASELINE_COPY_PLAIN ? copy_plain : NULL;
}
#endif
