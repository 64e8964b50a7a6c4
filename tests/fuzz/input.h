/* SPDX-License-Identifier: BSD-3-Clause
 *
 * input.h - a fuzzer's bytes as a list of small choices, for targets that are driven by operations. Past the end there
 * are zeros. One choice a statement: C leaves open which of two operands is drawn first, and a corpus has to mean the
 * same with each compiler. */
#ifndef RNL_TESTS_FUZZ_INPUT_H
#define RNL_TESTS_FUZZ_INPUT_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct fuzz_input {
    const uint8_t *at, *end;
};

/* Whatever the input is, this must hold. */
#define FUZZ_MUST(condition) \
    do {                     \
        if (!(condition))    \
            abort();         \
    } while (0)

static inline int fuzz_more(const struct fuzz_input *in)
{
    return in->at < in->end;
}

static inline void fuzz_bytes(struct fuzz_input *in, void *to, size_t n)
{
    size_t have = (size_t)(in->end - in->at), take = n < have ? n : have;
    memset(to, 0, n);
    if (take)
        memcpy(to, in->at, take);
    in->at += take;
}

static inline unsigned fuzz_below(struct fuzz_input *in, unsigned n) /* n <= 65536 */
{
    uint8_t x[2] = {0, 0};
    fuzz_bytes(in, x, n <= 256 ? 1 : 2);
    return (x[0] | (unsigned)x[1] << 8) % n;
}

/* Numbers that lies are made of: what is true and a little beside it, the ends of the range, and any. */
static inline uint64_t fuzz_number(struct fuzz_input *in, uint64_t truth)
{
    uint64_t any;
    unsigned how = fuzz_below(in, 8);
    switch (how) {
    case 0:
        return truth;
    case 1:
        return truth + 1 + fuzz_below(in, 256);
    case 2:
        return truth - 1 - fuzz_below(in, 256);
    case 3:
        return 0;
    case 4:
        return UINT64_MAX;
    case 5:
        return (uint64_t)1 << fuzz_below(in, 64);
    case 6:
        return truth ^ (uint64_t)1 << fuzz_below(in, 64);
    default:
        fuzz_bytes(in, &any, sizeof any);
        return any;
    }
}

#endif
