/* SPDX-License-Identifier: BSD-3-Clause
 *
 * segv.h - what a thread does with SIGSEGV before it ends the process, where the program does nothing with it. */
#ifndef RNL_BASE_SEGV_H
#define RNL_BASE_SEGV_H

/* From now on a SIGSEGV of the calling thread calls f(address), on a stack of its own, and then ends the process as it
 * would have, at the same instruction. Nothing is done if the program handles SIGSEGV by itself, or has given this
 * thread a stack for signals; a program that does so later is not disturbed. f runs in a signal handler, and only what
 * POSIX allows there may be done by it; it is the same for all threads. Costs little from the second call on. */
void rnl_segv_watch(void (*f)(const void *address));

#endif
