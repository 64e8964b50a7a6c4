/* SPDX-License-Identifier: BSD-3-Clause
 *
 * put_area.c - see put_area.h. */
#include "put_area.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

static int map(int file, size_t bytes, void **at)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file, 0);
    if (p == MAP_FAILED)
        return -errno;
    *at = p;
    return 0;
}

int put_area_make(size_t bytes, void **at, int *file)
{
    int fd = memfd_create("runnel-bench-put", MFD_CLOEXEC | MFD_ALLOW_SEALING), e = 0;
    if (fd < 0)
        return -errno;
    if (ftruncate(fd, (off_t)bytes) || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
        e = -errno;
    if (e == 0)
        e = map(fd, bytes, at);
    if (e)
        close(fd);
    else
        *file = fd;
    return e;
}

void put_area_publish(struct put_name *n, int file, uint64_t number)
{
    n->pid = getpid();
    n->file = file;
    atomic_store_explicit(&n->number, number, memory_order_release); /* pairs with the load of who waits for it */
}

int put_area_map(const struct put_name *n, size_t bytes, void **at)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)n->pid, (int)n->file);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int e = map(fd, bytes, at);
    close(fd);
    return e;
}
