/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fence.h - a full fence of this thread: its earlier stores are visible before its later loads are performed. */
#ifndef RNL_BASE_FENCE_H
#define RNL_BASE_FENCE_H

#include <stdatomic.h>

static inline void rnl_full_fence(void)
{
#if defined(__x86_64__) || defined(__i386__) || defined(__SANITIZE_THREAD__)
    /* A locked instruction, on whatever address, is quicker than mfence. */
    _Atomic int here = 0;
    atomic_fetch_add_explicit(&here, 1, memory_order_seq_cst);
#else
    /* On other processors an atomic addition to one variable need not order accesses to others. */
    atomic_thread_fence(memory_order_seq_cst);
#endif
}

#endif
