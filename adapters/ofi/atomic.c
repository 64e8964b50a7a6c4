/* SPDX-License-Identifier: BSD-3-Clause
 *
 * atomic.c - the arithmetic of ATOMIC. It is atomic among all that peers do so to one domain, since handlers run one
 * after another; with instructions of the owner it is not. */
#include "ofi.h"

#include <complex.h>
#include <string.h>

#define TYPES(x)                                                                                       \
    x(FI_INT8, int8_t, INTEGER) x(FI_UINT8, uint8_t, INTEGER) x(FI_INT16, int16_t, INTEGER)            \
        x(FI_UINT16, uint16_t, INTEGER) x(FI_INT32, int32_t, INTEGER) x(FI_UINT32, uint32_t, INTEGER)  \
            x(FI_INT64, int64_t, INTEGER) x(FI_UINT64, uint64_t, INTEGER) x(FI_FLOAT, float, REAL)     \
                x(FI_DOUBLE, double, REAL) x(FI_FLOAT_COMPLEX, float complex, COMPLEX)                 \
                    x(FI_DOUBLE_COMPLEX, double complex, COMPLEX) x(FI_LONG_DOUBLE, long double, REAL) \
                        x(FI_LONG_DOUBLE_COMPLEX, long double complex, COMPLEX)

enum sort { COMPLEX, REAL, INTEGER };
static const struct {
    uint8_t bytes, sort;
} types[] = {
#define ROW(name, type, sort) [name] = {sizeof(type), sort},
    TYPES(ROW)
#undef ROW
};

size_t rnl_ofi_atomic_bytes(unsigned type, unsigned op, enum rnl_ofi_atomic_way way)
{
    if (type >= sizeof types / sizeof *types || types[type].bytes == 0)
        return 0;
    unsigned least = INTEGER; /* of the sort, to have the operation */
    switch (op) {
    case FI_SUM:
    case FI_PROD:
    case FI_LOR:
    case FI_LAND:
    case FI_LXOR:
    case FI_ATOMIC_READ:
    case FI_ATOMIC_WRITE:
    case FI_CSWAP:
    case FI_CSWAP_NE:
        least = COMPLEX;
        break;
    case FI_MIN:
    case FI_MAX:
    case FI_CSWAP_LE:
    case FI_CSWAP_LT:
    case FI_CSWAP_GE:
    case FI_CSWAP_GT:
        least = REAL;
        break;
    case FI_BOR:
    case FI_BAND:
    case FI_BXOR:
    case FI_MSWAP:
        break;
    default:
        return 0;
    }
    bool compares = op >= FI_CSWAP && op <= FI_MSWAP;
    if (compares != (way == RNL_OFI_COMPARE) || (op == FI_ATOMIC_READ && way != RNL_OFI_FETCH))
        return 0;
    return types[type].sort >= least ? types[type].bytes : 0;
}

/* Sums and products of integers wrap around: they are those of 64 bits without sign, cut off. */
#define ANY_CASES(type, wide)               \
    case FI_SUM:                            \
        return (type)((wide)old + (wide)v); \
    case FI_PROD:                           \
        return (type)((wide)old * (wide)v); \
    case FI_LOR:                            \
        return old != 0 || v != 0;          \
    case FI_LAND:                           \
        return old != 0 && v != 0;          \
    case FI_LXOR:                           \
        return (old != 0) != (v != 0);      \
    case FI_ATOMIC_WRITE:                   \
        return v;                           \
    case FI_CSWAP:                          \
        return c == old ? v : old;          \
    case FI_CSWAP_NE:                       \
        return c != old ? v : old;
#define REAL_CASES                 \
    case FI_MIN:                   \
        return v < old ? v : old;  \
    case FI_MAX:                   \
        return v > old ? v : old;  \
    case FI_CSWAP_LE:              \
        return c <= old ? v : old; \
    case FI_CSWAP_LT:              \
        return c < old ? v : old;  \
    case FI_CSWAP_GE:              \
        return c >= old ? v : old; \
    case FI_CSWAP_GT:              \
        return c > old ? v : old;
#define INTEGER_CASES(type)     \
    case FI_BOR:                \
        return (type)(old | v); \
    case FI_BAND:               \
        return (type)(old & v); \
    case FI_BXOR:               \
        return (type)(old ^ v); \
    case FI_MSWAP:              \
        return (type)((v & c) | (old & ~c));
#define CASES_COMPLEX(type) ANY_CASES(type, type)
#define CASES_REAL(type)    ANY_CASES(type, type) REAL_CASES
#define CASES_INTEGER(type) ANY_CASES(type, uint64_t) REAL_CASES INTEGER_CASES(type)

/* A function for each type that changes one element after another. */
#define DEFINE(name, type, sort)                                                                \
    static inline type new_##name(unsigned op, type old, type v, type c)                        \
    {                                                                                           \
        switch (op) {                                                                           \
            CASES_##sort(type) default : return old;                                            \
        }                                                                                       \
    }                                                                                           \
    static void apply_##name(unsigned op, unsigned char *at, const unsigned char *operand,      \
                             const unsigned char *compare, unsigned char *before, size_t count) \
    {                                                                                           \
        const bool reads = op == FI_ATOMIC_READ, compares = op >= FI_CSWAP && op <= FI_MSWAP;   \
        for (size_t i = 0; i < count * sizeof(type); i += sizeof(type)) {                       \
            type old, v = 0, c = 0;                                                             \
            memcpy(&old, at + i, sizeof old);                                                   \
            memcpy(before + i, &old, sizeof old);                                               \
            if (reads)                                                                          \
                continue;                                                                       \
            memcpy(&v, operand + i, sizeof v);                                                  \
            if (compares)                                                                       \
                memcpy(&c, compare + i, sizeof c);                                              \
            v = new_##name(op, old, v, c);                                                      \
            memcpy(at + i, &v, sizeof v);                                                       \
        }                                                                                       \
    }
TYPES(DEFINE)

typedef void apply(unsigned op, unsigned char *at, const unsigned char *operand, const unsigned char *compare,
                   unsigned char *before, size_t count);

void rnl_ofi_atomic_apply(unsigned type, unsigned op, void *at, const void *operand, const void *compare, void *before,
                          size_t count)
{
    static apply *const by_type[] = {
#define ROW(name, type, sort) [name] = apply_##name,
        TYPES(ROW)
#undef ROW
    };
    by_type[type](op, at, operand, compare, before, count);
}
