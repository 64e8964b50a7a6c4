/* SPDX-License-Identifier: BSD-3-Clause
 *
 * remote.c - peers on other hosts. The daemons of both hosts introduce them (daemon_hosts.c): each endpoint learns
 * from its own user's daemon, or root's, who the other is, where its socket for datagrams is, by which rank it calls
 * this one, and the key of the pair. From then on the two talk over remote/, and the daemon tells only of the peer's
 * end. */
#include "base/error.h"
#include "base/secret.h"
#include "job/net.h"
#include "job/rank_env.h"
#include "meet/meet_internal.h"
#include "net/datagram/udp.h"
#include "net/socket/kernel.h"
#include "net/wire/bytes.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct meet_remote {
    unsigned char key[RNL_MEET_KEY_BYTES], ip[RNL_MEET_IP_BYTES];
    uint32_t port, as; /* of the peer; the rank by which it calls this process; port 0 = there is none */
    uint32_t call;
    struct rnl_env *by; /* of a job, which vouches for its rank `of`, and knows where that is; or NULL */
    uint32_t of;
};

/* ---- the socket for datagrams ---- */

static int make_datagrams(struct meet *m)
{
    const struct rnl_kernel_options options = {.claims = rnl_wire_handshake_room};
    struct rnl_socket_addr at;
    struct rnl_socket *socket;
    int fd;
    if (m->world)
        return m->world->datagrams(&m->env, &m->udp_port);
    int status = rnl_net_open(RNL_NET_ANY, 1, &fd, &at);
    if (status < 0)
        return rnl_fail_errno(RNL_ERR_SYSTEM, -status, "cannot open a socket for peers on other hosts: %s",
                              rnl_net_remedy(-status));
    status = rnl_kernel_socket_adopt(fd, &options, &socket);
    if (status < 0) {
        close(fd);
        return status;
    }
    status = rnl_udp_transport_new(&m->env, socket, NULL, &m->env.datagrams);
    if (status < 0) {
        socket->ops->close(socket);
        return status;
    }
    m->udp_port = at.port;
    m->env.facts.round_trip_ns = rnl_host_round_trip_ns();
    return 0;
}

static int open_datagrams(struct meet *m)
{
    int status = make_datagrams(m);
    if (status == 0 && m->env.late)
        status = m->env.late->wrap(m->env.late, &m->env.datagrams);
    if (status < 0 && m->env.datagrams) {
        m->env.datagrams->ops->close(m->env.datagrams);
        m->env.datagrams = NULL;
    }
    return status;
}

int rnl_meet_remote_begin(struct meet *m)
{
    if (!m->remote)
        m->remote = rnl_secret_new(m->env.size * sizeof *m->remote);
    if (!m->remote)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for the keys of peers on other hosts");
    return m->env.datagrams ? 0 : open_datagrams(m);
}

void rnl_meet_remote_free(struct meet *m)
{
    if (m->env.datagrams)
        m->env.datagrams->ops->close(m->env.datagrams);
    m->env.datagrams = NULL;
    rnl_secret_free(m->remote, m->env.size * sizeof *m->remote);
    m->remote = NULL;
}

/* Gives the n-th address that the job has of its rank, with the port of the peer here. Cards are left out: they are the
 * job's own. Returns 1, or 0 = it has no more. */
static int vouched_address(const struct meet_remote *f, unsigned n, struct rnl_rank_address *out)
{
    const struct rnl_env_ops *ops = f->by->ops;
    struct rnl_socket_addr at;
    struct rnl_addr addr;
    for (unsigned i = 0;; i++) {
        if (i == 0 ? ops->rank_address(f->by, f->of, out) != 1
                   : !ops->alternate_address || ops->alternate_address(f->by, f->of, i - 1, out) != 1)
            return 0;
        addr.len = out->addr_bytes;
        memcpy(addr.bytes, out->addr, sizeof addr.bytes);
        if (rnl_udp_addr_read(&addr, &at) < 0 || at.scope != 0 || n-- > 0)
            continue;
        rnl_rank_address(at.ip, 0, (uint16_t)f->port, out->same_kernel, 0, out);
        return 1;
    }
}

static int nth_address(const struct meet *m, uint32_t rank, unsigned n, struct rnl_rank_address *out)
{
    const struct meet_remote *f = m->remote ? &m->remote[rank] : NULL;
    if (!f || f->port == 0 || (n > 0 && !f->by))
        return 0;
    if (!f->by)
        rnl_rank_address(f->ip, 0, (uint16_t)f->port, false, 0, out);
    else if (vouched_address(f, n, out) != 1)
        return 0;
    out->key = f->key;
    out->as = f->as;
    return 1;
}

int rnl_meet_remote_address(struct rnl_env *env, uint32_t rank, struct rnl_rank_address *out)
{
    return nth_address(rnl_meet_of(env), rank, 0, out);
}

int rnl_meet_remote_alternate(struct rnl_env *env, uint32_t rank, unsigned n, struct rnl_rank_address *out)
{
    return nth_address(rnl_meet_of(env), rank, n + 1, out);
}

/* ---- to reach ---- */

int rnl_meet_remote_host(struct meet *m, const char *text, unsigned char ip[RNL_MEET_IP_BYTES], uint32_t *port)
{
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    char host[256];
    struct addrinfo *found;
    const char *colon = strrchr(text, ':'), *first = strchr(text, ':');
    unsigned number = 0;
    int end = 0;
    const bool in_brackets = text[0] == '[' && strchr(text, ']');
    if (colon && (in_brackets ? colon > strchr(text, ']') : colon == first)) {
        if (sscanf(colon, ":%5u%n", &number, &end) != 1 || colon[end] != '\0' || number == 0 || number > UINT16_MAX)
            return rnl_fail(RNL_ERR_ARG, "'%.100s' has no port after its colon", text);
    } else {
        colon = text + strlen(text);
    }
    const char *from = in_brackets ? text + 1 : text, *until = in_brackets ? strchr(text, ']') : colon;
    if (until == from || (size_t)(until - from) >= sizeof host)
        return rnl_fail(RNL_ERR_ARG, "'%.100s' names no host", text);
    snprintf(host, sizeof host, "%.*s", (int)(until - from), from);
    *port = number;
    if (m->world)
        return m->world->resolve(&m->env, host, ip);
    const int e = getaddrinfo(host, NULL, &hints, &found);
    if (e != 0)
        return rnl_fail(RNL_ERR_UNREACHABLE, "there is no host %.100s: %s", host, gai_strerror(e));
    memset(ip, 0, RNL_MEET_IP_BYTES);
    if (found->ai_family == AF_INET6) {
        memcpy(ip, &((const struct sockaddr_in6 *)(const void *)found->ai_addr)->sin6_addr, RNL_MEET_IP_BYTES);
    } else {
        ip[10] = ip[11] = 0xff;
        memcpy(ip + 12, &((const struct sockaddr_in *)(const void *)found->ai_addr)->sin_addr, 4);
    }
    freeaddrinfo(found);
    return 0;
}

int rnl_meet_remote_call(struct meet *m, uint32_t rank, struct rnl_meet_msg *msg)
{
    const struct meet_slot *s = &m->slot[rank];
    int status = rnl_meet_remote_begin(m);
    if (status < 0)
        return status;
    *msg = (struct rnl_meet_msg){.kind = RNL_MEET_CALL};
    struct rnl_meet_call *q = &msg->u.call;
    q->request_id = s->request_id;
    q->uid = s->uid;
    q->flags = s->own_user ? RNL_MEET_OWN_USER : 0;
    q->port = s->host_port;
    q->place = (struct rnl_meet_place){.port = m->udp_port, .rank = rank};
    memcpy(q->place.own, m->address, sizeof q->place.own);
    memcpy(q->ip, s->host, sizeof q->ip);
    memcpy(q->token, s->token, sizeof q->token);
    memcpy(q->name, s->name, sizeof q->name);
    return 0;
}

/* ---- to become a peer ---- */

void rnl_meet_remote_take(struct meet *m, uint32_t rank, uint32_t call, const struct rnl_meet_place *place,
                          const unsigned char ip[RNL_MEET_IP_BYTES], const unsigned char key[RNL_MEET_KEY_BYTES])
{
    struct meet_remote *f = &m->remote[rank];
    m->slot[rank].is_remote = true;
    memcpy(m->slot[rank].at, place->own, sizeof place->own);
    *f = (struct meet_remote){.port = place->port, .as = place->rank, .call = call};
    memcpy(f->ip, ip, sizeof f->ip);
    memcpy(f->key, key, sizeof f->key);
}

int rnl_meet_remote_up(struct meet *m, uint32_t rank)
{
    struct meet_slot *s = &m->slot[rank];
    const int status = rnl_meet_join(m, rank);
    if (status < 0)
        return status;
    s->state = MEET_UP;
    s->due_ns = 0;
    s->service = NULL;
    m->unreported++;
    rnl_meet_notify(m);
    rnl_meet_show(m, rank);
    return 0;
}

int rnl_meet_remote_reply(struct meet *m, uint32_t call, uint32_t rank, int status)
{
    struct rnl_meet_msg msg = {.kind = RNL_MEET_REPLY, .u.reply = {.call = call, .status = status}};
    msg.u.reply.place = (struct rnl_meet_place){.port = m->udp_port, .rank = rank};
    memcpy(msg.u.reply.place.own, m->address, sizeof msg.u.reply.place.own);
    return rnl_meet_send_daemon(m, &msg);
}

/* ---- to be vouched for by a job ---- */

void rnl_meet_remote_reserve(struct meet *m, uint32_t rank, struct rnl_env *by, uint32_t of)
{
    m->slot[rank].is_remote = true;
    m->remote[rank] = (struct meet_remote){.by = by, .of = of};
}

bool rnl_meet_remote_reserved(const struct meet *m, uint32_t rank, struct rnl_env **by, uint32_t *of)
{
    const struct meet_remote *f = m->remote && rank < m->env.size ? &m->remote[rank] : NULL;
    if (!f || !f->by || f->port != 0)
        return false;
    *by = f->by;
    *of = f->of;
    return true;
}

int rnl_meet_remote_vouch(struct meet *m, uint32_t rank, uint32_t port, uint32_t as,
                          const unsigned char key[RNL_MEET_KEY_BYTES])
{
    struct meet_remote *f = &m->remote[rank];
    f->port = port;
    f->as = as;
    memcpy(f->key, key, sizeof f->key);
    return rnl_meet_remote_up(m, rank);
}

uint64_t rnl_meet_remote_liveness(struct rnl_env *env, uint32_t rank)
{
    const struct meet *m = rnl_meet_of(env);
    const struct meet_remote *f = m->remote ? &m->remote[rank] : NULL;
    return f && f->by && f->by->ops->liveness ? f->by->ops->liveness(f->by, f->of) : 0;
}

bool rnl_meet_remote_is_unwatched(struct rnl_env *env, uint32_t rank)
{
    const struct meet *m = rnl_meet_of(env);
    return m->remote && m->slot[rank].state == MEET_UP && m->slot[rank].is_remote && !m->remote[rank].by &&
           m->remote[rank].call == 0;
}

/* ---- the end ---- */

uint32_t rnl_meet_remote_call_of(const struct meet *m, uint32_t rank)
{
    return m->remote && m->slot[rank].is_remote ? m->remote[rank].call : 0;
}

void rnl_meet_remote_leave(struct meet *m, uint32_t rank)
{
    const struct rnl_meet_msg msg = {.kind = RNL_MEET_PART, .u.request_id = {.request_id = m->remote[rank].call}};
    if (m->remote[rank].call != 0)
        (void)!rnl_meet_send_daemon(m, &msg);
}

void rnl_meet_remote_orphaned(struct meet *m, uint32_t rank)
{
    if (m->remote)
        m->remote[rank].call = 0;
}

void rnl_meet_remote_forget(struct meet *m, uint32_t rank)
{
    if (m->remote)
        sodium_memzero(&m->remote[rank], sizeof m->remote[rank]);
}
