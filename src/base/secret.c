/* SPDX-License-Identifier: BSD-3-Clause
 *
 * secret.c - see secret.h. */
#include "base/secret.h"

#include "base/bug.h"

#include <string.h>
#include <sys/mman.h>

void *rnl_secret_new(size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return NULL;
    if (!RNL_BUG(secret_is_dumped))
        (void)madvise(p, bytes,
                      MADV_DONTDUMP); /* cannot fail on such a mapping; a kernel without it is older than ours */
    return p;
}

void rnl_secret_free(void *p, size_t bytes)
{
    if (!p)
        return;
    explicit_bzero(p, bytes);
    munmap(p, bytes);
}

void *rnl_secret_grow(unsigned char **at, size_t *room, size_t used, size_t need)
{
    if (need <= *room)
        return *at;
    unsigned char *grown = rnl_secret_new(2 * need);
    if (!grown)
        return NULL;
    if (used > 0)
        memcpy(grown, *at, used);
    rnl_secret_free(*at, *room);
    *at = grown;
    *room = 2 * need;
    return grown;
}
