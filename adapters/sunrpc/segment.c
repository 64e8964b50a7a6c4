/* SPDX-License-Identifier: BSD-3-Clause
 *
 * segment.c - making and mapping the memory of a pair. */
#include "segment.h"

#include "base/limit.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL };

int rnl_rpc_segment_new(void)
{
    if (!rnl_limit_allows_file(sizeof(struct rnl_rpc_segment))) {
        errno = EFBIG;
        return -1;
    }
    int fd = memfd_create("runnel-rpc", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd >= 0 && (ftruncate(fd, sizeof(struct rnl_rpc_segment)) < 0 || fcntl(fd, F_ADD_SEALS, SEALS) < 0)) {
        int why = errno;
        close(fd);
        errno = why;
        return -1;
    }
    return fd;
}

struct rnl_rpc_segment *rnl_rpc_segment_map(int fd)
{
    struct stat st;
    int seals = fcntl(fd, F_GET_SEALS);
    if (seals < 0 || (seals & SEALS) != SEALS || fstat(fd, &st) < 0 ||
        st.st_size != (off_t)sizeof(struct rnl_rpc_segment))
        return NULL;
    void *at = mmap(NULL, sizeof(struct rnl_rpc_segment), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    return at == MAP_FAILED ? NULL : at;
}

void rnl_rpc_segment_unmap(struct rnl_rpc_segment *segment)
{
    munmap(segment, sizeof *segment);
}
