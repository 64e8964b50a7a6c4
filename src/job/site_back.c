/* SPDX-License-Identifier: BSD-3-Clause
 *
 * site_back.c - an agent's way back to who started it: does what rejoin.h asks. From the moment that it has said how
 * far it got, the old connection is over for it. */
#include "job/back.h"
#include "job/site_in.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

static void close_try(struct rnl_launcher *l, struct rnl_way_back *w)
{
    if (w->fd < 0)
        return;
    epoll_ctl(l->epoll, EPOLL_CTL_DEL, w->fd, NULL);
    if (w->channel != NULL)
        rnl_channel_free(w->channel);
    else
        close(w->fd);
    w->channel = NULL;
    w->fd = -1;
}

void rnl_site_stop_tries(struct rnl_launcher *l)
{
    for (unsigned i = 0; i < RNL_BACK_WAYS_MAX; i++)
        close_try(l, &l->site->way_back[i]);
}

/* Connected, and nobody has said a word yet: most likely who listens is stopped. */
static int is_kept(const struct rnl_way_back *w)
{
    return w->channel != NULL && !w->channel->open && w->channel->got == 0;
}

static void end_round(struct rnl_launcher *l)
{
    for (unsigned i = 0; i < RNL_BACK_WAYS_MAX; i++)
        if (!is_kept(&l->site->way_back[i]))
            close_try(l, &l->site->way_back[i]);
}

static void failed(struct rnl_launcher *l, struct rnl_way_back *w, int e)
{
    close_try(l, w);
    rnl_rejoin_failed(&l->site->rejoin, e == ECONNREFUSED);
}

/* Not waited for. 0 or -errno. */
static int begin_try(struct rnl_launcher *l, uint32_t k, const uint8_t ip[16], uint16_t port)
{
    struct sockaddr_in6 to6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
    const int is4 = rnl_here_is_ipv4(ip);
    struct rnl_way_back *w = &l->site->way_back[k];
    memcpy(&to6.sin6_addr, ip, 16);
    memcpy(&to.sin_addr, ip + 12, 4);
    w->fd = socket(is4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (w->fd < 0)
        return -errno;
    int r = is4 ? connect(w->fd, (const struct sockaddr *)&to, sizeof to)
                : connect(w->fd, (const struct sockaddr *)&to6, sizeof to6);
    int e = r < 0 && errno != EINPROGRESS ? -errno : rnl_source_add(l->epoll, w->fd, RNL_SOURCE_WAY, k, EPOLLOUT);
    if (e < 0)
        close_try(l, w);
    return e;
}

/* Not at those that are ours as well, as those of bridges on every host are, nor of a family of which we have none. */
static int may_lead_there(const struct rnl_here *mine, const uint8_t ip[16])
{
    int family = 0;
    for (uint32_t i = 0; i < mine->ways; i++) {
        if (memcmp(mine->way[i].ip, ip, 16) == 0)
            return 0;
        family |= !rnl_here_is_loopback(mine->way[i].ip) && rnl_here_is_ipv4(mine->way[i].ip) == rnl_here_is_ipv4(ip);
    }
    return family;
}

/* Those that are connected wait on. */
static void begin_tries(struct rnl_launcher *l)
{
    struct rnl_site *s = l->site;
    const struct rnl_back_at *at = &s->brief.back;
    struct rnl_here *mine = calloc(1, sizeof *mine);
    uint32_t n = 0, met = 0, failed = 0, refused = 0;
    if (mine != NULL)
        (void)rnl_search_ways(mine);
    for (uint32_t k = 0; k < at->ways; k++) {
        int waits = is_kept(&s->way_back[k]);
        if (!waits && (mine == NULL || !may_lead_there(mine, at->ip[k])))
            continue;
        int e = waits ? 0 : begin_try(l, k, at->ip[k], at->port);
        n++;
        met += (uint32_t)waits;
        failed += e < 0;
        refused += e == -ECONNREFUSED;
    }
    free(mine);
    rnl_rejoin_tries(&s->rejoin, n);
    if (met > 0)
        rnl_rejoin_met(&s->rejoin);
    for (; failed > 0; failed--, refused -= refused > 0)
        rnl_rejoin_failed(&s->rejoin, refused > 0);
}

void rnl_site_cut(struct rnl_launcher *l, uint64_t now)
{
    struct rnl_trunk *t = &l->site->trunk;
    if (t->in >= 0)
        epoll_ctl(l->epoll, EPOLL_CTL_DEL, t->in, NULL);
    if (t->out >= 0)
        epoll_ctl(l->epoll, EPOLL_CTL_DEL, t->out, NULL);
    rnl_trunk_cut(t);
    rnl_rejoin_cut(&l->site->rejoin, now);
}

/* The first that is open: the others are no longer needed, and we say who we are. */
static void say(struct rnl_launcher *l, struct rnl_way_back *w, uint64_t now)
{
    struct rnl_site *s = l->site;
    struct rnl_pack p = {.at = NULL};
    rnl_site_cut(l, now);
    for (unsigned i = 0; i < RNL_BACK_WAYS_MAX; i++)
        if (&s->way_back[i] != w)
            close_try(l, &s->way_back[i]);
    rnl_rejoin_tries(&s->rejoin, 1);
    rnl_pack_32(&p, s->brief.host);
    rnl_pack_64(&p, rnl_trunk_taken(&s->trunk));
    if (p.failed || rnl_channel_send(w->channel, 'r', p.at, p.bytes) < 0)
        failed(l, w, 0);
    rnl_pack_free(&p);
}

static void go_on(struct rnl_launcher *l, struct rnl_way_back *w, uint64_t now)
{
    struct rnl_site *s = l->site;
    struct rnl_trunk *t = &s->trunk;
    struct rnl_unpack u = {.at = w->channel->text, .left = w->channel->bytes};
    struct rnl_channel *c = w->channel;
    int yes = c->type == 'r';
    uint64_t theirs = rnl_unpack_64(&u);
    epoll_ctl(l->epoll, EPOLL_CTL_DEL, c->fd, NULL);
    w->channel = NULL;
    w->fd = -1;
    if (!yes || u.bad) { /* we have been given up */
        rnl_channel_free(c);
        s->over = 1;
        return;
    }
    if (rnl_trunk_go_on(t, c, theirs) < 0) {
        s->over = 1;
        return;
    }
    if (t->ended || rnl_source_add(l->epoll, t->in, RNL_SOURCE_TRUNK, 0, EPOLLIN) < 0 ||
        rnl_source_add(l->epoll, t->out, RNL_SOURCE_TRUNK_ROOM, 0, EPOLLOUT | EPOLLET) < 0) {
        rnl_site_cut(l, now); /* resources are short: the next round tries again */
        rnl_rejoin_failed(&s->rejoin, 0);
        return;
    }
    s->heard_ns = now;
    rnl_rejoin_back(&s->rejoin, now);
}

void rnl_site_way_event(struct rnl_launcher *l, uint32_t index, uint64_t now)
{
    struct rnl_way_back *w = &l->site->way_back[index % RNL_BACK_WAYS_MAX];
    int e = 0;
    socklen_t n = sizeof e;
    if (w->fd < 0)
        return;
    if (w->channel == NULL) {
        if (getsockopt(w->fd, SOL_SOCKET, SO_ERROR, &e, &n) < 0 || e != 0) {
            failed(l, w, e);
            return;
        }
        rnl_rejoin_met(&l->site->rejoin);
        epoll_ctl(l->epoll, EPOLL_CTL_DEL, w->fd, NULL);
        (void)fcntl(w->fd, F_SETFL, 0); /* what we say before it is open fits */
        w->channel = rnl_channel_new(w->fd, 0, l->site->brief.back.key);
        if (w->channel == NULL)
            w->fd = -1;
        if (w->channel == NULL || rnl_source_add(l->epoll, w->fd, RNL_SOURCE_WAY, index, EPOLLIN) < 0)
            failed(l, w, 0);
        return;
    }
    enum rnl_channel_step step = rnl_channel_step(w->channel);
    if (step == RNL_CHANNEL_OPENS)
        say(l, w, now);
    else if (step == RNL_CHANNEL_MESSAGE)
        go_on(l, w, now);
    else if (step == RNL_CHANNEL_END)
        failed(l, w, 0);
}

void rnl_site_look_back(struct rnl_launcher *l, uint64_t now)
{
    struct rnl_site *s = l->site;
    if (!s->trunk.kept.keeps || s->over)
        return;
    if (s->trunk.ended && s->rejoin.cut_ns == 0)
        rnl_site_cut(l, now);
    if (s->stopped && s->rejoin.cut_ns == 0)
        rnl_rejoin_heard(&s->rejoin, now);
    switch (rnl_rejoin_look(&s->rejoin, now)) {
    case RNL_REJOIN_TRY:
        begin_tries(l);
        break;
    case RNL_REJOIN_PAUSE:
        end_round(l);
        break;
    case RNL_REJOIN_STOP:
        rnl_site_stop_tries(l);
        break;
    case RNL_REJOIN_GIVE_UP:
        s->over = 1;
        break;
    case RNL_REJOIN_WAIT:
        break;
    }
}
