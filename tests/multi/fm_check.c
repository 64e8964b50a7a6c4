/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fm_check.c - see fm_check.h. */
#include "multi/fm_check.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

unsigned long check_rank = 999999;

uint64_t check_mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

uint64_t check_random(uint64_t *state)
{
    *state += 0x9e3779b97f4a7c15u;
    return check_mix(*state);
}

uint32_t check_below(uint64_t *state, uint32_t n)
{
    return (uint32_t)((check_random(state) >> 32) * n >> 32);
}

uint64_t check_key(unsigned kind, unsigned long from, unsigned long to, uint64_t k)
{
    return check_mix(check_mix((uint64_t)kind << 48 ^ (uint64_t)from << 24 ^ to) + k);
}

static uint64_t word_at(uint64_t key, uint64_t word)
{
    return (key + word) * 0x9e3779b97f4a7c15u ^ key >> 9;
}

/* Whole words are most of it, and take no call of the C library each. */
static size_t step_of(uint64_t at, size_t n)
{
    size_t left = 8 - at % 8;
    return left < n ? left : n;
}

void check_fill(uint64_t key, uint64_t at, void *to, size_t n)
{
    unsigned char *out = to;
    for (size_t step; n > 0; out += step, at += step, n -= step) {
        uint64_t word = word_at(key, at / 8);
        step = step_of(at, n);
        if (step == 8)
            memcpy(out, &word, 8);
        else
            memcpy(out, (const char *)&word + at % 8, step);
    }
}

void check_bytes(uint64_t key, uint64_t at, const void *bytes, size_t n, const char *what)
{
    const unsigned char *in = bytes;
    for (size_t step; n > 0; in += step, at += step, n -= step) {
        uint64_t word = word_at(key, at / 8), got = ~word;
        step = step_of(at, n);
        if (step == 8)
            memcpy(&got, in, 8);
        if (step == 8 ? got != word : memcmp(in, (const char *)&word + at % 8, step) != 0)
            check_fail("%s: a wrong byte between %llu and %llu", what, (unsigned long long)at,
                       (unsigned long long)(at + step - 1));
    }
}

void check_fail(const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fprintf(stderr, "rank %lu: %s\n", check_rank, text);
    _exit(1); /* not exit: what is still open is no leak */
}

uint64_t check_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void check_sleep_ms(unsigned ms)
{
    const struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};
    nanosleep(&t, NULL);
}
