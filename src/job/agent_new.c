/* SPDX-License-Identifier: BSD-3-Clause
 *
 * agent_new.c - makes and frees an agent: its shared pages, and the bootstrap sockets that ranks inherit. */
#include "job/agent.h"

#include "base/error.h"
#include "base/secret.h"
#include "job/agent_internal.h"
#include "job/fds.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

int rnl_agent_bootstrap(struct rnl_agent *a, uint32_t rank, int *childs_end)
{
    const int on = 1;
    int pair[2], status = rnl_seqpacket_pair(pair);
    if (status < 0)
        return status;
    if (setsockopt(pair[0], SOL_SOCKET, SO_PASSCRED, &on, sizeof on) < 0)
        status = rnl_fail_errno(RNL_ERR_SYSTEM, errno, "cannot learn who joins as rank %u", rank);
    else
        status = rnl_agent_watch(a, pair[0], RNL_AGENT_BOOTSTRAP, rank, EPOLLIN);
    if (status < 0) {
        close(pair[0]);
        close(pair[1]);
        return status;
    }
    a->rank[rank].bootstrap = pair[0];
    *childs_end = pair[1];
    return 0;
}

/* ---- memory ---- */

static int make_page(const char *name, size_t bytes, unsigned seals, int *fd, void *at)
{
    int status = rnl_memfd_new(name, bytes, seals, fd);
    void *p = status < 0 ? NULL : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
    if (p == MAP_FAILED)
        return rnl_fail_errno(RNL_ERR_SYSTEM, errno, "cannot map %zu bytes (%s): %s", bytes, name,
                              rnl_memfd_remedy(errno));
    memcpy(at, &p, sizeof p);
    return status;
}

static int make_pages(struct rnl_agent *a, const struct rnl_agent_options *opt)
{
    int status = make_page("runnel-status", rnl_status_bytes(a->size), 0, &a->status_fd, &a->status);
    if (status == 0)
        status = make_page("runnel-bells", (size_t)a->size * RNL_BELL_BYTES, F_SEAL_SEAL, &a->bells_fd, &a->bells);
    /* The agent's own writable mapping exists already; with these seals ranks can map the page for reading only. */
    if (status == 0 && fcntl(a->status_fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE | F_SEAL_SEAL) < 0)
        status = rnl_fail_errno(RNL_ERR_SYSTEM, errno, "cannot seal the status page: %s", rnl_memfd_remedy(errno));
    if (status < 0)
        return status;
    a->status->magic = RNL_STATUS_MAGIC;
    a->status->version = RNL_STATUS_VERSION;
    a->status->silence_ms = opt->silence_ms;
    a->status->size = a->size;
    for (uint32_t i = 0; i < a->size; i++) {
        struct rnl_status_rank *s = &a->status->rank[i];
        atomic_store_explicit(&s->incarnation, i + 1, memory_order_relaxed); /* membership.h: no rank rejoins */
        if (opt->places)
            s->place = opt->places[i];
    }
    return 0;
}

static int make_segment(void *agent, struct rnl_segment *s)
{
    char name[40];
    (void)agent;
    snprintf(name, sizeof name, "runnel-%u-%u", s->rank[0], s->rank[1]);
    return rnl_memfd_new(name, s->bytes, F_SEAL_SEAL, &s->fd);
}

static void release_segment(void *agent, const struct rnl_segment *s)
{
    (void)agent;
    close(s->fd);
}

static void spread(void *agent, const struct rnl_word *word)
{
    const struct rnl_agent *a = agent;
    a->publish(a->publish_arg, word);
}

static int make_members(struct rnl_agent *a, const struct rnl_agent_options *opt)
{
    bool is_here[RNL_JOB_RANKS_MAX];
    for (uint32_t i = 0; i < a->size; i++)
        is_here[i] = !a->rank[i].is_remote;
    const struct rnl_membership_options members = {.size = a->size,
                                                   .is_here = is_here,
                                                   .leads = !opt->publish || opt->count == 0,
                                                   .arg = a,
                                                   .notify = rnl_agent_flush,
                                                   .changed = rnl_agent_changed,
                                                   .publish = opt->publish ? spread : NULL,
                                                   .make = make_segment,
                                                   .release = release_segment};
    return rnl_membership_new(&members, &a->members);
}

int rnl_agent_new(const struct rnl_agent_options *opt, struct rnl_agent **out)
{
    struct rnl_agent *a = calloc(1, sizeof *a + opt->size * sizeof a->rank[0]);
    if (!a)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for a job of %u rank%s", opt->size, RNL_S(opt->size));
    a->size = opt->size;
    a->keep_going = opt->keep_going != 0;
    a->networked = opt->places;
    a->rings_memory = opt->rings_memory;
    a->wait = RNL_WAITFD_NONE;
    a->deadline_ns = UINT64_MAX;
    a->publish = opt->publish;
    a->publish_arg = opt->arg;
    a->status_fd = a->bells_fd = -1;
    memcpy(a->host, opt->host, sizeof a->host);
    for (uint32_t i = 0; i < a->size; i++) {
        struct agent_rank *r = &a->rank[i];
        r->bootstrap = r->sock = r->watch = r->net = r->rings = -1;
        r->is_remote = opt->publish && i - opt->first >= opt->count;
    }
    a->epoll = epoll_create1(EPOLL_CLOEXEC);
    a->key = rnl_secret_new(RNL_JOB_KEY_BYTES);
    int status = 0;
    if (a->epoll < 0)
        status = rnl_fail_errno(RNL_ERR_SYSTEM, errno, "cannot make an epoll set: %s", rnl_memfd_remedy(errno));
    else if (!a->key)
        status = rnl_fail(RNL_ERR_NO_MEMORY, "no memory for the key of a job");
    if (status == 0)
        status = make_members(a, opt);
    if (status == 0)
        status = make_pages(a, opt);
    if (status < 0) {
        rnl_agent_free(a);
        return status;
    }
    memcpy(a->key, opt->key, RNL_JOB_KEY_BYTES);
    for (uint32_t i = 0, next = 0; opt->places && i < a->size; i++)
        if (!a->rank[i].is_remote) {
            a->rank[i].rings = opt->rings ? opt->rings[next] : -1;
            if (opt->cards)
                a->rank[i].cards = opt->cards[next];
            a->rank[i].net = opt->sockets[next++];
        }
    *out = a;
    return 0;
}

void rnl_agent_free(struct rnl_agent *a)
{
    if (!a)
        return;
    for (uint32_t i = 0; i < a->size; i++) {
        rnl_agent_forget(a, i);
        rnl_agent_drop_fd(a, &a->rank[i].bootstrap);
    }
    rnl_membership_free(a->members);
    if (a->status)
        munmap(a->status, rnl_status_bytes(a->size));
    if (a->bells)
        munmap(a->bells, (size_t)a->size * RNL_BELL_BYTES);
    rnl_waitfd_free(&a->wait);
    const int fds[] = {a->status_fd, a->bells_fd, a->epoll};
    for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    rnl_secret_free(a->key, RNL_JOB_KEY_BYTES);
    free(a);
}
