/* SPDX-License-Identifier: BSD-3-Clause
 *
 * address.c - introductions without a daemon: by the address of an endpoint, and through a socket that the program
 * has.
 *
 * An address is text: rnl1.USER.HOST.NAME.TOKEN[@IP], USER a number and the others hexadecimal, IP in base 64. HOST is
 * a hash of what tells one kernel and network namespace from another; NAME is the abstract socket at which the endpoint
 * listens, which anybody can list; TOKEN is what only who was given the address can show. With IP, an address of the
 * host, it can be inserted from other hosts: there it is a service, RNL_MEET_AT and NAME, of the endpoint's daemon. */
#include "base/error.h"
#include "meet/daemon.h"
#include "meet/meet_internal.h"
#include "meet/node_key.h"
#include "meet/who.h"
#include "net/probe/address_probe.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    HOST_BYTES = 8,
    IP_TEXT = 23, /* in base 64, with its 0 */
    BACKLOG = 64,
    ACCEPTS_PER_TURN = 16,
    INTRODUCE_BYTES = 16
};
static const unsigned char introduction[INTRODUCE_BYTES] = {'R', 'N', 'L', 'M', 'E', 'E', 'T', RNL_MEET_VERSION};

struct address {
    uint32_t uid;
    bool has_ip;
    unsigned char ip[RNL_MEET_IP_BYTES];
    unsigned char host[HOST_BYTES], name[RNL_MEET_TOKEN_BYTES], token[RNL_MEET_TOKEN_BYTES];
};

/* ---- text ---- */

static void own_host(const struct meet *m, unsigned char out[HOST_BYTES])
{
    unsigned char hash[crypto_generichash_BYTES_MIN];
    struct {
        char boot[40];
        uint64_t device, inode;
    } id;
    struct stat st;
    if (m->world) {
        memcpy(out, m->world->host_id, HOST_BYTES);
        return;
    }
    memset(&id, 0, sizeof id);
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        (void)!read(fd, id.boot, sizeof id.boot);
        close(fd);
    }
    if (stat("/proc/self/ns/net", &st) == 0) {
        id.device = st.st_dev;
        id.inode = st.st_ino;
    }
    (void)crypto_generichash(hash, sizeof hash, (const unsigned char *)&id, sizeof id, NULL, 0);
    memcpy(out, hash, HOST_BYTES);
}

static int print(const struct address *a, char *buf, size_t n)
{
    char ip[IP_TEXT], host[2 * HOST_BYTES + 1], name[2 * RNL_MEET_TOKEN_BYTES + 1], token[2 * RNL_MEET_TOKEN_BYTES + 1];
    sodium_bin2hex(host, sizeof host, a->host, sizeof a->host);
    sodium_bin2hex(name, sizeof name, a->name, sizeof a->name);
    sodium_bin2hex(token, sizeof token, a->token, sizeof a->token);
    (void)sodium_bin2base64(ip, sizeof ip, a->ip, sizeof a->ip, sodium_base64_VARIANT_URLSAFE_NO_PADDING);
    int bytes =
        snprintf(buf, n, "rnl1.%u.%s.%s.%s%s%s", a->uid, host, name, token, a->has_ip ? "@" : "", a->has_ip ? ip : "");
    sodium_memzero(token, sizeof token);
    return bytes >= 0 && (size_t)bytes < n
               ? 0
               : rnl_fail(RNL_ERR_ARG, "an address needs %d bytes, and there are %zu", RNL_ADDRESS_BYTES, n);
}

/* Reads `bytes` bytes of hexadecimal digits, which end with `end`. Returns what follows, or NULL. */
static const char *hex(const char *text, unsigned char *out, size_t bytes, char end)
{
    const char *after;
    size_t got;
    if (!text || strnlen(text, 2 * bytes) < 2 * bytes ||
        sodium_hex2bin(out, bytes, text, 2 * bytes, NULL, &got, &after) != 0 || got != bytes || *after != end)
        return NULL;
    return end ? after + 1 : after;
}

static bool parse(const char *text, struct address *out)
{
    unsigned uid;
    size_t got;
    int n = 0;
    if (!text || sscanf(text, "rnl1.%10u.%n", &uid, &n) != 1 || n == 0)
        return false;
    out->uid = uid;
    text = hex(text + n, out->host, sizeof out->host, '.');
    text = hex(text, out->name, sizeof out->name, '.');
    out->has_ip = text && strchr(text, '@');
    text = hex(text, out->token, sizeof out->token, out->has_ip ? '@' : '\0');
    return text && (!out->has_ip || (sodium_base642bin(out->ip, sizeof out->ip, text, strlen(text), NULL, &got, NULL,
                                                       sodium_base64_VARIANT_URLSAFE_NO_PADDING) == 0 &&
                                     got == sizeof out->ip));
}

static socklen_t socket_of(const unsigned char name[RNL_MEET_TOKEN_BYTES], struct sockaddr_un *out)
{
    static const char prefix[] = "runnel-at-";
    memset(out, 0, sizeof *out);
    out->sun_family = AF_UNIX;
    memcpy(out->sun_path + 1, prefix, sizeof prefix - 1);
    sodium_bin2hex(out->sun_path + sizeof prefix, 2 * RNL_MEET_TOKEN_BYTES + 1, name, RNL_MEET_TOKEN_BYTES);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + sizeof prefix + 2 * (size_t)RNL_MEET_TOKEN_BYTES);
}

/* ---- to have an address ---- */

static int listen_at(struct meet *m)
{
    struct sockaddr_un at;
    randombytes_buf(m->token, sizeof m->token);
    socklen_t bytes = socket_of(m->address, &at);
    m->listen = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (m->listen >= 0 && bind(m->listen, (const struct sockaddr *)&at, bytes) == 0 &&
        listen(m->listen, BACKLOG) == 0 && rnl_meet_watch(m, m->listen, MEET_LISTEN, 0) == 0)
        return 0;
    int e = errno;
    rnl_meet_drop_fd(m, &m->listen);
    return rnl_fail_errno(RNL_ERR_SYSTEM, e,
                          "cannot listen for who has the address: raise the limit of descriptors "
                          "(ulimit -n)");
}

/* Whether processes of other hosts may come: there is a daemon, or one that could be started has a key. */
static bool has_other_hosts(const struct meet *m)
{
    for (const struct meet_link *l = m->links; l; l = l->next)
        if (l->uid == m->own_uid && l->sock >= 0)
            return true;
    if (m->world ? m->world->has_hosts : rnl_node_key_present())
        return true;
    int sock = rnl_daemon_connect(m->own_uid, rnl_meet_daemon(m));
    if (sock >= 0)
        close(sock);
    return sock >= 0;
}

/* Gives an address of this host. False: it has none by which another one could reach it. */
static bool own_ip(const struct meet *m, unsigned char out[RNL_MEET_IP_BYTES])
{
    struct rnl_host_address first;
    if (m->world) {
        memcpy(out, m->world->ip, RNL_MEET_IP_BYTES);
        return m->world->has_hosts;
    }
    if (rnl_host_addresses(&first, 1) != 1 || rnl_is_loopback(first.ip))
        return false;
    memcpy(out, first.ip, sizeof first.ip);
    return true;
}

int rnl_meet_address(struct rnl_env *env, const struct rnl_admit *who, rnl_connection_request *f, void *ctx, char *buf,
                     size_t n)
{
    struct meet *m = rnl_meet_of(env);
    struct address a = {.uid = m->own_uid};
    struct rnl_meet_admit admit;
    int status = rnl_meet_forked(m);
    if (status == 0)
        status = rnl_meet_admit(who, &admit);
    if (status == 0 && sodium_init() < 0)
        status = rnl_fail(RNL_ERR_SYSTEM, "the cryptographic library does not start");
    if (status == 0 && !m->listener && !(m->listener = calloc(1, sizeof *m->listener)))
        status = rnl_fail(RNL_ERR_NO_MEMORY, "no memory for an address");
    if (status == 0 && m->listen < 0)
        status = listen_at(m);
    if (status < 0)
        return status;
    m->listener->who = admit;
    m->listener->f = f;
    m->listener->ctx = ctx;
    own_host(m, a.host);
    memcpy(a.name, m->address, sizeof a.name);
    memcpy(a.token, m->token, sizeof a.token);
    a.has_ip = has_other_hosts(m) && own_ip(m, a.ip);
    if (a.has_ip)
        rnl_meet_list_address(m);
    return print(&a, buf, n);
}

/* Whether the caller is admitted, or its user is one whose address was inserted here. Another one, whatever it would
 * show, takes no slot. */
static bool may_call(const struct meet *m, int sock, uint32_t *uid)
{
    struct rnl_who who;
    if (rnl_who_at(sock, &who) < 0)
        return false;
    *uid = who.uid;
    return rnl_meet_admits(&m->listener->who, m->own_uid, who.uid, who.group, who.groups) ||
           rnl_meet_inserted(m, who.uid, NULL) != 0;
}

void rnl_meet_receive_listener(struct meet *m)
{
    for (int i = 0; i < ACCEPTS_PER_TURN; i++) {
        int sock = accept4(m->listen, NULL, NULL, SOCK_CLOEXEC);
        if (sock < 0)
            return;
        uint32_t uid;
        int rank = may_call(m, sock, &uid) ? rnl_meet_claim_for(m, uid, m->listener) : RNL_ERR_REFUSED;
        if (rank < 0) {
            rnl_meet_send_denied(sock, rank == RNL_NO_ROOM ? RNL_DENIED_NO_ROOM : RNL_DENIED_ADMIT);
            close(sock);
            continue;
        }
        if (rnl_meet_take_sock(m, (uint32_t)rank, sock) < 0)
            rnl_meet_failed(m, (uint32_t)rank, RNL_ERR_SYSTEM);
    }
}

/* ---- to insert one ---- */

/* Connects to the endpoint of that address. Returns the socket or a status. */
static int call(const struct address *a)
{
    struct sockaddr_un at;
    struct rnl_who who;
    socklen_t bytes = socket_of(a->name, &at);
    int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (sock < 0)
        return rnl_fail_errno(RNL_ERR_SYSTEM, errno,
                              "cannot make a socket: raise the limit of descriptors (ulimit -n)");
    if (connect(sock, (const struct sockaddr *)&at, bytes) < 0) {
        int e = errno;
        close(sock);
        return e == EAGAIN ? rnl_fail(RNL_NO_ROOM, "many processes insert that address at this moment: try again later")
                           : rnl_fail_errno(RNL_ERR_UNREACHABLE, e, "the endpoint of that address is closed");
    }
    if (rnl_who_at(sock, &who) < 0 || who.uid != a->uid) {
        close(sock);
        return rnl_fail(RNL_ERR_REFUSED, "somebody else listens at that address");
    }
    return sock;
}

/* Returns the rank of whom the address names, if it is a peer, or has come and is to be asked about: the program, which
 * inserts it, wants it. 0 = it is none. */
static uint32_t present(struct meet *m, const struct address *a)
{
    uint32_t found = rnl_meet_inserted(m, a->uid, a->name);
    for (uint32_t i = 1; i < m->env.size && !found; i++) {
        struct meet_slot *s = &m->slot[i];
        if ((s->state != MEET_UP && s->state != MEET_REQUESTING) || s->cred.uid != a->uid ||
            memcmp(s->at, a->name, sizeof s->at) != 0)
            continue;
        rnl_meet_receive_slot(m, i); /* it may have left */
        rnl_meet_reply(&m->env, i, true);
        if (s->state == MEET_UP)
            found = i;
    }
    if (found)
        m->slot[found].is_ours = true;
    return found;
}

int rnl_meet_is(struct rnl_env *env, uint32_t rank, const char *address)
{
    const struct meet *m = rnl_meet_of(env);
    struct rnl_cred cred;
    struct address a;
    if (!parse(address, &a))
        return rnl_fail(RNL_ERR_ARG, "'%.20s' is no address that rnl_address has made", address ? address : "");
    int status = rnl_meet_cred(env, rank, &cred);
    if (status < 0)
        return status;
    return cred.uid == a.uid && memcmp(rank == 0 ? m->address : m->slot[rank].at, a.name, sizeof a.name) == 0;
}

static void insert_remote(struct meet *m, uint32_t rank, const struct address *a)
{
    struct meet_slot *s = &m->slot[rank];
    s->is_known = s->by_address = s->by_name = s->is_remote = true;
    s->own_user = a->uid == m->own_uid;
    s->uid = a->uid;
    memcpy(s->host, a->ip, sizeof s->host);
    memcpy(s->at, a->name, sizeof s->at);
    memcpy(s->token, a->token, sizeof s->token);
    memcpy(s->name, RNL_MEET_AT, sizeof RNL_MEET_AT);
    sodium_bin2hex(s->name + sizeof RNL_MEET_AT - 1, sizeof s->name - sizeof RNL_MEET_AT + 1, a->name, sizeof a->name);
    rnl_meet_request_service(m, rank);
}

int rnl_meet_insert(struct rnl_env *env, const char *address, uint32_t *rank)
{
    struct meet *m = rnl_meet_of(env);
    struct address a;
    unsigned char host[HOST_BYTES];
    int status = rnl_meet_forked(m);
    if (status < 0)
        return status;
    if (sodium_init() < 0 || !parse(address, &a))
        return rnl_fail(RNL_ERR_ARG, "'%.20s' is no address that rnl_address has made", address ? address : "");
    own_host(m, host);
    const bool is_remote = memcmp(host, a.host, sizeof host) != 0;
    if (is_remote && !a.has_ip)
        return rnl_fail(RNL_ERR_UNREACHABLE, "that address is of another host, or another network namespace of this "
                                             "one, and no key was there with which its processes are introduced to "
                                             "others: see `runnel key`");
    m->now_ns = rnl_meet_now(m);
    *rank = 0;
    if (memcmp(a.name, m->address, sizeof a.name) == 0)
        return 0;
    *rank = present(m, &a);
    if (*rank)
        return 0;
    int claimed = rnl_meet_claim(m);
    if (is_remote && claimed >= 0) {
        insert_remote(m, (uint32_t)claimed, &a);
        *rank = (uint32_t)claimed;
        return 0;
    }
    int sock = claimed < 0 ? claimed : call(&a);
    if (claimed >= 0 && sock < 0)
        m->slot[claimed].state = MEET_FREE;
    if (sock < 0)
        return sock;
    struct meet_slot *s = &m->slot[claimed];
    s->is_known = s->by_address = true;
    s->uid = a.uid;
    memcpy(s->at, a.name, sizeof s->at);
    memcpy(s->token, a.token, sizeof s->token);
    status = rnl_meet_offer(m, (uint32_t)claimed, sock);
    if (status < 0)
        rnl_meet_abandon(m, (uint32_t)claimed);
    else
        *rank = (uint32_t)claimed;
    return status;
}

/* ---- through a socket of the program ---- */

void rnl_meet_receive_program(struct meet *m, uint32_t rank)
{
    struct meet_slot *s = &m->slot[rank];
    unsigned char bytes[INTRODUCE_BYTES];
    struct rnl_seqpacket p;
    int e = rnl_seqpacket_receive(s->sock, bytes, sizeof bytes, 1, &p, 0);
    if (e == RNL_NO_ROOM)
        return;
    rnl_meet_drop_fd(m, &s->sock);
    if (e < 0) {
        rnl_meet_failed(m, rank, RNL_ERR_UNREACHABLE);
        return;
    }
    bool good = p.n == sizeof bytes && p.nfds == 1 && memcmp(bytes, introduction, sizeof bytes) == 0;
    for (unsigned i = 0; !good && i < p.nfds; i++)
        (void)!rnl_seqpacket_refuse_fd(p.fds[i]);
    if (!good)
        rnl_meet_failed(m, rank, RNL_ERR_ARG);
    else if (rnl_meet_take_sock(m, rank, p.fds[0]) < 0)
        rnl_meet_failed(m, rank, RNL_ERR_SYSTEM);
    else
        rnl_meet_receive_slot(m, rank);
}

static int offer_through(struct meet *m, uint32_t rank, int socket)
{
    int theirs;
    int status = rnl_meet_offer_pair(m, rank, &theirs);
    if (status < 0)
        return status;
    int e = rnl_seqpacket_send(socket, introduction, sizeof introduction, &theirs, 1, 0);
    close(theirs);
    if (e == RNL_NO_ROOM)
        return rnl_fail(RNL_NO_ROOM, "the socket takes nothing now: read from its other end");
    return e < 0 ? rnl_fail(RNL_ERR_UNREACHABLE, "the socket does not lead to another process") : 0;
}

static int await_through(struct meet *m, uint32_t rank, int socket)
{
    int copy = fcntl(socket, F_DUPFD_CLOEXEC, 0);
    int e = copy < 0 ? -errno : rnl_meet_watch(m, copy, MEET_SOCK, rank);
    if (e < 0 && copy >= 0)
        close(copy);
    if (e < 0)
        return rnl_fail_errno(RNL_ERR_SYSTEM, -e, "cannot watch the socket");
    m->slot[rank].sock = copy;
    m->slot[rank].state = MEET_AWAITING;
    return 0;
}

int rnl_meet_introduce(struct rnl_env *env, int socket, bool offers, const struct rnl_admit *who, bool quiet,
                       uint32_t *rank)
{
    struct meet *m = rnl_meet_of(env);
    struct rnl_meet_admit admit;
    int domain = 0, type = 0;
    socklen_t n = sizeof domain;
    int status = rnl_meet_forked(m);
    if (status == 0)
        status = rnl_meet_admit(who, &admit);
    if (status < 0)
        return status;
    if (getsockopt(socket, SOL_SOCKET, SO_DOMAIN, &domain, &n) < 0 ||
        getsockopt(socket, SOL_SOCKET, SO_TYPE, &type, &n) < 0 || domain != AF_UNIX ||
        (type != SOCK_STREAM && type != SOCK_SEQPACKET))
        return rnl_fail(RNL_ERR_ARG, "descriptor %d is no unix socket of type SOCK_STREAM or SOCK_SEQPACKET", socket);
    int claimed = rnl_meet_claim(m);
    if (claimed < 0)
        return claimed;
    struct meet_slot *s = &m->slot[claimed];
    s->quiet = quiet;
    s->who = malloc(sizeof *s->who);
    m->now_ns = rnl_meet_now(m);
    if (!s->who)
        status = rnl_fail(RNL_ERR_NO_MEMORY, "no memory for an introduction");
    else
        *s->who = admit;
    if (status == 0)
        status = offers ? offer_through(m, (uint32_t)claimed, socket) : await_through(m, (uint32_t)claimed, socket);
    if (status < 0)
        rnl_meet_abandon(m, (uint32_t)claimed);
    else
        *rank = (uint32_t)claimed;
    return status;
}
