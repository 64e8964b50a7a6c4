/* SPDX-License-Identifier: BSD-3-Clause
 *
 * give.c - descriptors of memory files, from peer to peer over the socket of the pair. Each has a tag that the
 * receiver chose, and only one that it expects is taken: whatever else comes is refused by the kernel. */
#include "base/error.h"
#include "meet/meet_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <sys/vfs.h>
#include <unistd.h>

enum { GIFTS_MOST = 4096 /* expected by an endpoint at a time */ };

struct meet_gift {
    struct meet_gift *next;
    uint32_t rank, tag;
    int fd; /* -1 = it has not come */
};

int rnl_meet_give(struct rnl_env *env, uint32_t rank, uint32_t tag, int fd)
{
    struct meet_slot *s = &rnl_meet_of(env)->slot[rank];
    const struct rnl_meet_msg msg = {.kind = RNL_MEET_GIVE, .u.give = {.tag = tag}};
    int e = s->state == MEET_UP && s->sock >= 0 ? rnl_meet_send(s->sock, &msg, fd) : -EPIPE;
    return e < 0 ? rnl_fail_errno(RNL_ERR_SYSTEM, -e, "cannot send a descriptor to peer %u", rank) : 0;
}

static struct meet_gift **find(struct meet *m, uint32_t rank, uint32_t tag)
{
    struct meet_gift **at = &m->gifts;
    while (*at && ((*at)->rank != rank || (*at)->tag != tag))
        at = &(*at)->next;
    return at;
}

bool rnl_meet_lacks(const struct meet *m, uint32_t rank, uint32_t tag)
{
    for (const struct meet_gift *g = m->gifts; g; g = g->next)
        if (g->rank == rank && g->tag == tag)
            return g->fd < 0;
    return false;
}

int rnl_meet_expect(struct rnl_env *env, uint32_t rank, uint32_t tag)
{
    struct meet *m = rnl_meet_of(env);
    struct meet_gift *g = m->gift_count < GIFTS_MOST ? malloc(sizeof *g) : NULL;
    if (!g)
        return rnl_fail(RNL_NO_ROOM, "too many descriptors are expected from peers");
    *g = (struct meet_gift){.next = m->gifts, .rank = rank, .tag = tag, .fd = -1};
    m->gifts = g;
    m->gift_count++;
    m->slot[rank].gifts++;
    return 0;
}

static void forget(struct meet *m, struct meet_gift **at)
{
    struct meet_gift *g = *at;
    *at = g->next;
    m->gift_count--;
    m->slot[g->rank].gifts--;
    if (g->fd >= 0)
        (void)!rnl_seqpacket_refuse_fd(g->fd);
    free(g);
}

bool rnl_meet_given(struct meet *m, uint32_t rank, uint32_t tag, int fd)
{
    struct meet_gift *g = *find(m, rank, tag);
    if (!g || g->fd >= 0)
        return false;
    g->fd = fd;
    return true;
}

/* A file whose size could change would end this process by SIGBUS, and one of huge pages for want of them. */
static bool is_memory(int fd, size_t bytes)
{
    struct statfs fs;
    return rnl_memfd_check(fd, bytes, F_SEAL_SEAL) == 0 && fstatfs(fd, &fs) == 0 && fs.f_type == TMPFS_MAGIC;
}

int rnl_meet_take(struct rnl_env *env, uint32_t rank, uint32_t tag, size_t bytes, int *fd)
{
    struct meet *m = rnl_meet_of(env);
    int status = 0;
    struct meet_gift **at = find(m, rank, tag);
    if (!*at)
        return rnl_fail(RNL_ERR_ARG, "no descriptor %u is expected from peer %u", tag, rank);
    if (fd && (*at)->fd >= 0 && is_memory((*at)->fd, bytes)) {
        *fd = (*at)->fd;
        (*at)->fd = -1;
    } else if (fd) {
        status = rnl_fail(RNL_ERR_PEER_BROKEN, "peer %u has sent no memory file of %zu bytes", rank, bytes);
    }
    forget(m, at);
    return status;
}

void rnl_meet_forget_gifts(struct meet *m, uint32_t rank)
{
    for (struct meet_gift **at = &m->gifts; *at;)
        if ((*at)->rank == rank)
            forget(m, at);
        else
            at = &(*at)->next;
}
