/* SPDX-License-Identifier: BSD-3-Clause
 *
 * barrier.h - no C++ exception leaves a function of the program that the library calls: caught further up, it would
 * leave the endpoint in that handler for ever. */
#ifndef RNL_STREAM_BARRIER_H
#define RNL_STREAM_BARRIER_H

/* Stands in each function that calls one of the program's: the search for who catches an exception ends at its frame,
 * so the C++ run-time says what was thrown and aborts. Backtraces, and the unwinding of pthread_exit, pass as ever. It
 * costs no instruction. */
#if defined(__GCC_HAVE_DWARF2_CFI_ASM) && (defined(__x86_64__) || defined(__aarch64__))
#define RNL_NO_EXCEPTION() __asm__ volatile(".cfi_personality 0x1b, rnl_no_exception")
#else
#define RNL_NO_EXCEPTION() ((void)0)
#endif

#endif
