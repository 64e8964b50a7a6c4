/* SPDX-License-Identifier: BSD-3-Clause
 *
 * text.h - whether what a user's file says can be repeated on a terminal, which might obey it. */
#ifndef RNL_BASE_TEXT_H
#define RNL_BASE_TEXT_H

#include <stddef.h>

/* So many of the n bytes, from the first, are text: UTF-8 without control characters but tab, CR and LF. */
size_t rnl_text(const char *, size_t n);

#endif
