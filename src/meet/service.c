/* SPDX-License-Identifier: BSD-3-Clause
 *
 * service.c - what an endpoint alone asks of daemons: to offer its services, and to reach those of others. A daemon
 * that ends is no loss: the next one is asked for the same things. The own user's is started if there is none. */
#include "base/error.h"
#include "meet/daemon.h"
#include "meet/meet_internal.h"

#include <errno.h>
#include <pwd.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PACKETS_PER_TURN = 32 };
#define TRY_NS     ((uint64_t)20 * 1000 * 1000)       /* between two tries to connect */
#define START_NS   ((uint64_t)2 * 1000 * 1000 * 1000) /* after which a daemon is started anew */
#define BUSY_NS    ((uint64_t)1000 * 1000 * 1000) /* after which a daemon that accepts nobody is taken for a stranger */
#define AGAIN_NS   ((uint64_t)100 * 1000 * 1000)  /* before another host that had no room is asked again */
#define GIVE_UP_NS ((uint64_t)8 * 1000 * 1000 * 1000)

static int send_msg(int sock, const struct rnl_meet_msg *msg, int fd)
{
    unsigned char bytes[RNL_MEET_BYTES_MAX];
    return rnl_seqpacket_send(sock, bytes, rnl_meet_encode(msg, bytes), &fd, fd >= 0, 0);
}

/* Nobody else can guess it, and no other question or offer has it. */
static uint32_t new_request_id(struct meet *m)
{
    for (;;) {
        const uint32_t request_id = (uint32_t)(m->env.ops->random(&m->env) >> 32);
        bool is_used = request_id == 0;
        for (const struct meet_service *s = m->services; s; s = s->next)
            is_used |= s->request_id == request_id;
        for (uint32_t i = 1; i < m->env.size; i++)
            is_used |= m->slot[i].by_name && m->slot[i].request_id == request_id;
        if (!is_used)
            return request_id;
    }
}

/* ---- links ---- */

static struct meet_link *find_link(const struct meet *m, uint32_t uid)
{
    struct meet_link *l = m->links;
    while (l && l->uid != uid)
        l = l->next;
    return l;
}

static struct meet_link *link_of(struct meet *m, uint32_t uid)
{
    struct meet_link *l = find_link(m, uid);
    if (l)
        return l;
    l = calloc(1, sizeof *l);
    if (!l)
        return NULL;
    *l = (struct meet_link){.next = m->links, .uid = uid, .sock = -1};
    m->links = l;
    return l;
}

/* Whose daemon is asked: that of the service's user, or for another host the own one, which knows the way there. */
static uint32_t owner_of(const struct meet *m, const struct meet_slot *s)
{
    return s->is_remote ? m->own_uid : s->uid;
}

static bool is_waiting(const struct meet *m, const struct meet_slot *s, uint32_t uid)
{
    return s->state == MEET_GREETING && s->by_name && owner_of(m, s) == uid && s->due_ns == 0;
}

/* Whether the link has anything to ask, now or again when the daemon has ended. */
static bool is_wanted(const struct meet *m, const struct meet_link *l)
{
    if (l->uid == m->own_uid && m->services)
        return true;
    for (uint32_t i = 1; i < m->env.size; i++)
        if (is_waiting(m, &m->slot[i], l->uid))
            return true;
    return false;
}

/* No daemon can be had. */
static void give_up(struct meet *m, struct meet_link *l)
{
    l->since_ns = 0;
    l->started_ns = 0;
    for (struct meet_service *s = m->services; s && l->uid == m->own_uid; s = s->next)
        if (s->status == 0)
            s->status = RNL_ERR_UNREACHABLE;
    for (uint32_t i = 1; i < m->env.size; i++)
        if (is_waiting(m, &m->slot[i], l->uid))
            rnl_meet_failed(m, i, RNL_ERR_UNREACHABLE);
    l->next_ns = m->now_ns + START_NS; /* services that were offered may be offered again later */
    if (is_wanted(m, l))
        rnl_meet_due(m, l->next_ns);
}

static void lost(struct meet *m, struct meet_link *l)
{
    rnl_meet_drop_fd(m, &l->sock);
    for (struct meet_service *s = m->services; s && l->uid == m->own_uid; s = s->next)
        s->is_requested = false;
    for (uint32_t i = 1; i < m->env.size; i++) /* others find their sockets hung up on */
        if (m->slot[i].is_remote && is_waiting(m, &m->slot[i], l->uid))
            m->slot[i].is_requested = false;
    if (l->uid == m->own_uid)
        rnl_meet_remote_lost(m);
    l->since_ns = 0;
    l->started_ns = 0;
    l->next_ns = m->now_ns + TRY_NS;
    rnl_meet_due(m, l->next_ns);
}

static void try_to_start(struct meet *m, struct meet_link *l)
{
    int status = rnl_daemon_started(&l->starter);
    if (status == 1 && m->now_ns >= l->started_ns + START_NS) {
        status = m->world ? m->world->start_daemon(&m->env) : rnl_daemon_start(&l->starter);
        l->started_ns = m->now_ns;
    }
    if (status < 0 || m->now_ns - l->since_ns > GIVE_UP_NS) {
        give_up(m, l);
        return;
    }
    l->next_ns = m->now_ns + TRY_NS;
    rnl_meet_due(m, l->next_ns);
}

/* Asks for a service of another host. */
static int call(struct meet *m, const struct meet_link *l, uint32_t rank)
{
    struct meet_slot *s = &m->slot[rank];
    struct rnl_meet_msg msg;
    s->request_id = new_request_id(m);
    if (rnl_meet_remote_call(m, rank, &msg) < 0) {
        rnl_meet_failed(m, rank, RNL_ERR_SYSTEM);
        return 0;
    }
    int e = send_msg(l->sock, &msg, -1);
    s->is_requested = e == 0;
    return e;
}

/* Sends the daemon each request that it does not have yet. Where its socket has no room, the rest waits. */
static void send_requests(struct meet *m, struct meet_link *l)
{
    int e = 0;
    for (struct meet_service *s = m->services; s && l->uid == m->own_uid && e == 0; s = s->next) {
        struct rnl_meet_msg msg = {.kind = RNL_MEET_SERVE};
        if (s->is_requested || s->status < 0)
            continue;
        msg.u.serve.request_id = s->request_id;
        msg.u.serve.flags = s->who.flags;
        msg.u.serve.uids = s->who.uids;
        msg.u.serve.gids = s->who.gids;
        memcpy(msg.u.serve.name, s->name, sizeof s->name);
        memcpy(msg.u.serve.uid, s->who.uid, sizeof s->who.uid);
        memcpy(msg.u.serve.gid, s->who.gid, sizeof s->who.gid);
        e = send_msg(l->sock, &msg, -1);
        s->is_requested = e == 0;
    }
    for (uint32_t i = 1; i < m->env.size && e == 0; i++) {
        struct meet_slot *s = &m->slot[i];
        struct rnl_meet_msg msg = {.kind = RNL_MEET_REACH};
        int theirs;
        if (!is_waiting(m, s, l->uid) || s->is_requested)
            continue;
        if (s->is_remote) {
            e = call(m, l, i);
            continue;
        }
        if (rnl_meet_offer_pair(m, i, &theirs) < 0) {
            rnl_meet_failed(m, i, RNL_ERR_SYSTEM);
            continue;
        }
        s->request_id = new_request_id(m); /* answers to what was asked before find nobody */
        msg.u.reach.request_id = s->request_id;
        msg.u.reach.uid = s->uid;
        memcpy(msg.u.reach.name, s->name, sizeof s->name);
        s->is_requested = true;
        e = send_msg(l->sock, &msg, theirs);
        close(theirs); /* if it was not sent, the slot finds its socket hung up on, and asks again */
    }
    if (e == RNL_NO_ROOM)
        rnl_meet_due(m, l->next_ns = m->now_ns + TRY_NS);
    else if (e < 0)
        lost(m, l);
}

/* Connects to the daemon, or starts one; sends it what is requested. */
static void connect_link(struct meet *m, struct meet_link *l)
{
    const struct rnl_meet_msg greet = {.kind = RNL_MEET_GREET};
    if (l->sock < 0) {
        int sock = rnl_daemon_connect(l->uid, rnl_meet_daemon(m));
        if (l->since_ns == 0)
            l->since_ns = m->now_ns;
        if (sock == -EAGAIN && m->now_ns - l->since_ns < BUSY_NS) { /* others connect, too */
            rnl_meet_due(m, l->next_ns = m->now_ns + TRY_NS);
            return;
        }
        if (sock < 0) {
            if (l->uid == m->own_uid && (sock == -ECONNREFUSED || sock == -EAGAIN))
                try_to_start(m, l);
            else
                give_up(m, l);
            return;
        }
        l->sock = sock;
        if (rnl_meet_watch(m, sock, MEET_LINK, l->uid) < 0 || send_msg(sock, &greet, -1) < 0) {
            lost(m, l);
            return;
        }
        l->since_ns = l->next_ns = 0;
        l->started_ns = 0;
        if (rnl_daemon_started(&l->starter) == 0)
            rnl_meet_due(m, m->now_ns + TRY_NS);
    }
    send_requests(m, l);
}

void rnl_meet_links_due(struct meet *m)
{
    for (struct meet_link *l = m->links; l; l = l->next) {
        if (l->starter > 0 && rnl_daemon_started(&l->starter) == 0)
            rnl_meet_due(m, m->now_ns + TRY_NS); /* it is to be waited for, as any child */
        if (l->next_ns == 0 || !is_wanted(m, l))
            continue;
        if (m->now_ns >= l->next_ns)
            connect_link(m, l);
        else
            rnl_meet_due(m, l->next_ns);
    }
}

/* ---- what daemons say ---- */

static bool is_requested(const struct meet *m, const struct meet_link *l, uint32_t rank, uint32_t request_id)
{
    const struct meet_slot *s = &m->slot[rank];
    return s->state == MEET_GREETING && s->by_name && owner_of(m, s) == l->uid && s->request_id == request_id;
}

/* The own user's daemon alone speaks of the services that are offered here, and of what is reached the one that was
 * asked. */
static void result_came(struct meet *m, const struct meet_link *l, const struct rnl_meet_result *r)
{
    for (struct meet_service *s = m->services; s && l->uid == m->own_uid; s = s->next)
        if (s->request_id == r->request_id) {
            s->status = r->status == 0 ? 1 : RNL_ERR_REFUSED;
            return;
        }
    for (uint32_t i = 1; i < m->env.size; i++)
        if (is_requested(m, l, i, r->request_id)) {
            if (m->slot[i].is_remote && r->status == RNL_BUSY && m->slot[i].by_address) {
                rnl_meet_yield(m, i);
            } else if (m->slot[i].is_remote && r->status == RNL_NO_ROOM) { /* there may be later */
                m->slot[i].is_requested = false;
                rnl_meet_due(m, m->slot[i].due_ns = m->now_ns + AGAIN_NS);
            } else {
                rnl_meet_failed(
                    m, i, r->status == RNL_NO_ROOM || r->status == RNL_ERR_UNREACHABLE ? r->status : RNL_ERR_REFUSED);
            }
            return;
        }
}

/* Services and peers of this user are the business of its own daemon. */
static struct meet_service *of_request_id(const struct meet *m, const struct meet_link *l, uint32_t request_id)
{
    struct meet_service *s = l->uid == m->own_uid ? m->services : NULL;
    while (s && s->request_id != request_id)
        s = s->next;
    return s;
}

static void remote_came(struct meet *m, const struct meet_link *l, const struct rnl_meet_msg *msg)
{
    if (l->uid != m->own_uid)
        return;
    if (msg->kind == RNL_MEET_CALLED)
        rnl_meet_called(m, of_request_id(m, l, msg->u.called.request_id), &msg->u.called);
    else if (msg->kind == RNL_MEET_GONE)
        rnl_meet_remote_gone(m, &msg->u.gone);
    for (uint32_t i = 1; msg->kind == RNL_MEET_MET && i < m->env.size; i++)
        if (m->slot[i].is_remote && is_requested(m, l, i, msg->u.met.request_id)) {
            rnl_meet_met_remote(m, i, &msg->u.met);
            return;
        }
}

static void request_came(struct meet *m, const struct meet_link *l, const struct rnl_meet_request *k, int sock)
{
    struct meet_service *s = of_request_id(m, l, k->request_id);
    int rank = s ? rnl_meet_claim_for(m, k->uid, s) : RNL_ERR_RANK;
    if (rank < 0) {
        if (s && rnl_seqpacket_is_socket(sock))
            rnl_meet_send_denied(sock, RNL_DENIED_NO_ROOM);
        (void)!rnl_seqpacket_refuse_fd(sock);
        return;
    }
    if (rnl_meet_take_sock(m, (uint32_t)rank, sock) < 0)
        rnl_meet_failed(m, (uint32_t)rank, RNL_ERR_SYSTEM);
    else
        rnl_meet_receive_slot(m, (uint32_t)rank);
}

void rnl_meet_receive_link(struct meet *m, uint32_t uid)
{
    struct meet_link *l = find_link(m, uid);
    unsigned char bytes[RNL_MEET_BYTES_MAX];
    struct rnl_seqpacket p;
    struct rnl_meet_msg msg;
    for (int i = 0; i < PACKETS_PER_TURN && l && l->sock >= 0; i++) {
        int e = rnl_seqpacket_receive(l->sock, bytes, sizeof bytes, 1, &p, 0);
        if (e == RNL_NO_ROOM)
            return;
        bool good = e == 0 && !p.cut && rnl_meet_decode(RNL_MEET_FROM_DAEMON, bytes, p.n, &msg) == RNL_MEET_GOOD &&
                    p.nfds == rnl_meet_fds(&msg);
        if (!good) {
            for (unsigned k = 0; e == 0 && k < p.nfds; k++)
                (void)!rnl_seqpacket_refuse_fd(p.fds[k]);
            lost(m, l);
        } else if (msg.kind == RNL_MEET_REQUEST) {
            request_came(m, l, &msg.u.request, p.fds[0]);
        } else if (msg.kind == RNL_MEET_RESULT) {
            result_came(m, l, &msg.u.result);
        } else {
            remote_came(m, l, &msg);
        }
        explicit_bzero(&msg, sizeof msg); /* keys */
        explicit_bzero(bytes, sizeof bytes);
    }
}

/* ---- services ---- */

static struct meet_service **find_service(struct meet *m, const char *name)
{
    struct meet_service **at = &m->services;
    while (*at && (*at == m->listener || strncmp((*at)->name, name, sizeof(*at)->name) != 0))
        at = &(*at)->next;
    return at;
}

static void remove_service(struct meet *m, struct meet_service **at)
{
    struct meet_service *s = *at;
    *at = s->next;
    rnl_meet_forget_service(m, s);
    free(s);
}

int rnl_meet_serve(struct rnl_env *env, const char *service, const struct rnl_admit *who, rnl_connection_request *f,
                   void *ctx)
{
    struct meet *m = rnl_meet_of(env);
    char name[RNL_MEET_NAME_BYTES];
    struct rnl_meet_admit admit;
    int status = rnl_meet_forked(m);
    if (status == 0)
        status = rnl_meet_admit(who, &admit);
    if (status < 0)
        return status;
    if (!rnl_meet_name(service, name))
        return rnl_fail(RNL_ERR_ARG, "'%.70s' is no name of a service: it has 1 to %d letters, digits and ._-",
                        service ? service : "", RNL_MEET_NAME_BYTES - 1);
    if (*find_service(m, name))
        return rnl_fail(RNL_ERR_REFUSED, "this endpoint offers %s already: end that first (rnl_unserve)", name);
    struct meet_link *l = link_of(m, m->own_uid);
    struct meet_service *s = l ? calloc(1, sizeof *s) : NULL;
    if (!s)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for the service %s", name);
    *s = (struct meet_service){.next = m->services, .who = admit, .f = f, .ctx = ctx, .request_id = new_request_id(m)};
    memcpy(s->name, name, sizeof name);
    m->services = s;
    m->now_ns = rnl_meet_now(m);
    connect_link(m, l);
    return 0;
}

void rnl_meet_list_address(struct meet *m)
{
    struct meet_service *s = m->listener;
    struct meet_link *l = link_of(m, m->own_uid);
    const struct rnl_meet_msg msg = {.kind = RNL_MEET_UNSERVE, .u.request_id = {.request_id = s->request_id}};
    if (!l)
        return;
    if (!m->is_listed) {
        s->request_id = new_request_id(m);
        s->next = m->services;
        m->services = s;
        m->is_listed = true;
        memcpy(s->name, RNL_MEET_AT, sizeof RNL_MEET_AT);
        sodium_bin2hex(s->name + sizeof RNL_MEET_AT - 1, sizeof s->name - sizeof RNL_MEET_AT + 1, m->address,
                       sizeof m->address);
    } else if (l->sock >= 0 && s->is_requested && send_msg(l->sock, &msg, -1) < 0) {
        lost(m, l);
    }
    s->is_requested = false; /* whom it admits may have changed */
    s->status = 0;
    m->now_ns = rnl_meet_now(m);
    if (l->sock >= 0 || m->now_ns >= l->next_ns)
        connect_link(m, l);
    else
        rnl_meet_due(m, l->next_ns);
}

int rnl_meet_served(struct rnl_env *env, const char *service)
{
    struct meet *m = rnl_meet_of(env);
    struct meet_service **at = find_service(m, service);
    if (!*at)
        return rnl_fail(RNL_ERR_ARG, "this endpoint does not offer %.70s", service);
    int status = (*at)->status;
    if (status >= 0)
        return status;
    remove_service(m, at);
    if (status == RNL_ERR_UNREACHABLE)
        return rnl_fail(status, "the daemon that keeps the names of services does not run and cannot be started: start "
                                "`runnel daemon`, or install the runnel command and have it in PATH");
    return rnl_fail(status,
                    "%.70s cannot be offered: another endpoint of this user offers it, or this one offers too "
                    "many",
                    service);
}

int rnl_meet_unserve(struct rnl_env *env, const char *service)
{
    struct meet *m = rnl_meet_of(env);
    int status = rnl_meet_forked(m);
    struct meet_service **at = find_service(m, service);
    if (status < 0)
        return status;
    if (!*at)
        return rnl_fail(RNL_ERR_ARG, "this endpoint does not offer %.70s", service);
    const struct rnl_meet_msg msg = {.kind = RNL_MEET_UNSERVE, .u.request_id = {.request_id = (*at)->request_id}};
    struct meet_link *l = find_link(m, m->own_uid);
    if (l && l->sock >= 0 && (*at)->is_requested && send_msg(l->sock, &msg, -1) < 0)
        lost(m, l); /* the next connection does not offer it */
    remove_service(m, at);
    return 0;
}

/* ---- to reach ---- */

void rnl_meet_request_service(struct meet *m, uint32_t rank)
{
    struct meet_link *l = link_of(m, owner_of(m, &m->slot[rank]));
    if (!l)
        rnl_meet_failed(m, rank, RNL_ERR_NO_MEMORY);
    else if (l->sock >= 0 || m->now_ns >= l->next_ns)
        connect_link(m, l);
    else
        rnl_meet_due(m, l->next_ns);
}

void rnl_meet_cancel(struct meet *m, uint32_t rank)
{
    struct meet_slot *s = &m->slot[rank];
    const struct rnl_meet_msg msg = {.kind = RNL_MEET_CANCEL, .u.request_id = {.request_id = s->request_id}};
    const struct meet_link *l = find_link(m, owner_of(m, s));
    if (l && l->sock >= 0 && s->is_requested)
        (void)!send_msg(l->sock, &msg, -1); /* else whoever gets the socket finds it hung up on */
    s->by_name = false;
}

/* Reads "USER/NAME" or "NAME". What follows an @ is not looked at. */
static int parse(const struct meet *m, const char *service, uint32_t *uid, char name[RNL_MEET_NAME_BYTES])
{
    const char *slash = service ? strchr(service, '/') : NULL;
    char user[64], buf[4096], copy[RNL_MEET_NAME_BYTES + 1], *end;
    struct passwd entry, *found = NULL;
    *uid = m->own_uid;
    if (slash && (slash == service || (size_t)(slash - service) >= sizeof user))
        return rnl_fail(RNL_ERR_ARG, "'%.70s' names no user before its slash", service);
    if (slash) {
        snprintf(user, sizeof user, "%.*s", (int)(slash - service), service);
        errno = 0;
        unsigned long n = strtoul(user, &end, 10);
        if (*end == '\0' && user[0] >= '0' && user[0] <= '9' && errno == 0 && n < UINT32_MAX)
            *uid = (uint32_t)n;
        else if (getpwnam_r(user, &entry, buf, sizeof buf, &found) == 0 && found)
            *uid = found->pw_uid;
        else
            return rnl_fail(RNL_ERR_ARG, "there is no user %s on this host", user);
    }
    snprintf(copy, sizeof copy, "%s", slash ? slash + 1 : service ? service : "");
    copy[strcspn(copy, "@")] = '\0';
    if (!rnl_meet_name(copy, name))
        return rnl_fail(RNL_ERR_ARG,
                        "'%.70s' is no service: [USER/]NAME[@HOST[:PORT]], NAME having 1 to %d letters, digits and "
                        "._-",
                        service ? service : "", RNL_MEET_NAME_BYTES - 1);
    return 0;
}

int rnl_meet_reach(struct rnl_env *env, const char *service, bool quiet, uint32_t *rank)
{
    struct meet *m = rnl_meet_of(env);
    char name[RNL_MEET_NAME_BYTES];
    unsigned char ip[RNL_MEET_IP_BYTES] = {0};
    uint32_t uid, port = 0;
    const char *host = service ? strchr(service, '@') : NULL;
    int status = rnl_meet_forked(m);
    if (status == 0)
        status = parse(m, service, &uid, name);
    if (status == 0 && host)
        status = rnl_meet_remote_host(m, host + 1, ip, &port);
    if (status == 0)
        status = rnl_meet_claim(m);
    if (status < 0)
        return status;
    struct meet_slot *s = &m->slot[status];
    if (host) {
        s->is_remote = true;
        s->own_user = !memchr(service, '/', (size_t)(host - service));
        s->host_port = port;
        memcpy(s->host, ip, sizeof ip);
    }
    s->by_name = s->is_known = true;
    s->quiet = quiet;
    s->uid = uid;
    memcpy(s->name, name, sizeof name);
    m->now_ns = rnl_meet_now(m);
    *rank = (uint32_t)status;
    rnl_meet_request_service(m, *rank);
    return 0;
}
