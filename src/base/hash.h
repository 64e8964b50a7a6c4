/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hash.h - uthash, set up as the library needs it. When memory runs out, uthash leaves the table as it is instead of
 * ending the process, and the caller finds what it added missing. Its default hash has a switch with fall-through, of
 * which clang warns. */
#ifndef RNL_BASE_HASH_H
#define RNL_BASE_HASH_H

#define HASH_NONFATAL_OOM               1
#define HASH_FUNCTION(key, bytes, hash) HASH_FNV(key, bytes, hash)
#include <uthash.h>

#endif
