/* SPDX-License-Identifier: BSD-3-Clause
 *
 * base.c - what all files of an endpoint alone stand on: its descriptors, when it is to look again, messages to
 * a peer over the socket of the pair, and copies of what the program said of whom it admits. */
#include "base/error.h"
#include "meet/daemon.h"
#include "meet/meet_internal.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

int rnl_meet_forked(const struct meet *m)
{
    return getpid() == m->owner ? 0
                                : rnl_fail(RNL_ERR_FORKED, "this process was forked from the one that opened the "
                                                           "endpoint; only the parent may use it");
}

int rnl_meet_watch(struct meet *m, int fd, enum meet_source source, uint32_t index)
{
    struct epoll_event e = {.events = EPOLLIN, .data.u64 = (uint64_t)source << 32 | index};
    return epoll_ctl(m->epoll, EPOLL_CTL_ADD, fd, &e) < 0 ? -errno : 0;
}

void rnl_meet_drop_fd(struct meet *m, int *fd)
{
    if (*fd < 0)
        return;
    epoll_ctl(m->epoll, EPOLL_CTL_DEL, *fd, NULL); /* close alone would not do it: a child may hold the file open */
    close(*fd);
    *fd = -1;
}

const char *rnl_meet_daemon(const struct meet *m)
{
    return m->world ? m->world->daemon : rnl_daemon_named();
}

void rnl_meet_due(struct meet *m, uint64_t at_ns)
{
    if (at_ns < m->due_ns)
        m->due_ns = at_ns;
}

void rnl_meet_notify(struct meet *m)
{
    atomic_fetch_add_explicit(&m->event_seq, 1, memory_order_relaxed); /* this process alone reads it */
}

int rnl_meet_send(int sock, const struct rnl_meet_msg *msg, int fd)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(struct ucred)) + CMSG_SPACE(sizeof(int))];
    } control;
    unsigned char bytes[RNL_MEET_BYTES_MAX];
    const struct ucred own = {getpid(), geteuid(), getegid()};
    struct iovec part = {.iov_base = bytes, .iov_len = rnl_meet_encode(msg, bytes)};
    struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes};
    memset(&control, 0, sizeof control);
    m.msg_controllen = CMSG_SPACE(sizeof own) + (fd >= 0 ? CMSG_SPACE(sizeof fd) : 0);
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_CREDENTIALS;
    c->cmsg_len = CMSG_LEN(sizeof own);
    memcpy(CMSG_DATA(c), &own, sizeof own);
    if (fd >= 0) {
        c = (struct cmsghdr *)(void *)(control.bytes + CMSG_SPACE(sizeof own));
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof fd);
        memcpy(CMSG_DATA(c), &fd, sizeof fd);
    }
    while (sendmsg(sock, &m, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        if (errno != EINTR)
            return -errno;
    return 0;
}

void rnl_meet_send_short(int sock, enum rnl_meet_kind kind)
{
    const struct rnl_meet_msg msg = {.kind = kind};
    (void)!rnl_meet_send(sock, &msg, -1); /* if there is no room, the end of the socket says as much */
}

int rnl_meet_send_daemon(struct meet *m, const struct rnl_meet_msg *msg)
{
    unsigned char bytes[RNL_MEET_BYTES_MAX];
    const struct meet_link *l = m->links;
    while (l && l->uid != m->own_uid)
        l = l->next;
    return l && l->sock >= 0 ? rnl_seqpacket_send(l->sock, bytes, rnl_meet_encode(msg, bytes), NULL, 0, 0)
                             : RNL_ERR_UNREACHABLE;
}

int rnl_meet_join(struct meet *m, uint32_t rank)
{
    m->slot[rank].incarnation = 1 + ++m->introductions; /* 1 is this process's own */
    return rnl_membership_rejoin(m->members, rank, m->slot[rank].incarnation);
}

void rnl_meet_show(struct meet *m, uint32_t rank)
{
    const struct meet_slot *s = &m->slot[rank];
    if (!m->table)
        return;
    struct rnl_meet_row *row = &m->table->row[rank];
    row->uid = s->cred.uid;
    row->gid = s->cred.gid;
    row->pid = (uint32_t)s->cred.pid;
    row->state = s->state == MEET_UP ? RNL_MEET_ROW_UP : s->state == MEET_ENDED ? RNL_MEET_ROW_GONE : RNL_MEET_ROW_NONE;
}

int rnl_meet_admit(const struct rnl_admit *from, struct rnl_meet_admit *out)
{
    memset(out, 0, sizeof *out);
    if (!from)
        return 0;
    if (from->flags & ~(uint32_t)RNL_ADMIT_ANYONE)
        return rnl_fail(RNL_ERR_ARG, "unknown bits 0x%x in rnl_admit.flags", from->flags);
    if (from->uids > RNL_MEET_IDS || from->gids > RNL_MEET_IDS)
        return rnl_fail(RNL_ERR_ARG, "%u users and %u groups to be admitted: at most %d each; use a group", from->uids,
                        from->gids, RNL_MEET_IDS);
    out->flags = from->flags;
    out->uids = from->uids;
    out->gids = from->gids;
    for (unsigned i = 0; i < from->uids; i++)
        out->uid[i] = from->uid[i];
    for (unsigned i = 0; i < from->gids; i++)
        out->gid[i] = from->gid[i];
    return 0;
}
