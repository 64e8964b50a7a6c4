/* SPDX-License-Identifier: BSD-3-Clause
 *
 * text.h - checks whether text from a user's file can be repeated on a terminal, which might obey control characters in
 * it. */
#ifndef RNL_BASE_TEXT_H
#define RNL_BASE_TEXT_H

#include <stddef.h>

/* Returns how many of the n bytes, from the first on, are text: UTF-8 without control characters except tab, CR and
 * LF. */
size_t rnl_text(const char *, size_t n);

#endif
