/* SPDX-License-Identifier: BSD-3-Clause
 *
 * places.c - see places.h. */
#include "job/places.h"

#include "job/fds.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static int write_all(int fd, const void *at, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t n = pwrite(fd, (const char *)at + done, bytes - done, (off_t)done);
        if (n < 0 && errno != EINTR)
            return -errno;
        done += n > 0 ? (size_t)n : 0;
    }
    return 0;
}

int rnl_places_new(uint32_t size, const struct rnl_place_rank *ranks, int *fd)
{
    size_t bytes = rnl_places_bytes(size);
    struct rnl_places *p = calloc(1, bytes);
    int f = -1, e = p == NULL ? -ENOMEM : rnl_memfd_new("runnel-places", bytes, 0, &f);
    if (e == 0) {
        p->magic = RNL_PLACES_MAGIC;
        p->version = RNL_PLACES_VERSION;
        p->size = size;
        memcpy(p->rank, ranks, size * sizeof *ranks);
        e = write_all(f, p, bytes);
    }
    if (e == 0 && fcntl(f, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SEAL) < 0)
        e = -errno;
    free(p);
    if (e < 0 && f >= 0)
        close(f);
    if (e == 0)
        *fd = f;
    return e;
}

int rnl_places_map(int fd, uint32_t size, const struct rnl_places **out)
{
    int e = rnl_memfd_check(fd, rnl_places_bytes(size), F_SEAL_WRITE | F_SEAL_SEAL);
    if (e < 0)
        return e;
    const struct rnl_places *p = mmap(NULL, rnl_places_bytes(size), PROT_READ, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED)
        return -errno;
    if (p->magic != RNL_PLACES_MAGIC || p->version != RNL_PLACES_VERSION || p->size != size) {
        rnl_places_unmap(p, size);
        return -EINVAL;
    }
    *out = p;
    return 0;
}

void rnl_places_unmap(const struct rnl_places *p, uint32_t size)
{
    munmap((void *)(uintptr_t)p, rnl_places_bytes(size));
}
