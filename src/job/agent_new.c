/* SPDX-License-Identifier: BSD-3-Clause
 *
 * agent_new.c - an agent's beginning and end: its pages, and the doors that ranks inherit. */
#include "job/agent.h"

#include "base/bell.h"
#include "base/error.h"
#include "job/agent_in.h"
#include "job/fds.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

int rnl_agent_door(struct rnl_agent *a, uint32_t rank, int *childs_end)
{
    const int on = 1;
    int pair[2];
    int e = rnl_packet_pair(pair);
    if (e == 0 && setsockopt(pair[0], SOL_SOCKET, SO_PASSCRED, &on, sizeof on) < 0)
        e = -errno;
    else if (e == 0)
        e = rnl_agent_watch(a, pair[0], RNL_AGENT_DOOR, rank, EPOLLIN);
    else
        return rnl_fail_errno(RNL_ERR_SYSTEM, -e,
                              "cannot make the socket of rank %u: raise the limit of descriptors (ulimit -n)", rank);
    if (e < 0) {
        close(pair[0]);
        close(pair[1]);
        return rnl_fail_errno(RNL_ERR_SYSTEM, -e, "cannot watch the socket of rank %u: start fewer ranks", rank);
    }
    a->rank[rank].door = pair[0];
    *childs_end = pair[1];
    return 0;
}

static int pages(struct rnl_agent *a, const struct rnl_agent_options *opt)
{
    size_t status_bytes = rnl_status_bytes(a->size), bells_bytes = (size_t)a->size * RNL_BELL_BYTES;
    int e = rnl_memfd_new("runnel-status", status_bytes, 0, &a->status_fd);
    if (e == 0)
        e = rnl_memfd_new("runnel-bells", bells_bytes, F_SEAL_SEAL, &a->bells_fd);
    if (e == 0 && opt->places != NULL)
        e = rnl_places_new(a->size, opt->places, &a->places_fd);
    if (e < 0)
        return e;
    void *status = mmap(NULL, status_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, a->status_fd, 0);
    a->status = status == MAP_FAILED ? NULL : status;
    void *bells = mmap(NULL, bells_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, a->bells_fd, 0);
    a->bells = bells == MAP_FAILED ? NULL : bells;
    if (a->status == NULL || a->bells == NULL)
        return -errno;
    /* Mapped by us before: ranks can read it only. */
    if (fcntl(a->status_fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE | F_SEAL_SEAL) < 0)
        return -errno;
    a->status->magic = RNL_STATUS_MAGIC;
    a->status->version = RNL_STATUS_VERSION;
    a->status->size = a->size;
    for (uint32_t i = 0; i < a->size; i++) {
        struct rnl_status_rank *s = &a->status->rank[i];
        atomic_store_explicit(&s->incarnation, a->rank[i].incarnation, memory_order_relaxed);
        memcpy(s->host, a->host, sizeof s->host);
    }
    return 0;
}

int rnl_agent_new(const struct rnl_agent_options *opt, struct rnl_agent **out)
{
    struct rnl_agent *a = calloc(1, sizeof *a + opt->size * sizeof a->rank[0]);
    if (a == NULL)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for a job of %u rank%s", opt->size, RNL_S(opt->size));
    a->size = opt->size;
    a->keep_going = opt->keep_going != 0;
    a->deadline_ns = UINT64_MAX;
    a->leads = opt->tell == NULL || (opt->host_of != NULL ? opt->leads != 0 : opt->count == 0);
    a->tell = opt->tell;
    a->tell_arg = opt->arg;
    a->status_fd = a->bells_fd = a->places_fd = -1;
    memcpy(a->key, opt->key, sizeof a->key);
    memcpy(a->host, opt->host, sizeof a->host);
    for (uint32_t i = 0; i < a->size; i++) {
        struct agent_rank *r = &a->rank[i];
        r->door = r->sock = r->watch = r->raise = r->net = -1;
        r->incarnation = i + 1;
        r->away =
            opt->tell != NULL && (opt->host_of != NULL ? opt->host_of[i] != opt->own : i - opt->first >= opt->count);
    }
    int e = 0;
    size_t bytes = rnl_status_bytes(a->size) + (size_t)a->size * RNL_BELL_BYTES;
    a->epoll = epoll_create1(EPOLL_CLOEXEC);
    a->had = calloc(((size_t)a->size * a->size + 7) / 8, 1);
    a->parted = calloc(((size_t)a->size * a->size * 2 + 7) / 8, 1);
    if (a->epoll < 0)
        e = -errno;
    else if (a->had == NULL || a->parted == NULL || rnl_waves_new(a->size, &a->waves) < 0)
        e = -ENOMEM;
    else
        e = pages(a, opt);
    if (e < 0) {
        rnl_agent_free(a);
        return rnl_fail_errno(RNL_ERR_SYSTEM, -e, "cannot make the pages of a job of %u rank%s, %zu bytes: %s",
                              opt->size, RNL_S(opt->size), bytes, rnl_memfd_remedy(-e));
    }
    for (uint32_t i = 0, next = 0; opt->places != NULL && i < a->size; i++) {
        a->rank[i].host = opt->places[i].host;
        if (!a->rank[i].away)
            a->rank[i].net = opt->sockets[next++];
    }
    *out = a;
    return 0;
}

void rnl_agent_free(struct rnl_agent *a)
{
    if (a == NULL)
        return;
    for (uint32_t i = 0; i < a->size; i++) {
        rnl_agent_forget(a, i);
        rnl_agent_drop_fd(a, &a->rank[i].door);
    }
    rnl_agent_give_free(a);
    rnl_waves_free(a->waves);
    if (a->status != NULL)
        munmap(a->status, rnl_status_bytes(a->size));
    if (a->bells != NULL)
        munmap(a->bells, (size_t)a->size * RNL_BELL_BYTES);
    if (a->status_fd >= 0)
        close(a->status_fd);
    if (a->bells_fd >= 0)
        close(a->bells_fd);
    if (a->places_fd >= 0)
        close(a->places_fd);
    if (a->epoll >= 0)
        close(a->epoll);
    free(a->had);
    free(a->parted);
    explicit_bzero(a->key, sizeof a->key);
    free(a);
}
