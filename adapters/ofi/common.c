/* SPDX-License-Identifier: BSD-3-Clause
 *
 * common.c - the errors of Runnel as those of libfabric, the time, and functions of tables that have nothing to do. */
#include "ofi.h"

#include <time.h>

int rnl_ofi_errno(int status)
{
    switch (status) {
    case RNL_NO_ROOM:
    case RNL_BUSY:
    case RNL_TIMED_OUT:
        return -FI_EAGAIN;
    case RNL_ERR_ARG:
    case RNL_ERR_RANK:
        return -FI_EINVAL;
    case RNL_ERR_TOO_LONG:
    case RNL_ERR_PAST_END:
        return -FI_EMSGSIZE;
    case RNL_ERR_NO_MEMORY:
        return -FI_ENOMEM;
    case RNL_ERR_UNSUPPORTED:
        return -FI_ENOSYS;
    case RNL_ERR_REFUSED:
        return -FI_EACCES;
    case RNL_ERR_UNREACHABLE:
        return -FI_EHOSTUNREACH;
    case RNL_ERR_ABORTED:
    case RNL_ERR_CLOSED:
    case RNL_ERR_PEER_DEAD:
    case RNL_ERR_PEER_BROKEN:
        return -FI_ECONNRESET;
    default:
        return status < 0 ? -FI_EOTHER : 0;
    }
}

int64_t rnl_ofi_now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int rnl_ofi_no_bind(struct fid *fid, struct fid *other, uint64_t flags)
{
    (void)fid, (void)other, (void)flags;
    return -FI_ENOSYS;
}

int rnl_ofi_no_control(struct fid *fid, int command, void *arg)
{
    (void)fid, (void)command, (void)arg;
    return -FI_ENOSYS;
}

int rnl_ofi_no_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops, void *context)
{
    (void)fid, (void)name, (void)flags, (void)ops, (void)context;
    return -FI_ENOSYS;
}
