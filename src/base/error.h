/* SPDX-License-Identifier: BSD-3-Clause
 *
 * error.h - the per-thread record behind rnl_last_error(). The function that decides on an error describes it; callers
 * pass the status on. */
#ifndef RNL_BASE_ERROR_H
#define RNL_BASE_ERROR_H

#include "runnel/runnel.h"

#if defined(__GNUC__)
#define RNL_PRINTF(f, a) __attribute__((format(printf, f, a)))
#define RNL_COLD         __attribute__((cold, noinline))
#define RNL_LIKELY(x)    __builtin_expect(!!(x), 1)
#define RNL_UNLIKELY(x)  __builtin_expect(!!(x), 0)
#define RNL_INLINE       static inline __attribute__((always_inline))
#define RNL_NOINLINE     __attribute__((noinline))
#else
#define RNL_PRINTF(f, a)
#define RNL_COLD
#define RNL_LIKELY(x)   (x)
#define RNL_UNLIKELY(x) (x)
#define RNL_INLINE      static inline
#define RNL_NOINLINE
#endif

/* Plural ending of a noun that is counted. */
#define RNL_S(n) ((n) == 1 ? "" : "s")

/* Records and returns `status`. The sentence says what was asked, what the limit is, and what to change. */
RNL_COLD int rnl_fail(int status, const char *format, ...) RNL_PRINTF(2, 3);
/* Records and returns RNL_TIMED_OUT at the cost of one store: the sentence is written when it is read. */
int rnl_timed_out(void);
/* Records as rnl_fail does, and appends the text of errno. */
RNL_COLD int rnl_fail_errno(int status, int sys_errno, const char *format, ...) RNL_PRINTF(3, 4);

#endif
