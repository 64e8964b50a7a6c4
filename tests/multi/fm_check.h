/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fm_check.h - what the FM programs of the tests share: numbers from a seed, bytes that their receiver can check
 * without being told, and a way to say what went wrong. Knows no FM, so that programs for fm.h and for fm1.h can use
 * it. */
#ifndef RNL_TESTS_MULTI_FM_CHECK_H
#define RNL_TESTS_MULTI_FM_CHECK_H

#include <stddef.h>
#include <stdint.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define FM_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define FM_SANITIZED 1
#endif
#endif
#ifndef FM_SANITIZED
#define FM_SANITIZED 0
#endif
/* Counts, smaller where every access is checked. */
#define FM_COUNT(n) (FM_SANITIZED ? ((n) + 9) / 10 : (n))

uint64_t check_mix(uint64_t x);
uint64_t check_random(uint64_t *state);
/* 0 .. n - 1 */
uint32_t check_below(uint64_t *state, uint32_t n);
/* Key of message k of a kind from one rank to another. */
uint64_t check_key(unsigned kind, unsigned long from, unsigned long to, uint64_t k);
/* Bytes [at, at + n) of the message with that key. */
void check_fill(uint64_t key, uint64_t at, void *to, size_t n);
/* Ends the program with status 1 and a sentence, unless they are what check_fill writes. */
void check_bytes(uint64_t key, uint64_t at, const void *bytes, size_t n, const char *what);
/* Prints "rank R: ..." on standard error and exits with 1. */
void check_fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
#define CHECK(condition)                                                           \
    do {                                                                           \
        if (!(condition))                                                          \
            check_fail("%s:%d: %s does not hold", __FILE__, __LINE__, #condition); \
    } while (0)
/* Set once known: who speaks in check_fail. */
extern unsigned long check_rank;

uint64_t check_now_ns(void); /* CLOCK_MONOTONIC: one for all ranks of a host */
void check_sleep_ms(unsigned ms);

#endif
