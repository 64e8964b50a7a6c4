/* SPDX-License-Identifier: BSD-3-Clause
 *
 * site.c - the agent of one host of a job on several, at work: a launcher (launch.c) that decides nothing. It starts
 * the ranks of this host, serves them, and says everything to who started it, at its standard input and output; when
 * that is gone, it kills them and ends. What is for or from hosts behind it (branch.h) it passes on. How it begins and
 * ends is in site_start.c. */
#include "job/site_in.h"

#include "base/env.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { OUTPUT_BYTES = 32768 };
#define MS ((uint64_t)1000 * 1000)
static const uint64_t silent_ns = 600000 * MS; /* a launcher that says nothing for so long is gone */

/* ---- saying ---- */

static void speak(struct rnl_site *s)
{
    if (s->said[0] != '\0')
        rnl_trunk_send(&s->trunk, RNL_FRAME_SAY, s->said, strlen(s->said));
    s->said[0] = '\0';
}

/* Kept for the rest of this turn of the loop: it may be why this host cannot go on. */
void rnl_site_say(struct rnl_launcher *l, const char *line)
{
    struct rnl_site *s = l->site;
    speak(s);
    snprintf(s->said, sizeof s->said, "%s", line);
}

void rnl_site_fail(struct rnl_site *s, int status)
{
    struct rnl_pack p = {.at = NULL};
    rnl_pack_32(&p, (uint32_t)status);
    rnl_pack_bytes(&p, s->said, strlen(s->said));
    rnl_trunk_send_pack(&s->trunk, RNL_FRAME_FAIL, &p);
    rnl_pack_free(&p);
    s->said[0] = '\0';
}

void rnl_site_exited(struct rnl_launcher *l, uint32_t rank)
{
    const struct rnl_proc *p = &l->proc[rank];
    struct rnl_pack pack = {.at = NULL};
    rnl_pack_32(&pack, rank);
    rnl_pack_32(&pack, (uint32_t)p->signal);
    rnl_pack_32(&pack, (uint32_t)p->status);
    rnl_pack_32(&pack, (p->broken ? RNL_EXIT_BROKEN : 0u) | (p->unserved ? RNL_EXIT_UNSERVED : 0u));
    rnl_trunk_send_pack(&l->site->trunk, RNL_FRAME_EXITED, &pack);
    rnl_pack_free(&pack);
}

static void tell(void *arg, const struct rnl_word *w)
{
    struct rnl_launcher *l = arg;
    struct rnl_pack p = {.at = NULL};
    rnl_word_pack(&p, w);
    rnl_trunk_send_pack(&l->site->trunk, RNL_FRAME_WORD, &p);
    rnl_pack_free(&p);
}

ssize_t rnl_site_output(void *arg, int which, const char *data, size_t n)
{
    struct rnl_site *s = arg;
    uint64_t *room = &s->room[which - 1];
    struct rnl_pack p = {.at = NULL};
    if (s->nobody[which - 1])
        return -1;
    if (n > OUTPUT_BYTES)
        n = OUTPUT_BYTES;
    if (n > *room)
        n = (size_t)*room;
    if (n == 0)
        return 0;
    rnl_pack_32(&p, (uint32_t)which);
    rnl_pack_bytes(&p, data, n);
    rnl_trunk_send_pack(&s->trunk, RNL_FRAME_OUTPUT, &p);
    rnl_pack_free(&p);
    *room -= n;
    return (ssize_t)n;
}

/* ---- rank 0's input ---- */

static void say_taken(struct rnl_site *s, uint64_t n)
{
    struct rnl_pack p = {.at = NULL};
    rnl_pack_64(&p, n);
    rnl_trunk_send_pack(&s->trunk, RNL_FRAME_TAKEN, &p);
    rnl_pack_free(&p);
}

static void end_input(struct rnl_launcher *l)
{
    struct rnl_site *s = l->site;
    if (s->input < 0)
        return;
    epoll_ctl(l->epoll, EPOLL_CTL_DEL, s->input, NULL);
    close(s->input);
    s->input = -1;
    rnl_pack_free(&s->given);
    if (!s->input_ends)
        say_taken(s, 0);
}

static void pass_input(struct rnl_launcher *l)
{
    struct rnl_site *s = l->site;
    size_t before = s->passed;
    if (s->input < 0)
        return;
    if (l->proc[0].finished) {
        end_input(l);
        return;
    }
    while (s->passed < s->given.bytes) {
        ssize_t n = write(s->input, s->given.at + s->passed, s->given.bytes - s->passed);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            break;
        if (n < 0) {
            end_input(l);
            return;
        }
        s->passed += (size_t)n;
    }
    if (s->passed > before && !s->input_ends)
        say_taken(s, s->passed - before);
    if (s->passed == s->given.bytes) {
        s->passed = s->given.bytes = 0;
        if (s->input_ends)
            end_input(l);
    }
}

static void hear_input(struct rnl_launcher *l, const struct rnl_frame *f)
{
    struct rnl_site *s = l->site;
    if (l->first != 0 || (s->running && s->input < 0)) /* before the ranks run, it is kept */
        return;
    if (f->bytes == 0)
        s->input_ends = 1;
    rnl_pack_bytes(&s->given, f->body, f->bytes);
    pass_input(l);
}

/* ---- the other hosts ---- */

static int hear_hosts(struct rnl_launcher *l, const struct rnl_frame *f)
{
    struct rnl_site *s = l->site;
    struct rnl_unpack u = {.at = f->body, .left = f->bytes};
    struct rnl_socket *socket;
    uint64_t nonce = rnl_host_random(NULL);
    if (s->probe != NULL)
        return -1;
    rnl_here_free(&s->here[s->brief.host]);
    for (uint32_t i = 0; i < s->brief.hosts; i++)
        if (rnl_here_unpack(&u, s->brief.hosts, s->brief.at, &s->here[i]) < 0 || s->here[i].host != i)
            return -1;
    int r = rnl_search_adopt(s->probe_fd, &socket);
    if (r == 0) {
        r = rnl_search_new(s->brief.host, s->brief.hosts, s->here, s->brief.key, nonce, socket, rnl_host_now_ns(NULL),
                           &s->probe);
        if (r < 0)
            socket->ops->close(socket);
    }
    if (r == 0 && rnl_source_add(l->epoll, s->probe_fd, RNL_SOURCE_PROBE, 0, EPOLLIN) < 0)
        r = rnl_fail_errno(RNL_ERR_SYSTEM, errno, "a socket cannot be watched");
    if (r < 0) {
        rnl_launch_say(l, "%s", rnl_last_error()->text);
        rnl_site_fail(s, RNL_EXIT_SYSTEM);
    }
    return 0;
}

static void look_at_probe(struct rnl_launcher *l, uint64_t now)
{
    struct rnl_site *s = l->site;
    struct rnl_pack p = {.at = NULL}, all = {.at = NULL};
    struct rnl_vain vain;
    uint32_t n = 0;
    if (s->probe == NULL)
        return;
    rnl_search_step(s->probe, now);
    if (s->probed || !rnl_search_done(s->probe))
        return;
    s->probed = 1;
    for (uint32_t i = 0; i < s->brief.hosts; i++)
        if (rnl_search_vain(s->probe, i, &vain)) {
            rnl_vain_pack(&p, &vain);
            n++;
        }
    rnl_pack_32(&all, n);
    rnl_pack_bytes(&all, p.at, p.bytes);
    all.failed |= p.failed;
    rnl_trunk_send_pack(&s->trunk, RNL_FRAME_PROBED, &all);
    rnl_pack_free(&p);
    rnl_pack_free(&all);
}

/* ---- the ranks ---- */

/* Where datagrams between ranks of this host go, if they are to be exchanged. */
static void own_way(const struct rnl_site *s, uint8_t ip[16])
{
    const struct rnl_here *here = &s->here[s->brief.host];
    memset(ip, 0, 16);
    if (here->ways > 0)
        memcpy(ip, here->way[here->ways - 1].ip, 16); /* the loopback's, if there is one */
}

static void make_places(const struct rnl_site *s, struct rnl_place_rank *places)
{
    for (uint32_t h = 0; h < s->brief.hosts; h++) {
        const struct rnl_host *at = &s->brief.at[h];
        uint8_t ip[16], further[RNL_PLACE_FURTHER][16] = {{0}};
        if (h == s->brief.host) {
            own_way(s, ip);
        } else {
            (void)rnl_search_way(s->probe, h, ip);
            (void)rnl_search_further(s->probe, h, further, RNL_PLACE_FURTHER);
        }
        for (uint32_t i = 0; i < at->count; i++) {
            struct rnl_place_rank *p = &places[at->first + i];
            memset(p, 0, sizeof *p);
            p->host = s->job.datagrams ? at->first + i : h;
            p->same_kernel = rnl_here_together(&s->here[s->brief.host], &s->here[h]);
            p->incarnation = at->first + i + 1;
            if (h == s->brief.host && !s->job.datagrams)
                continue;
            memcpy(p->at.ip, ip, sizeof ip);
            memcpy(p->further, further, sizeof further);
            p->at.port = s->here[h].port[i];
        }
    }
}

static int make_input(struct rnl_launcher *l)
{
    struct rnl_site *s = l->site;
    int ends[2];
    if (l->first != 0)
        return 0;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    s->how.in = ends[0];
    s->input = ends[1];
    if (fcntl(ends[1], F_SETFL, O_NONBLOCK) < 0)
        return -errno;
    return rnl_source_add(l->epoll, ends[1], RNL_SOURCE_INPUT_ROOM, 0, EPOLLOUT | EPOLLET);
}

static void go(struct rnl_launcher *l)
{
    struct rnl_site *s = l->site;
    struct rnl_agent_options opt = {.size = l->job->size,
                                    .keep_going = l->job->keep_going,
                                    .tell = tell,
                                    .arg = l,
                                    .first = l->first,
                                    .count = l->count,
                                    .sockets = s->sockets};
    struct rnl_place_rank *places = calloc(l->job->size, sizeof *places);
    int e = places == NULL ? -ENOMEM : make_input(l);
    s->running = 1;
    memcpy(opt.host, l->host, sizeof opt.host);
    memcpy(opt.key, s->brief.key, sizeof opt.key);
    if (e == 0) {
        make_places(s, places);
        opt.places = places;
        if (rnl_launch_make_agent(l, &opt) < 0) {
            e = -ENOMEM;
        } else {
            for (uint32_t i = 0; i < l->count; i++)
                s->sockets[i] = -1;
            e = rnl_source_add(l->epoll, rnl_agent_fd(l->agent), RNL_SOURCE_AGENT, 0, EPOLLIN);
        }
    }
    free(places);
    explicit_bzero(&opt, sizeof opt);
    if (e < 0) {
        rnl_launch_say(l, "cannot start its ranks: %s", strerror(-e));
        rnl_site_fail(s, RNL_EXIT_SYSTEM);
        return;
    }
    if (rnl_launch_start(l, &s->how) < 0)
        rnl_site_fail(s, RNL_EXIT_SYSTEM);
}

/* Tells the other hosts which ranks live, and passes on to ours what others told. */
static void vouch(struct rnl_launcher *l, uint64_t now)
{
    struct rnl_site *s = l->site;
    unsigned char bits[RNL_JOB_RANKS_MAX / 8];
    uint32_t host;
    if (s->datagram) {
        s->datagram = 0;
        rnl_search_step(s->probe, now);
        while (rnl_search_vouched(s->probe, &host, bits, sizeof bits))
            for (uint32_t i = 0; i < s->brief.at[host].count; i++)
                if (bits[i / 8] >> i % 8 & 1)
                    rnl_agent_vouch(l->agent, s->brief.at[host].first + i, now);
    }
    if (now < s->alive_at)
        return;
    s->alive_at = now + RNL_SEARCH_ALIVE_EVERY_S * 1000 * MS;
    memset(bits, 0, sizeof bits);
    for (uint32_t i = 0; i < l->count; i++)
        if (rnl_agent_runs(l->agent, l->first + i, now)) {
            bits[i / 8] |= (unsigned char)(1u << i % 8);
            rnl_agent_vouch(l->agent, l->first + i, now); /* they may exchange datagrams, too */
        }
    rnl_search_alive(s->probe, bits, (l->count + 7) / 8, now);
}

/* Ranks of which all has been said but that they have ended: their output goes first. */
static void say_ends(struct rnl_launcher *l)
{
    struct rnl_site *s = l->site;
    if (!s->running || s->done || rnl_console_waiting(l->console))
        return;
    for (uint32_t i = 0; i < l->count; i++) {
        uint32_t rank = l->first + i;
        if (!l->proc[rank].finished || s->said_end[i])
            continue;
        struct rnl_pack p = {.at = NULL};
        rnl_pack_32(&p, rank);
        rnl_trunk_send_pack(&s->trunk, RNL_FRAME_FINISHED, &p);
        rnl_pack_free(&p);
        s->said_end[i] = 1;
        s->told++;
    }
    if (s->told == l->count) {
        struct rnl_pack p = {.at = NULL};
        rnl_pack_32(&p, s->brief.host);
        rnl_trunk_send_pack(&s->trunk, RNL_FRAME_DONE, &p);
        rnl_pack_free(&p);
        s->done = 1;
    }
}

/* ---- what the launcher says ---- */

static void hear_signal(struct rnl_launcher *l, int signal)
{
    l->site->stopped = signal == SIGTSTP || (l->site->stopped && signal != SIGCONT);
    if (signal == SIGKILL)
        l->ending = 1; /* what they leave behind is not waited for */
    rnl_launch_signal(l, signal);
}

static void drop(struct rnl_launcher *l, uint32_t host)
{
    struct rnl_branch *b = rnl_branch_of(l->site->branch, l->site->branches, host);
    if (b != NULL && b->host == host)
        rnl_branch_lose(l, b);
}

static int hear(struct rnl_launcher *l, const struct rnl_frame *f, uint64_t now)
{
    struct rnl_site *s = l->site;
    struct rnl_unpack u = {.at = f->body, .left = f->bytes};
    struct rnl_word w;
    uint32_t n;
    uint64_t bytes;
    switch (f->kind) {
    case RNL_FRAME_HOSTS:
        return hear_hosts(l, f);
    case RNL_FRAME_GO:
        if (s->probe == NULL || !s->probed || s->go)
            return -1;
        s->go = 1; /* in its own time: starting ranks takes turns of the loop that we are called from */
        return 0;
    case RNL_FRAME_SIGNAL:
        n = rnl_unpack_32(&u);
        if (u.bad || n < 1 || n > 64)
            return -1;
        hear_signal(l, (int)n);
        return 0;
    case RNL_FRAME_WORD:
        rnl_word_unpack(&u, &w);
        if (u.bad)
            return -1;
        return l->agent == NULL ? 0 : rnl_agent_word(l->agent, &w, now);
    case RNL_FRAME_INPUT:
        hear_input(l, f);
        return 0;
    case RNL_FRAME_ROOM:
        n = rnl_unpack_32(&u);
        bytes = rnl_unpack_64(&u);
        if (u.bad || n < 1 || n > 2)
            return -1;
        s->room[n - 1] += bytes;
        s->nobody[n - 1] |= bytes == 0;
        return 0;
    case RNL_FRAME_PING:
        rnl_trunk_send(&s->trunk, RNL_FRAME_PONG, NULL, 0);
        return 0;
    case RNL_FRAME_DROP:
        drop(l, rnl_unpack_32(&u));
        return u.bad ? -1 : 0;
    case RNL_FRAME_END:
        s->over = 1;
        return 0;
    }
    return -1;
}

/* For us, for all, or for a host behind us. */
static int take(struct rnl_launcher *l, const struct rnl_frame *f, uint64_t now)
{
    struct rnl_site *s = l->site;
    if (f->host == RNL_FRAME_TO_ALL)
        rnl_branches_send(s->branch, s->branches, (enum rnl_frame_kind)f->kind, f->body, f->bytes);
    if (f->host == RNL_FRAME_TO_ALL || f->host == s->brief.host)
        return hear(l, f, now);
    struct rnl_pack p = {.at = (unsigned char *)(uintptr_t)f->body, .bytes = f->bytes};
    if (rnl_branch_of(s->branch, s->branches, f->host) == NULL)
        return -1;
    rnl_branches_send_to(s->branch, s->branches, f->host, (enum rnl_frame_kind)f->kind, &p);
    return 0;
}

/* ---- those behind us ---- */

static void read_branch(struct rnl_launcher *l, struct rnl_branch *b, uint64_t now)
{
    struct rnl_site *s = l->site;
    struct rnl_frame f;
    if (rnl_branch_read(l, b, now)) {
        struct rnl_brief brief = s->brief;
        rnl_branch_may_return(l, b, &brief.back);
        struct rnl_pack p = {.at = NULL};
        brief.host = b->host;
        rnl_brief_pack(&p, &brief);
        rnl_branches_send_to(b, 1, b->host, RNL_FRAME_JOB, &p);
        rnl_pack_free(&p);
        explicit_bzero(&brief, sizeof brief);
    }
    while (rnl_branch_next(b, &f))
        rnl_trunk_send_to(&s->trunk, (enum rnl_frame_kind)f.kind, f.host, f.body, f.bytes);
}

static void look_after_branches(struct rnl_launcher *l, uint64_t now)
{
    struct rnl_site *s = l->site;
    char why[400];
    for (uint32_t k = 0; k < s->branches; k++)
        if (rnl_branch_gone(l, &s->branch[k], now, why, sizeof why))
            rnl_trunk_send_to(&s->trunk, RNL_FRAME_LOST, s->branch[k].host, why, strlen(why));
}

/* ---- the loop's parts ---- */

/* What comes between GO and the start of the ranks waits for that: a death that is told meanwhile is for them. */
static void take_all(struct rnl_launcher *l, uint64_t now)
{
    struct rnl_site *s = l->site;
    struct rnl_frame f;
    while (!s->over && s->go == s->running && rnl_trunk_next(&s->trunk, &f))
        if (take(l, &f, now) < 0)
            s->over = 1;
}

void rnl_site_event(struct rnl_launcher *l, enum rnl_source source, uint32_t index, uint64_t now)
{
    struct rnl_site *s = l->site;
    if (source == RNL_SOURCE_BRANCH)
        read_branch(l, &s->branch[index], now);
    else if (source == RNL_SOURCE_BRANCH_ROOM)
        rnl_trunk_flush(&s->branch[index].trunk);
    else if (source == RNL_SOURCE_BRANCH_ERROR)
        rnl_branch_hear_error(l, &s->branch[index]);
    s->datagram |= source == RNL_SOURCE_PROBE;
    if (source == RNL_SOURCE_BACK)
        rnl_branches_back(l, s->branch, s->branches, index, now);
    if (source == RNL_SOURCE_WAY)
        rnl_site_way_event(l, index, now);
    if (source == RNL_SOURCE_TRUNK_ROOM)
        rnl_trunk_flush(&s->trunk);
    if (source != RNL_SOURCE_TRUNK)
        return;
    rnl_trunk_read(&s->trunk);
    s->heard_ns = now;
    rnl_rejoin_heard(&s->rejoin, now);
    take_all(l, now);
    if (s->trunk.ended && !rnl_trunk_may_go_on(&s->trunk))
        s->over = 1;
    else if (s->trunk.ended && !s->over)
        rnl_site_cut(l, now);
}

void rnl_site_work(struct rnl_launcher *l, uint64_t now)
{
    struct rnl_site *s = l->site;
    speak(s);
    if (s->go && !s->running) {
        go(l);
        take_all(l, now);
    }
    if (!s->running)
        look_at_probe(l, now);
    else if (l->agent != NULL)
        vouch(l, now);
    pass_input(l);
    say_ends(l);
    look_after_branches(l, now);
    s->worked_ns = now;
    rnl_site_look_back(l, now);
    if ((s->trunk.ended && !rnl_trunk_may_go_on(&s->trunk)) || (now >= s->heard_ns + silent_ns && !s->stopped))
        s->over = 1;
}

uint64_t rnl_site_deadline_ns(const struct rnl_launcher *l)
{
    const struct rnl_site *s = l->site;
    uint64_t at = s->heard_ns + silent_ns,
             probe = s->probe == NULL || s->running ? UINT64_MAX : rnl_search_deadline_ns(s->probe);
    if (s->running && s->alive_at < at)
        at = s->alive_at;
    if (rnl_branches_ending(s->branch, s->branches) && s->worked_ns + 5 * MS < at)
        at = s->worked_ns + 5 * MS; /* how it ended is to be known soon */
    if (s->trunk.kept.keeps && rnl_rejoin_deadline_ns(&s->rejoin) < at)
        at = rnl_rejoin_deadline_ns(&s->rejoin);
    return probe < at ? probe : at;
}

int rnl_site_busy(const struct rnl_launcher *l)
{
    return !l->site->over;
}
