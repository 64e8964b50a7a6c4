/* SPDX-License-Identifier: BSD-3-Clause
 *
 * copies.h - which copy into shared memory suits which size and distance. Which is best differs by processor, distance
 * and size, and nobody can tell without measuring. So it is a word for each distance, which has defaults, and
 * which a table on disk replaces: `runnel run` and `runnel info` measure it once for each host.
 *
 *     bits        what
 *     0..3        bulk area in use: 0 = its first half MiB as long as that is enough, 1 = all of it
 *     4k..4k+3    for k = 1..15: enum rnl_copy_kind for 2^k to 2^(k+1) - 1 bytes; k = 15 is for all above, too
 *
 * The table is a file that this user owns and nobody else may write. What stands there is not trusted: a word with an
 * unknown number, another version or another processor counts as nothing. */
#ifndef RNL_BASE_COPIES_H
#define RNL_BASE_COPIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum rnl_copy_kind { RNL_COPY_MEMCPY, RNL_COPY_REP, RNL_COPY_PAST32, RNL_COPY_PAST64, RNL_COPY_KINDS };
enum { RNL_COPIES_TEXT_MAX = 512, RNL_COPIES_PATH_MAX = 512, RNL_COPIES_DISTANCES = 2, RNL_COPIES_LOG2_MAX = 15 };

/* memcpy below 2 KiB, rep movsb above. */
#define RNL_COPIES_DEFAULT ((uint64_t)0x1111100000000000)

struct rnl_copies {
    uint64_t word[RNL_COPIES_DISTANCES];    /* by enum rnl_distance */
    uint32_t line_ns[RNL_COPIES_DISTANCES]; /* how long a line took to cross when it was measured; 0 = not measured */
};

static inline enum rnl_copy_kind rnl_copies_kind(uint64_t word, size_t n)
{
    unsigned log2 = n >= (size_t)1 << RNL_COPIES_LOG2_MAX ? RNL_COPIES_LOG2_MAX : n > 1 ? 63 - __builtin_clzll(n) : 1;
    return (enum rnl_copy_kind)(word >> 4 * log2 & 15);
}
static inline bool rnl_copies_whole_area(uint64_t word)
{
    return (word & 15) == 1;
}

/* The defaults, for both distances. */
void rnl_copies_default(struct rnl_copies *c);
/* Returns whether this processor has what a word names. */
bool rnl_copies_valid(uint64_t word);
/* The text of a table for the processor of that name, at most RNL_COPIES_TEXT_MAX bytes; returns its length. */
size_t rnl_copies_format(const struct rnl_copies *c, const char *processor, char *text);
/* Reads such a text, which anybody may have written. Returns true and sets *c, or leaves it alone. */
bool rnl_copies_parse(const char *text, size_t n, const char *processor, struct rnl_copies *c);

/* The processor of this host by name, with its copies: in a text without spaces at either end. */
void rnl_copies_processor(char *out, size_t size);
/* Where the table of this host is: what RNL_COPIES names, or runnel/copies-HOST in $XDG_CACHE_HOME or ~/.cache. Returns
 * false if there is no such place: no home, or RNL_COPIES is empty. */
bool rnl_copies_path(char *out, size_t size);
/* Reads the table of this host; without one, the defaults. Returns whether there was one. */
bool rnl_copies_load(struct rnl_copies *c);
/* Replaces the table at once and whole. Returns 0 or a negative errno. */
int rnl_copies_save(const struct rnl_copies *c);

#endif
