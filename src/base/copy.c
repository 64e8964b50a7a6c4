/* SPDX-License-Identifier: BSD-3-Clause
 *
 * copy.c - bulk copies. rep movsb writes whole cache lines without fetching them from the peer's core first; vector
 * stores fetch them. Plain vector loads are the quickest to read a line that the peer has just written. Under
 * sanitizers everything is memcpy, which they understand. */
#include "base/copy.h"
#include "base/bug.h"

#include <string.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define SANITIZED 1
#endif
#endif

#if defined(__x86_64__) && !defined(SANITIZED)
#define FAST_COPY 1
#include <immintrin.h>
#if __has_include(<sys/platform/x86.h>)
#include <sys/platform/x86.h>
#define HAS_AVX2()   CPU_FEATURE_ACTIVE(AVX2)
#define HAS_AVX512() CPU_FEATURE_ACTIVE(AVX512F)
#else
#define HAS_AVX2()   __builtin_cpu_supports("avx2")
#define HAS_AVX512() __builtin_cpu_supports("avx512f")
#endif
#else
#define FAST_COPY 0
#endif

enum {
    IN_REP_MIN = 2048,
    PUT_REP_MIN = 512,
    PAST_MIN = 1024,
    LINE = 64,
    OUT_WIDE_MIN = 512,
    OUT_TURN = 128,
    PAGE = 4096,
    BEHIND = 32
};

bool rnl_copy_trips(const void *to, const void *from)
{
    return (((uintptr_t)to - (uintptr_t)from) & (PAGE - 1)) - 1 < BEHIND - 1;
}

#if FAST_COPY

/* The C library has asked the processor already. A compiler's own way asks again whenever the library is loaded, also
 * for a program that copies nothing; in a virtual machine each question may take microseconds. */
uint8_t rnl_copy_detect(void)
{
    return HAS_AVX512() ? RNL_COPY_AVX512 : HAS_AVX2() ? RNL_COPY_AVX2 : RNL_COPY_PLAIN;
}

/* Copies in turns of OUT_TURN bytes with the instructions that every x86-64 has. This function and its wider variants
 * copy the whole turns only, and return how many bytes that was. */
static size_t copy_turns(char *to, const char *from, size_t n)
{
    size_t i = 0;
    for (; n - i >= OUT_TURN; i += OUT_TURN) {
        const __m128i *f = (const __m128i *)(const void *)(from + i);
        __m128i *t = (__m128i *)(void *)(to + i);
        __m128i a = _mm_loadu_si128(f), b = _mm_loadu_si128(f + 1), c = _mm_loadu_si128(f + 2);
        __m128i d = _mm_loadu_si128(f + 3), e = _mm_loadu_si128(f + 4), g = _mm_loadu_si128(f + 5);
        __m128i h = _mm_loadu_si128(f + 6), k = _mm_loadu_si128(f + 7);
        _mm_storeu_si128(t, a);
        _mm_storeu_si128(t + 1, b);
        _mm_storeu_si128(t + 2, c);
        _mm_storeu_si128(t + 3, d);
        _mm_storeu_si128(t + 4, e);
        _mm_storeu_si128(t + 5, g);
        _mm_storeu_si128(t + 6, h);
        _mm_storeu_si128(t + 7, k);
    }
    return i;
}

/* Copies with rep movsb, or around it where that is slow. */
static void copy_rep(char *to, const char *from, size_t n)
{
    if (RNL_UNLIKELY(rnl_copy_trips(to, from))) {
        size_t done = copy_turns(to, from, n);
        to += done;
        from += done;
        n -= RNL_BUG(copy_cut_at_a_fault) ? n : done;
    }
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n) : : "memory");
}

void rnl_copy_in(void *to, const void *from, size_t n)
{
    if (n < IN_REP_MIN)
        memcpy(to, from, n);
    else
        copy_rep(to, from, n);
}

__attribute__((target("avx512f"))) static size_t copy_turns_avx512(char *to, const char *from, size_t n)
{
    size_t i = 0;
    for (; n - i >= OUT_TURN; i += OUT_TURN) {
        __m512i a = _mm512_loadu_si512(from + i);
        __m512i b = _mm512_loadu_si512(from + i + 64);
        _mm512_storeu_si512(to + i, a);
        _mm512_storeu_si512(to + i + 64, b);
    }
    return i;
}

__attribute__((target("avx2"))) static size_t copy_turns_avx2(char *to, const char *from, size_t n)
{
    size_t i = 0;
    for (; n - i >= OUT_TURN; i += OUT_TURN) {
        const __m256i *f = (const __m256i *)(const void *)(from + i);
        __m256i *t = (__m256i *)(void *)(to + i);
        __m256i a = _mm256_loadu_si256(f), b = _mm256_loadu_si256(f + 1);
        __m256i c = _mm256_loadu_si256(f + 2), d = _mm256_loadu_si256(f + 3);
        _mm256_storeu_si256(t, a);
        _mm256_storeu_si256(t + 1, b);
        _mm256_storeu_si256(t + 2, c);
        _mm256_storeu_si256(t + 3, d);
    }
    return i;
}

__attribute__((target("avx512f"))) static size_t copy_lines_past64(char *to, const char *from, size_t n)
{
    size_t i = 0;
    for (; n - i >= LINE; i += LINE)
        _mm512_stream_si512((__m512i *)(void *)(to + i), _mm512_loadu_si512(from + i));
    return i;
}

__attribute__((target("avx2"))) static size_t copy_lines_past32(char *to, const char *from, size_t n)
{
    size_t i = 0;
    for (; n - i >= LINE; i += LINE) {
        const __m256i *f = (const __m256i *)(const void *)(from + i);
        __m256i *t = (__m256i *)(void *)(to + i), a = _mm256_loadu_si256(f), b = _mm256_loadu_si256(f + 1);
        _mm256_stream_si256(t, a);
        _mm256_stream_si256(t + 1, b);
    }
    return i;
}

/* Copies whole lines past the caches, from an aligned target on; returns the bytes copied. */
static size_t copy_lines_past(char *to, const char *from, size_t n)
{
    size_t i = 0;
    for (; n - i >= LINE; i += LINE) {
        const __m128i *f = (const __m128i *)(const void *)(from + i);
        __m128i *t = (__m128i *)(void *)(to + i);
        __m128i a = _mm_loadu_si128(f), b = _mm_loadu_si128(f + 1), c = _mm_loadu_si128(f + 2);
        __m128i d = _mm_loadu_si128(f + 3);
        _mm_stream_si128(t, a);
        _mm_stream_si128(t + 1, b);
        _mm_stream_si128(t + 2, c);
        _mm_stream_si128(t + 3, d);
    }
    return i;
}

/* Copies past the caches what are whole lines of the target, and orders it. */
static void copy_past(char *t, const char *f, size_t n, size_t (*lines)(char *, const char *, size_t))
{
    size_t head = -(uintptr_t)t & (LINE - 1);
    head = head < n ? head : n;
    memcpy(t, f, head);
    size_t done = head + lines(t + head, f + head, n - head);
    memcpy(t + done, f + done, n - done);
    _mm_sfence();
}

void rnl_copy_in_kind(enum rnl_copy_kind kind, void *to, const void *from, size_t n)
{
    switch (kind) {
    case RNL_COPY_REP:
        copy_rep(to, from, n);
        break;
    case RNL_COPY_PAST32:
        copy_past(to, from, n, copy_lines_past32);
        break;
    case RNL_COPY_PAST64:
        copy_past(to, from, n, copy_lines_past64);
        break;
    default:
        if (n > 0) /* from may be NULL */
            memcpy(to, from, n);
    }
}

void rnl_copy_put(void *to, const void *from, size_t n, int far)
{
    char *t = to;
    const char *f = from;
    if (!far || n < PAST_MIN) {
        if (n < PUT_REP_MIN)
            memcpy(to, from, n);
        else
            copy_rep(t, f, n);
        return;
    }
    copy_past(t, f, n, copy_lines_past);
}

void rnl_copy_out(void *to, const void *from, size_t n, uint8_t wide)
{
    size_t done = 0;
    if (n >= OUT_WIDE_MIN) {
        if (wide == RNL_COPY_AVX512)
            done = copy_turns_avx512(to, from, n);
        else if (wide == RNL_COPY_AVX2)
            done = copy_turns_avx2(to, from, n);
    }
    if (done < n)
        memcpy((char *)to + done, (const char *)from + done, n - done);
}

#else

uint8_t rnl_copy_detect(void)
{
    return RNL_COPY_PLAIN;
}

void rnl_copy_in(void *to, const void *from, size_t n)
{
    memcpy(to, from, n);
}

void rnl_copy_in_kind(enum rnl_copy_kind kind, void *to, const void *from, size_t n)
{
    (void)kind;
    if (n > 0) /* from may be NULL */
        memcpy(to, from, n);
}

void rnl_copy_put(void *to, const void *from, size_t n, int far)
{
    (void)far;
    memcpy(to, from, n);
}

void rnl_copy_out(void *to, const void *from, size_t n, uint8_t wide)
{
    (void)wide;
    memcpy(to, from, n);
}

#endif

void rnl_copy_in_by(uint64_t word, void *to, const void *from, size_t n)
{
    rnl_copy_in_kind(rnl_copies_kind(word, n), to, from, n);
}
