/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rank_env.c - the operations of rank_env.h. */
#include "job/rank_env.h"

#include "base/error.h"
#include "base/notes.h"
#include "net/datagram/udp.h"
#include "net/socket/i8255x/beside.h"
#include "net/socket/kernel.h"
#include "net/socket/xdp/xdp.h"
#include "net/wire/bytes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

void rnl_rank_env_init(struct rnl_rank_env *e, const struct rnl_env_ops *ops)
{
    e->env.ops = ops;
    e->owner = getpid();
    e->wait = RNL_WAITFD_NONE;
    e->file = -1;
    if (gethostname(e->env.host, sizeof e->env.host - 1) < 0)
        memcpy(e->env.host, "localhost", sizeof "localhost");
    rnl_host_facts(&e->env.facts);
}

int rnl_rank_env_segments(struct rnl_rank_env *e, uint32_t segments, uint32_t own)
{
    e->segment = calloc(segments, sizeof *e->segment);
    e->segments = segments;
    e->own_segment = own;
    return e->segment ? 0 : rnl_fail(RNL_ERR_NO_MEMORY, "no memory for a job of %u ranks", e->env.size);
}

static void close_fd(const struct rnl_rank_env *e, const struct rnl_rank_segment *s)
{
    if ((s->state == RNL_SEGMENT_HERE || s->state == RNL_SEGMENT_OPEN) && s->fd != e->file)
        close(s->fd);
}

void rnl_rank_env_end(struct rnl_rank_env *e)
{
    if (e->env.datagrams)
        e->env.datagrams->ops->close(e->env.datagrams);
    e->env.datagrams = NULL;
    rnl_waitfd_free(&e->wait);
    rnl_notes_free(e->notes);
    e->notes = NULL;
    for (uint32_t i = 0; e->segment && i < e->segments; i++)
        close_fd(e, &e->segment[i]);
    if (e->heads)
        munmap(e->heads, (size_t)e->segments * RNL_SEGMENT_HEAD);
    free(e->segment);
    e->segment = NULL;
    e->heads = NULL;
    explicit_bzero(e->env.job_key, sizeof e->env.job_key);
}

int rnl_rank_env_forked(const struct rnl_env *env)
{
    if (RNL_LIKELY(getpid() == ((const struct rnl_rank_env *)(const void *)env)->owner))
        return 0;
    return rnl_fail(RNL_ERR_FORKED,
                    "this process is a fork of rank %u: only the process that opened an endpoint can use it; "
                    "open before the fork is for the parent alone",
                    env->rank);
}

/* ---- other hosts ---- */

/* Puts rings beside a socket; it goes on by itself where they are of no use. */
static void add_rings(struct rnl_socket **socket, int rings, int memory)
{
    const struct rnl_xdp_options options = {.claims = rnl_wire_handshake_room};
    struct rnl_socket *both;
    const int fd = fcntl(rings, F_DUPFD_CLOEXEC, 0);
    if (fd >= 0 && rnl_xdp_socket_new(*socket, fd, memory, &options, &both) == 0)
        *socket = both;
    else if (fd >= 0)
        close(fd);
}

/* Copies the descriptors of one card, which are closed with its socket: the copies have the same order. */
static int copy_grant(const int from[RNL_I8255X_GRANT_FDS], struct rnl_i8255x_grant *out)
{
    int fd[RNL_I8255X_GRANT_FDS] = {-1, -1, -1, -1}, status = 0;
    for (int i = 0; i < RNL_I8255X_GRANT_FDS && status == 0; i++)
        if ((fd[i] = fcntl(from[i], F_DUPFD_CLOEXEC, 0)) < 0)
            status = rnl_fail_errno(RNL_ERR_SYSTEM, errno, "no descriptor for a card: raise their limit (ulimit -n)");
    if (status == 0)
        status = rnl_i8255x_adopt(fd, out);
    for (int i = 0; i < RNL_I8255X_GRANT_FDS && status < 0; i++)
        if (fd[i] >= 0)
            close(fd[i]);
    return status;
}

/* Puts cards beside a socket. One that does not work leaves the others; where none does, the socket goes on alone. */
static uint32_t add_cards(struct rnl_socket **socket, uint32_t n, const int *fd)
{
    struct rnl_i8255x_grant g[RNL_I8255X_CARDS];
    struct rnl_socket *cards, *both;
    uint32_t got = 0, wires = 0;
    for (uint32_t i = 0; i < n && i < RNL_I8255X_CARDS; i++)
        if (copy_grant(fd + (size_t)i * RNL_I8255X_GRANT_FDS, &g[got]) == 0)
            wires |= 1u << g[got++].wire;
    if (got == 0)
        return 0;
    if (rnl_i8255x_socket_new(g, got, (*socket)->self.port, &cards) < 0) {
        for (uint32_t i = 0; i < got; i++)
            rnl_i8255x_give_back(&g[i]);
        return 0;
    }
    if (rnl_i8255x_beside(cards, *socket, &both) < 0) {
        cards->ops->close(cards);
        return 0;
    }
    *socket = both;
    return wires;
}

int rnl_rank_env_connect(struct rnl_rank_env *e, int udp, const struct rnl_rank_beside *beside)
{
    const struct rnl_kernel_options options = {.claims = rnl_wire_handshake_room};
    struct rnl_socket *socket;
    int status = rnl_kernel_socket_adopt(udp, &options, &socket);
    if (status < 0) {
        close(udp);
        return status;
    }
    if (beside && beside->rings >= 0)
        add_rings(&socket, beside->rings, beside->memory);
    if (beside && beside->cards > 0)
        e->wires = add_cards(&socket, beside->cards, beside->card);
    e->env.facts.prefers_first = e->wires != 0;
    status = rnl_udp_transport_new(&e->env, socket, NULL, &e->env.datagrams);
    if (status < 0)
        socket->ops->close(socket);
    else
        e->env.facts.round_trip_ns = rnl_host_round_trip_ns();
    return status;
}

void rnl_rank_address(const uint8_t ip[16], uint32_t scope, uint16_t port, bool same_kernel, uint64_t incarnation,
                      struct rnl_rank_address *out)
{
    struct rnl_socket_addr at = {.scope = scope, .port = port};
    struct rnl_addr addr;
    memcpy(at.ip, ip, sizeof at.ip);
    rnl_udp_addr_of(&at, &addr);
    *out = (struct rnl_rank_address){.incarnation = incarnation, .same_kernel = same_kernel, .addr_bytes = addr.len};
    static_assert(sizeof out->addr == sizeof addr.bytes, "an address is an address");
    memcpy(out->addr, addr.bytes, addr.len);
}

/* ---- segments ---- */

int rnl_rank_segment_check(const struct rnl_rank_env *e, uint32_t rank, uint32_t segment)
{
    int status = rnl_rank_env_forked(&e->env);
    if (status == 0 && e->segment[segment].state >= RNL_SEGMENT_OPEN)
        status = rnl_fail(RNL_ERR_JOB, "the segment of rank %u has been handed out to this rank before", rank);
    return status;
}

int rnl_rank_segment_map(struct rnl_env *env, int segment, size_t offset, size_t bytes, int writable, void **at)
{
    struct rnl_rank_env *e = rnl_rank_env_of(env);
    const struct rnl_rank_segment *s = &e->segment[segment];
    const bool head = offset < RNL_SEGMENT_HEAD && bytes <= RNL_SEGMENT_HEAD - offset;
    void *p = e->heads;
    if (head && !p) { /* they lie together, so that one page of page tables serves many peers */
        p = mmap(NULL, (size_t)e->segments * RNL_SEGMENT_HEAD, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                 -1, 0);
        e->heads = p == MAP_FAILED ? NULL : p;
    }
    if (p != MAP_FAILED)
        p = mmap(head ? e->heads + (size_t)segment * RNL_SEGMENT_HEAD + offset : NULL, bytes,
                 PROT_READ | (writable ? PROT_WRITE : 0), MAP_SHARED | (head ? MAP_FIXED : 0), s->fd,
                 (off_t)(s->offset + offset));
    if (p == MAP_FAILED)
        return rnl_fail_errno(errno == ENOMEM ? RNL_ERR_NO_MEMORY : RNL_ERR_SYSTEM, errno,
                              "cannot map %zu bytes of a segment at offset %zu: raise the limit of address space "
                              "(ulimit -v) or of mappings (vm.max_map_count)",
                              bytes, offset);
    *at = p;
    return 0;
}

void rnl_rank_segment_unmap(struct rnl_env *env, int segment, void *at, size_t bytes)
{
    const struct rnl_rank_env *e = rnl_rank_env_of(env);
    (void)segment;
    const bool head =
        e->heads && (char *)at >= e->heads && (char *)at < e->heads + (size_t)e->segments * RNL_SEGMENT_HEAD;
    if (!head ||
        mmap(at, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED)
        munmap(at, bytes);
}

void rnl_rank_segment_mapped(struct rnl_env *env, int segment)
{
    const struct rnl_rank_env *e = rnl_rank_env_of(env);
    close_fd(e, &e->segment[segment]);
    e->segment[segment].state = RNL_SEGMENT_MAPPED;
}

void rnl_rank_segment_close(struct rnl_env *env, int segment)
{
    const struct rnl_rank_env *e = rnl_rank_env_of(env);
    struct rnl_rank_segment *s = &e->segment[segment];
    close_fd(e, s);
    if (s->state == RNL_SEGMENT_OPEN || (uint32_t)segment == e->own_segment)
        s->state = RNL_SEGMENT_ABSENT;
}

/* ---- event loops ---- */

int rnl_rank_env_fd(struct rnl_env *env)
{
    struct rnl_rank_env *e = rnl_rank_env_of(env);
    int status = rnl_rank_env_forked(env);
    if (status == 0 && e->wait.epoll < 0)
        status = rnl_waitfd_new(&e->wait, env->bell);
    return status < 0 ? status : e->wait.epoll;
}

void rnl_rank_env_fd_drain(struct rnl_env *env)
{
    rnl_waitfd_drain(&rnl_rank_env_of(env)->wait);
}

void rnl_rank_env_fd_until(struct rnl_env *env, uint64_t ns)
{
    rnl_waitfd_until(&rnl_rank_env_of(env)->wait, ns);
}

void rnl_rank_env_fd_raise(struct rnl_env *env, uint32_t rank)
{
    const struct rnl_bell *bell = rank < env->size ? env->bell_of(env, rank) : NULL;
    if (bell)
        rnl_waitfd_raise(&rnl_rank_env_of(env)->wait, bell);
}

int rnl_rank_env_fd_watch(struct rnl_env *env, int fd)
{
    return rnl_waitfd_watch(&rnl_rank_env_of(env)->wait, fd);
}

void rnl_rank_env_show(struct rnl_env *env, const char *lines, size_t bytes)
{
    (void)rnl_notes_set(&rnl_rank_env_of(env)->notes, lines, bytes); /* without memory for them nothing is shown */
}
