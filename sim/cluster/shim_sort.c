/* SPDX-License-Identifier: BSD-3-Clause
 *
 * shim_sort.c - qsort and qsort_r: the C library's choose their way by the memory of the machine, and keep a buffer
 * that a crash inside a comparison would leave behind. A merge sort in the process's own heap, stable as theirs mostly
 * is.
 */
#include "sim/cluster/arena.h"
#include "sim/cluster/cluster_internal.h"
#include "sim/cluster/shim.h"

#include <string.h>

typedef int compare(const void *, const void *, void *);

/* Merges [0, middle) and [middle, n) of from into to. */
static void merge(char *to, const char *from, size_t middle, size_t n, size_t each, compare *less, void *arg)
{
    size_t a = 0, b = middle;
    for (size_t i = 0; i < n; i++) {
        int first = a < middle && (b == n || less(from + a * each, from + b * each, arg) <= 0);
        memcpy(to + i * each, from + (first ? a : b) * each, each);
        *(first ? &a : &b) += 1;
    }
}

/* Without a buffer: slow, for want of memory only. */
static void insert(char *base, size_t n, size_t each, compare *less, void *arg)
{
    for (size_t i = 1; i < n; i++)
        for (size_t k = i; k > 0 && less(base + (k - 1) * each, base + k * each, arg) > 0; k--)
            for (size_t byte = 0; byte < each; byte++) {
                char *p = base + (k - 1) * each + byte, keep = *p;
                *p = p[each];
                p[each] = keep;
            }
}

static void shim_qsort_r(void *base, size_t n, size_t each, compare *less, void *arg)
{
    vc_process_called(vc_process_now);
    if (n < 2 || each == 0)
        return;
    char *from = base, *buffer = n <= SIZE_MAX / each ? vc_arena_alloc(n * each, 16) : NULL, *to = buffer;
    if (!buffer) {
        insert(base, n, each, less, arg);
        return;
    }
    for (size_t run = 1; run < n; run *= 2) {
        for (size_t at = 0; at < n; at += 2 * run) {
            size_t left = n - at, all = left < 2 * run ? left : 2 * run;
            merge(to + at * each, from + at * each, run < all ? run : all, all, each, less, arg);
        }
        char *swap = from;
        from = to;
        to = swap;
    }
    if (from != base)
        memcpy(base, from, n * each);
    vc_arena_free(buffer);
}

static int without_arg(const void *a, const void *b, void *fn)
{
    int (*less)(const void *, const void *);
    memcpy(&less, fn, sizeof less);
    return less(a, b);
}

static void shim_qsort(void *base, size_t n, size_t each, int (*less)(const void *, const void *))
{
    shim_qsort_r(base, n, each, without_arg, &less);
}

const struct vc_shim vc_shim_sort[] = {
    VC_SHIM(qsort),
    VC_SHIM(qsort_r),
    VC_SHIM_END,
};
