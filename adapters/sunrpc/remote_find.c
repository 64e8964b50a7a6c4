/* SPDX-License-Identifier: BSD-3-Clause
 *
 * remote_find.c - how a client and a server of two hosts become peers. What the server says in band is the name of a
 * service, under which its process is known to the daemon of its host, and a token; the client reaches that service
 * through its own daemon, and shows the token. */
#include "remote_internal.h"

#include "base/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#define S rnl_rpc_remote_state

enum { GREET_MS = 10000 };

/* ---- a client ---- */

struct rnl_rpc_link *rnl_rpc_remote_reach(const char *service, const char token[RNL_RPC_TOKEN_BYTES],
                                          const char proof[RNL_RPC_TOKEN_BYTES], const char **why)
{
    unsigned peer;
    struct rnl_rpc_remote *f = NULL;
    pthread_mutex_lock(&S.lock);
    if (rnl_rpc_remote_open(why)) {
        *why = "this process has no room for another peer";
        if (S.lib->reach(S.ep, service, 0, &peer) >= 0) {
            f = rnl_rpc_remote_new(peer, false, &rnl_rpc_remote_ops);
            if (!f)
                (void)S.lib->leave(S.ep, peer);
        }
        if (f && !rnl_rpc_remote_make_fd(f, NULL)) {
            *why = "this process has hardly a descriptor left";
            if (f->link.fd >= 0)
                close(f->link.fd);
            rnl_rpc_remote_free(f);
            f = NULL;
        }
    }
    if (f) {
        memcpy(f->token, token, sizeof f->token);
        memcpy(f->proof, proof, sizeof f->proof);
        rnl_rpc_remote_coming(f, true);
    }
    pthread_mutex_unlock(&S.lock);
    return f ? &f->link : NULL;
}

int rnl_rpc_remote_is_up(struct rnl_rpc_link *link, const char **why)
{
    struct rnl_rpc_remote *f = rnl_rpc_remote_of(link);
    int up = -1;
    *why = "its server has dropped it";
    if (rnl_rpc_remote_is_forked(link))
        return -1;
    pthread_mutex_lock(&S.lock);
    rnl_rpc_remote_pump();
    if (f->dead) {
        if (f->why)
            *why = f->why;
    } else {
        rnl_rpc_remote_greet();
        up = f->up;
    }
    pthread_mutex_unlock(&S.lock);
    return up;
}

/* ---- a server ---- */

static int on_connection_request(void *ctx, unsigned peer, const struct rnl_cred *cred)
{
    (void)ctx;
    struct rnl_rpc_remote *f = rnl_rpc_remote_new(peer, true, &rnl_rpc_remote_ops);
    if (!f)
        return 1;
    f->uid = cred->uid;
    return 0;
}

static bool choose_name(void)
{
    unsigned long long number;
    if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number)
        return false;
    snprintf(S.service, sizeof S.service, "rpc-%016llx", number);
    return true;
}

bool rnl_rpc_remote_serve(const char **name, int *ready, const char **why)
{
    const struct rnl_admit anyone = {.flags = RNL_ADMIT_ANYONE};
    static char text[64];
    int fd = -1;
    pthread_mutex_lock(&S.lock);
    bool ok = rnl_rpc_remote_open(why);
    if (ok && S.arrivals < 0) {
        *why = "the daemon of this host cannot be used";
        ok = choose_name() && S.lib->serve(S.ep, S.service, &anyone, on_connection_request, NULL) == 0;
        if (ok) {
            *why = "this process has hardly a descriptor left";
            S.arrivals = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
            ok = rnl_rpc_has_room(S.arrivals);
        }
        if (!ok && S.arrivals >= 0) {
            close(S.arrivals);
            S.arrivals = -1;
        }
    }
    if (ok && S.lib->arm(S.ep, &fd) < 0)
        ok = false;
    pthread_mutex_unlock(&S.lock);
    if (!ok)
        return false;
    /* The two descriptors in one, by which a loop of the program waits for both. */
    struct epoll_event of = {.events = EPOLLIN};
    *ready = epoll_create1(EPOLL_CLOEXEC);
    if (*ready < 0 || epoll_ctl(*ready, EPOLL_CTL_ADD, fd, &of) < 0 ||
        epoll_ctl(*ready, EPOLL_CTL_ADD, S.arrivals, &of) < 0) {
        if (*ready >= 0)
            close(*ready);
        *why = "this process has hardly a descriptor left";
        return false;
    }
    snprintf(text, sizeof text, "%u/%s", (unsigned)geteuid(), S.service);
    *name = text;
    return true;
}

/* Those that were introduced and have shown no token for long are sent away. */
static struct rnl_rpc_remote *first_greeted(void)
{
    const uint64_t now = rnl_rpc_now_ns();
    for (unsigned i = 1; i < S.count; i++) {
        struct rnl_rpc_remote *f = S.peers[i];
        if (!f || !f->is_server || f->link.fd >= 0)
            continue;
        if (f->greeted)
            return f;
        if (now - f->began_ns >= GREET_MS * (uint64_t)1000000)
            rnl_rpc_remote_free(f);
    }
    return NULL;
}

struct rnl_rpc_link *rnl_rpc_remote_next(char token[RNL_RPC_TOKEN_BYTES], uid_t *uid, int *sock)
{
    uint64_t count;
    struct rnl_rpc_remote *f = NULL;
    pthread_mutex_lock(&S.lock);
    if (S.ep && S.arrivals >= 0) {
        rnl_rpc_remote_pump();
        (void)!read(S.arrivals, &count, sizeof count);
        f = first_greeted();
        if (f && !rnl_rpc_remote_make_fd(f, sock)) {
            if (f->link.fd >= 0)
                close(f->link.fd);
            rnl_rpc_remote_free(f);
            f = NULL;
        }
        if (!f)
            rnl_rpc_remote_arm();
    }
    if (f) {
        memcpy(token, f->token, sizeof f->token);
        *uid = f->uid;
    }
    pthread_mutex_unlock(&S.lock);
    return f ? &f->link : NULL;
}

bool rnl_rpc_remote_welcome(struct rnl_rpc_link *link, const char proof[RNL_RPC_TOKEN_BYTES])
{
    struct rnl_rpc_remote *f = rnl_rpc_remote_of(link);
    pthread_mutex_lock(&S.lock);
    f->up = true;
    bool ok = rnl_rpc_remote_send(f, RNL_RPC_REMOTE_WELCOME, false, proof, RNL_RPC_TOKEN_BYTES, false) > 0 &&
              S.lib->flush(S.ep) >= 0;
    pthread_mutex_unlock(&S.lock);
    return ok;
}
