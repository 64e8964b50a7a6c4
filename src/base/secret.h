/* SPDX-License-Identifier: BSD-3-Clause
 *
 * secret.h - memory for keys: pages of their own that no core dump contains and that are zeroed before they are freed.
 * What is copied out of them is the copier's to wipe. */
#ifndef RNL_BASE_SECRET_H
#define RNL_BASE_SECRET_H

#include <stddef.h>

/* Zero-filled and aligned to a page; NULL: no memory. */
void *rnl_secret_new(size_t bytes);
/* Makes room for `need` bytes, twice as many if there was not enough; the first `used` of *at are kept. Returns *at, or
 * NULL when there is no memory, and *at is as it was. */
void *rnl_secret_grow(unsigned char **at, size_t *room, size_t used, size_t need);
void rnl_secret_free(void *, size_t bytes); /* fine on NULL */

#endif
