/* SPDX-License-Identifier: BSD-3-Clause
 *
 * back.c - see back.h: the side that listens. */
#include "job/back.h"

#include "job/launch.h"
#include "job/search.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { COME_BYTES = 12, ALL = 4 };
#define MS ((uint64_t)1000 * 1000)

/* Of all addresses, both families where there are both. The socket and its port, or -errno. */
static int listen_on(int family, uint16_t *port)
{
    const struct sockaddr_in6 any6 = {.sin6_family = AF_INET6};
    const struct sockaddr_in any = {.sin_family = AF_INET};
    struct sockaddr_in6 at; /* the port is in the same place */
    socklen_t n = sizeof at;
    const int off = 0;
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    if (family == AF_INET6)
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    int r = family == AF_INET6 ? bind(fd, (const struct sockaddr *)&any6, sizeof any6)
                               : bind(fd, (const struct sockaddr *)&any, sizeof any);
    if (r < 0 || listen(fd, 128) < 0 || getsockname(fd, (struct sockaddr *)&at, &n) < 0) {
        int e = -errno;
        close(fd);
        return e;
    }
    *port = ntohs(at.sin6_port);
    return fd;
}

/* The addresses of this host that others may know: not the loopback's, which are theirs, too. */
static int learn_ways(struct rnl_back_at *at)
{
    struct rnl_here *here = calloc(1, sizeof *here);
    int e = here == NULL ? -ENOMEM : rnl_search_ways(here);
    for (uint32_t i = 0; e == 0 && i < here->ways && at->ways < RNL_BACK_WAYS_MAX; i++)
        if (!rnl_here_is_loopback(here->way[i].ip))
            memcpy(at->ip[at->ways++], here->way[i].ip, 16);
    free(here);
    return e == 0 && at->ways == 0 ? -EADDRNOTAVAIL : e;
}

int rnl_back_open(int epoll, struct rnl_back **out)
{
    struct rnl_back *b = calloc(1, sizeof *b);
    *out = NULL;
    if (b == NULL)
        return -ENOMEM;
    b->epoll = epoll;
    b->fd = -1;
    int e = sodium_init() < 0 ? -ENOSYS : learn_ways(&b->at);
    if (e == 0 && (b->fd = listen_on(AF_INET6, &b->at.port)) < 0)
        b->fd = listen_on(AF_INET, &b->at.port);
    if (e == 0)
        e = b->fd < 0 ? b->fd : rnl_source_add(epoll, b->fd, RNL_SOURCE_BACK, 0, EPOLLIN);
    if (e < 0) {
        rnl_back_close(b);
        return e;
    }
    randombytes_buf(b->at.key, sizeof b->at.key);
    *out = b;
    return 0;
}

static struct rnl_channel *take(struct rnl_back *b, struct rnl_back_guest *g)
{
    struct rnl_channel *c = g->channel;
    epoll_ctl(b->epoll, EPOLL_CTL_DEL, c->fd, NULL);
    g->channel = NULL;
    return c;
}

void rnl_back_close(struct rnl_back *b)
{
    if (b == NULL)
        return;
    for (unsigned i = 0; i < RNL_BACK_GUESTS; i++)
        if (b->guest[i].channel != NULL)
            rnl_channel_free(take(b, &b->guest[i]));
    if (b->fd >= 0)
        close(b->fd);
    sodium_memzero(b, sizeof *b);
    free(b);
}

/* One that is free; else of anybody: who is honest needs two round trips, and tries again. */
static struct rnl_back_guest *room_for_one(struct rnl_back *b)
{
    struct rnl_back_guest *g = NULL;
    for (unsigned i = 0; i < RNL_BACK_GUESTS && g == NULL; i++)
        if (b->guest[i].channel == NULL)
            g = &b->guest[i];
    if (g == NULL)
        g = &b->guest[randombytes_uniform(RNL_BACK_GUESTS)];
    if (g->channel != NULL)
        rnl_channel_free(take(b, g));
    return g;
}

static void come(struct rnl_back *b, uint64_t now)
{
    int fd = accept4(b->fd, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)) {
        /* Who waits there would wake us again at once. */
        epoll_ctl(b->epoll, EPOLL_CTL_DEL, b->fd, NULL);
        b->listens_ns = now + RNL_BACK_DEAF_MS * MS;
    }
    if (fd < 0)
        return;
    struct rnl_back_guest *g = room_for_one(b);
    g->since_ns = now;
    g->channel = rnl_channel_new(fd, 1, b->at.key);
    if (g->channel != NULL &&
        rnl_source_add(b->epoll, fd, RNL_SOURCE_BACK, 1 + (uint32_t)(g - b->guest), EPOLLIN) < 0) {
        rnl_channel_free(g->channel);
        g->channel = NULL;
    }
}

void rnl_back_look(struct rnl_back *b, uint64_t now)
{
    if (b->listens_ns != 0 && now >= b->listens_ns) {
        int e = rnl_source_add(b->epoll, b->fd, RNL_SOURCE_BACK, 0, EPOLLIN);
        b->listens_ns = e < 0 ? now + RNL_BACK_DEAF_MS * MS : 0;
    }
    for (unsigned i = 0; i < RNL_BACK_GUESTS; i++)
        if (b->guest[i].channel != NULL && now >= b->guest[i].since_ns + RNL_BACK_PATIENCE_MS * MS)
            rnl_channel_free(take(b, &b->guest[i]));
}

uint64_t rnl_back_deadline_ns(const struct rnl_back *b)
{
    uint64_t at = b->listens_ns != 0 ? b->listens_ns : UINT64_MAX;
    for (unsigned i = 0; i < RNL_BACK_GUESTS; i++)
        if (b->guest[i].channel != NULL && b->guest[i].since_ns + RNL_BACK_PATIENCE_MS * MS < at)
            at = b->guest[i].since_ns + RNL_BACK_PATIENCE_MS * MS;
    return at;
}

int rnl_back_event(struct rnl_back *b, uint32_t index, uint64_t now, struct rnl_back_come *out)
{
    if (index == 0 || index > RNL_BACK_GUESTS) {
        come(b, now);
        return 0;
    }
    struct rnl_back_guest *g = &b->guest[index - 1];
    enum rnl_channel_step step = RNL_CHANNEL_OPENS;
    while (g->channel != NULL && step == RNL_CHANNEL_OPENS)
        step = rnl_channel_step(g->channel);
    if (g->channel == NULL || step == RNL_CHANNEL_WAITS)
        return 0;
    struct rnl_channel *c = take(b, g);
    struct rnl_unpack u = {.at = c->text, .left = c->bytes};
    if (step != RNL_CHANNEL_MESSAGE || c->type != 'r' || c->bytes != COME_BYTES) {
        rnl_channel_free(c);
        return 0;
    }
    out->host = rnl_unpack_32(&u);
    out->taken = rnl_unpack_64(&u);
    out->channel = c;
    return 1;
}

int rnl_back_answer(struct rnl_channel *c, int yes, uint64_t taken)
{
    struct rnl_pack p = {.at = NULL};
    rnl_pack_64(&p, taken);
    int r = p.failed ? -1 : rnl_channel_send(c, yes ? 'r' : 'x', p.at, p.bytes);
    rnl_pack_free(&p);
    return r;
}

const char *rnl_back_addresses(const struct rnl_back_at *at, char *out, size_t room)
{
    size_t n = 0;
    out[0] = '\0';
    for (uint32_t i = 0; i < at->ways && i < ALL; i++) {
        char text[INET6_ADDRSTRLEN];
        int is4 = rnl_here_is_ipv4(at->ip[i]);
        if (inet_ntop(is4 ? AF_INET : AF_INET6, is4 ? at->ip[i] + 12 : at->ip[i], text, sizeof text) != NULL)
            n += (size_t)snprintf(out + n, n < room ? room - n : 0, "%s%s", i > 0 ? ", " : "", text);
        if (n >= room)
            break;
    }
    return out;
}
