/* SPDX-License-Identifier: BSD-3-Clause
 *
 * sort_lines.c - a multikey quicksort: records are ordered by 7 bytes of their lines held beside the pointer; those
 * that tie get the next 7 bytes and are ordered again. Lines are touched only when keys tie. */
#include "sort_lines.h"

#include <endian.h>
#include <string.h>

enum {
    KEY_BYTES = 7,
    KEY_MORE = 8, /* in the lowest byte of a key: the line goes on */
    SMALL = 12,   /* below this many records insertion sort is faster */
};
static const uint64_t every_byte = 0x0101010101010101;
static const uint64_t no_key = UINT64_MAX; /* no line has it: the lowest byte of a key is at most 8 */

static uint64_t load(const unsigned char *p)
{
    uint64_t x;
    memcpy(&x, p, sizeof x);
    return le64toh(x);
}

/* The lowest set bit tells the first newline: bit 7 of byte 0 to 7. 0 = none. */
static uint64_t find_newline(uint64_t bytes)
{
    bytes ^= every_byte * '\n';
    return (bytes - every_byte) & ~bytes & (every_byte * 0x80);
}

uint64_t sort_key(const unsigned char *line)
{
    uint64_t bytes = load(line), newline = find_newline(bytes);
    unsigned left = newline != 0 ? (unsigned)__builtin_ctzll(newline) / 8 : KEY_MORE;
    unsigned used = left < KEY_BYTES ? left : KEY_BYTES;
    return (__builtin_bswap64(bytes) & ~(UINT64_MAX >> (8 * used))) | left;
}

int sort_compare(const unsigned char *a, const unsigned char *b)
{
    for (;;) {
        uint64_t x = load(a);
        if (x == load(b) && find_newline(x) == 0) {
            a += 8;
            b += 8;
            continue;
        }
        uint64_t key_a = sort_key(a), key_b = sort_key(b);
        if (key_a != key_b)
            return key_a < key_b ? -1 : 1;
        if ((key_a & 0xff) != KEY_MORE)
            return 0;
        a += KEY_BYTES;
        b += KEY_BYTES;
    }
}

/* How many bytes from `depth` on all the lines share, newline not counted. */
static size_t count_shared(const struct sort_record *records, size_t n, size_t depth)
{
    size_t shared = SIZE_MAX;
    for (size_t i = 1; i < n; i++) {
        const unsigned char *a = records[0].line + depth, *b = records[i].line + depth;
        for (size_t k = 0; k < shared; k += 8) {
            uint64_t x = load(a + k), end = (x ^ load(b + k)) | find_newline(x);
            if (end != 0) {
                size_t here = k + (unsigned)__builtin_ctzll(end) / 8;
                shared = here < shared ? here : shared;
            }
        }
    }
    return shared;
}

/* Records of one call share their first `depth` bytes; their keys are those of line + depth. */
static int less(const struct sort_record *a, const struct sort_record *b, size_t depth)
{
    if (a->key != b->key)
        return a->key < b->key;
    return (a->key & 0xff) == KEY_MORE && sort_compare(a->line + depth + KEY_BYTES, b->line + depth + KEY_BYTES) < 0;
}

static void insertion_sort(struct sort_record *a, size_t n, size_t depth)
{
    for (size_t i = 1; i < n; i++) {
        struct sort_record r = a[i];
        size_t k = i;
        for (; k > 0 && less(&r, &a[k - 1], depth); k--)
            a[k] = a[k - 1];
        a[k] = r;
    }
}

/* Moves the records with keys below `bound` to the front and returns how many (n > 0). No branch depends on the data,
 * so none is mispredicted: a[hole] is free, and each record goes where the first one not below the bound stands, which
 * moves to the hole. */
static size_t split(struct sort_record *a, size_t n, uint64_t bound)
{
    struct sort_record first = a[0];
    size_t below = 0, hole = 0;
    for (size_t i = 1; i < n; i++) {
        a[hole] = a[below];
        hole = i;
        uint64_t key = a[i].key;
        a[below] = a[i];
        below += key < bound;
    }
    a[hole] = a[below];
    a[below] = first;
    return below + (first.key < bound);
}

static uint64_t median_of_3(uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t low = a < b ? a : b, high = a < b ? b : a;
    return c < low ? low : c > high ? high : c;
}

static uint64_t pick(const struct sort_record *a, size_t n, uint64_t *random)
{
    *random = *random * 6364136223846793005u + 1442695040888963407u;
    return a[(*random >> 16) % n].key;
}

/* A key near the middle, taken from places that no order of the input can spoil. */
static uint64_t choose_pivot(const struct sort_record *a, size_t n, uint64_t *random)
{
    uint64_t m[3];
    for (int i = 0; i < 3; i++) {
        m[i] = pick(a, n, random);
        if (n >= 128)
            m[i] = median_of_3(m[i], pick(a, n, random), pick(a, n, random));
    }
    return median_of_3(m[0], m[1], m[2]);
}

/* Renews the keys of lines that share their first `depth` bytes: from the first byte on in which they differ. Returns
 * its distance. */
static size_t go_deeper(struct sort_record *records, size_t n, size_t depth)
{
    size_t shared = n > 1 ? count_shared(records, n, depth) : 0;
    for (size_t i = 0; i < n; i++)
        records[i].key = sort_key(records[i].line + depth + shared);
    return shared;
}

struct range {
    struct sort_record *first;
    size_t n;
    size_t depth;
    uint64_t floor; /* no key is below it, and some may equal it; no_key = not known */
};

static void sort_range(struct range r, uint64_t *random)
{
    while (r.n > SMALL) {
        struct range low = r, high = r;
        uint64_t pivot = choose_pivot(r.first, r.n, random);
        if (pivot != r.floor) {
            low.n = split(r.first, r.n, pivot);
            high.floor = pivot;
        } else {
            /* Many equal keys. They are in place as a group; inside it the next bytes decide. */
            low.n = split(r.first, r.n, pivot + 1);
            high.floor = no_key;
            low.floor = no_key;
            if ((pivot & 0xff) == KEY_MORE)
                low.depth += KEY_BYTES + go_deeper(low.first, low.n, r.depth + KEY_BYTES);
        }
        high.first += low.n;
        high.n -= low.n;
        if (pivot == r.floor && (pivot & 0xff) != KEY_MORE) {
            r = high; /* equal lines: nothing to sort among them */
            continue;
        }
        /* The smaller part by recursion: at most log2(n) deep, however long the lines are. */
        sort_range(low.n < high.n ? low : high, random);
        r = low.n < high.n ? high : low;
    }
    insertion_sort(r.first, r.n, r.depth);
}

void sort_records(struct sort_record *records, size_t n)
{
    uint64_t random = n;
    sort_range((struct range){records, n, 0, no_key}, &random);
}
