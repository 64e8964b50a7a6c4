/* SPDX-License-Identifier: BSD-3-Clause
 *
 * must.h - TEST_MUST is for where cmocka's assertions cannot be used (other threads, handlers on stacks of their own):
 * it explains and ends the program. And clocks. */
#ifndef RNL_TESTS_SUPPORT_MUST_H
#define RNL_TESTS_SUPPORT_MUST_H

#include <stdint.h>

#define TEST_MUST(x) ((x) ? (void)0 : test_must_failed(__FILE__, __LINE__, #x))
_Noreturn void test_must_failed(const char *file, int line, const char *what);

uint64_t test_now_ns(void);
/* CPU time of this process. */
uint64_t test_cpu_ns(void);
void test_sleep_ms(unsigned ms);

#endif
