/* SPDX-License-Identifier: BSD-3-Clause
 *
 * search.c - see search.h. */
#include "job/search.h"

#include "base/error.h"
#include "transport/udp/kernel.h"
#include "wire/key.h"

#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

enum { ASK = 1, ANSWER, CHOSEN, AGREED, ALIVE, WORDS, AT_TAG = 32, AT_BITS = 48, BATCH = 16, DATAGRAM_MOST = 2048 };
enum { BITS_MOST = RNL_JOB_RANKS_MAX / 8 };
#define MS ((uint64_t)1000 * 1000)
static const uint64_t first_ns = 15 * MS, most_ns = 400 * MS, give_up_ns = 7000 * MS;
static const uint64_t fresh_ns = 3000 * MS * RNL_SEARCH_ALIVE_EVERY_S;
static const unsigned char magic[4] = {'R', 'N', 'L', 'Q'};

struct way { /* an address of a peer */
    struct rnl_vain_way vain;
    uint8_t works; /* a long datagram came by it, or back */
};
struct peer {
    uint8_t found;   /* ip is where it is */
    uint8_t settled; /* and it knows where we are */
    uint8_t heard;
    uint8_t news; /* its bits have not been asked for */
    uint8_t dropped;
    uint64_t alive_ns, alive_count, heard_ns;
    unsigned char bits[BITS_MOST];
    uint8_t ip[16];
    uint32_t chosen; /* the way, if we ask */
    struct way *way;
};
struct rnl_search {
    uint32_t host, hosts;
    const struct rnl_here *here;
    struct rnl_socket *socket;
    unsigned char key[RNL_JOB_SECRET];
    uint64_t nonce, give_up_at, again_at, gap, now_ns, alive_count;
    uint8_t gave_up;
    void (*on_words)(void *arg, uint32_t other, const unsigned char *at);
    void *words_arg;
    unsigned char in[BATCH][DATAGRAM_MOST];
    struct peer peer[];
};

static int is_ours_to_ask(const struct rnl_search *p, uint32_t other)
{
    return p->host < other;
}

static uint32_t get32(const unsigned char *at)
{
    return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static void put32(unsigned char *at, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        at[i] = (unsigned char)(v >> 8 * i);
}

static void sign(const struct rnl_search *p, unsigned char *at, uint32_t bytes, unsigned char tag[16])
{
    memset(at + AT_TAG, 0, 16);
    rnl_keyed_hash(tag, p->key, "probe", at, bytes);
}

/* ---- what the kernel says ---- */

static struct way *way_to(struct rnl_search *p, const struct rnl_socket_addr *to)
{
    for (uint32_t h = 0; h < p->hosts; h++)
        for (uint32_t k = 0; p->here[h].probe_port == to->port && k < p->here[h].ways; k++)
            if (p->peer[h].way != NULL && memcmp(p->here[h].way[k].ip, to->ip, sizeof to->ip) == 0)
                return &p->peer[h].way[k];
    return NULL;
}

static void hear_errors(struct rnl_search *p)
{
    struct rnl_socket_error e;
    while (p->socket->ops->error(p->socket, &e) == 1) {
        struct way *w = way_to(p, &e.to);
        if (w == NULL)
            continue;
        w->vain.sys_errno = e.sys_errno;
        w->vain.from_us = e.from_us;
    }
}

static void say_bits(struct rnl_search *p, const struct rnl_socket_addr *to, uint32_t kind, uint32_t other,
                     uint32_t which, uint64_t nonce, const unsigned char *bits, size_t n, uint32_t bytes)
{
    unsigned char at[RNL_SEARCH_LONG] = {0}, tag[16];
    memcpy(at, magic, sizeof magic);
    put32(at + 4, kind);
    put32(at + 8, p->host);
    put32(at + 12, other);
    put32(at + 16, which);
    put32(at + 24, (uint32_t)nonce);
    put32(at + 28, (uint32_t)(nonce >> 32));
    if (n > 0)
        memcpy(at + AT_BITS, bits, n);
    sign(p, at, bytes, tag);
    memcpy(at + AT_TAG, tag, sizeof tag);
    const struct rnl_socket_out out = {.to = *to, .at = at, .bytes = bytes};
    struct rnl_socket_result result = {.stop = RNL_SOCKET_WENT};
    struct way *w = way_to(p, to);
    if (p->socket->ops->send(p->socket, &out, 1, &result) == 1 || w == NULL || result.stop == RNL_SOCKET_FULL)
        return;
    w->vain.sys_errno = result.sys_errno;
    w->vain.from_us = 1;
}

static void say(struct rnl_search *p, const struct rnl_socket_addr *to, uint32_t kind, uint32_t other, uint32_t which,
                uint64_t nonce, uint32_t bytes)
{
    say_bits(p, to, kind, other, which, nonce, NULL, 0, bytes);
}

static struct rnl_socket_addr addr_of(const struct rnl_search *p, uint32_t host, uint32_t way)
{
    struct rnl_socket_addr a = {.port = p->here[host].probe_port};
    memcpy(a.ip, p->here[host].way[way].ip, sizeof a.ip);
    return a;
}

/* ---- asking ---- */

static void ask(struct rnl_search *p, uint32_t other)
{
    struct peer *q = &p->peer[other];
    for (uint32_t k = 0; !q->found && k < p->here[other].ways; k++) {
        const struct rnl_socket_addr to = addr_of(p, other, k);
        say(p, &to, ASK, other, k, p->nonce, RNL_SEARCH_SHORT);
        say(p, &to, ASK, other, k, p->nonce, RNL_SEARCH_LONG);
    }
    if (q->found) {
        const struct rnl_socket_addr to = addr_of(p, other, q->chosen);
        say(p, &to, CHOSEN, other, q->chosen, p->nonce, RNL_SEARCH_SHORT);
    }
}

static void hear_answer(struct rnl_search *p, uint32_t other, const unsigned char *at, const struct rnl_socket_in *in)
{
    struct peer *q = &p->peer[other];
    uint32_t k = get32(at + 16);
    if (k >= p->here[other].ways)
        return;
    struct way *w = &q->way[k];
    const struct rnl_socket_addr asked = addr_of(p, other, k);
    w->works |= in->bytes == RNL_SEARCH_LONG && rnl_socket_addr_equal(&asked, &in->from);
    if (q->found)
        return;
    if (!rnl_socket_addr_equal(&asked, &in->from)) {
        w->vain.crooked = 1;
        return;
    }
    if (in->bytes < RNL_SEARCH_LONG) {
        w->vain.small = 1;
        return;
    }
    q->found = 1;
    q->chosen = k;
    memcpy(q->ip, asked.ip, sizeof q->ip);
    say(p, &in->from, CHOSEN, other, k, p->nonce, RNL_SEARCH_SHORT);
}

/* ---- further addresses ---- */

/* An ASK came by one of the addresses that the other host has told. */
static void came_by(struct rnl_search *p, uint32_t other, const struct rnl_socket_in *in)
{
    for (uint32_t k = 0; k < p->here[other].ways && in->bytes == RNL_SEARCH_LONG; k++)
        if (memcmp(p->here[other].way[k].ip, in->from.ip, 16) == 0)
            p->peer[other].way[k].works = 1;
}

/* All addresses of `other` that work: first the one that was chosen. *k: 0 at first. 1, or 0 = no more. */
static int next_ip(const struct rnl_search *p, uint32_t other, uint32_t *k, uint8_t ip[16])
{
    const struct peer *q = &p->peer[other];
    if ((*k)++ == 0) {
        memcpy(ip, q->ip, sizeof q->ip);
        return 1;
    }
    for (; *k - 2 < p->here[other].ways; (*k)++) {
        const uint8_t *at = p->here[other].way[*k - 2].ip;
        if (!q->way[*k - 2].works || memcmp(at, q->ip, sizeof q->ip) == 0)
            continue;
        memcpy(ip, at, sizeof q->ip);
        return 1;
    }
    return 0;
}

static int has_ip(const struct rnl_here *here, const uint8_t ip[16])
{
    for (uint32_t k = 0; k < here->ways; k++)
        if (memcmp(here->way[k].ip, ip, sizeof here->way[k].ip) == 0)
            return 1;
    return 0;
}

/* The interface of an address, or "". */
static const char *interface_of(const struct rnl_here *here, const uint8_t ip[16])
{
    for (uint32_t k = 0; k < here->ways; k++)
        if (memcmp(here->way[k].ip, ip, sizeof here->way[k].ip) == 0)
            return here->way[k].interface;
    return "";
}

unsigned rnl_search_further(const struct rnl_search *p, uint32_t other, uint8_t (*ip)[16], unsigned most)
{
    enum { WORKS_ELSEWHERE, WORKS, ELSEWHERE, ROUNDS };
    const struct rnl_here *here = &p->here[other], *own = &p->here[p->host];
    const struct peer *q = &p->peer[other];
    unsigned n = 0;
    for (int round = 0; round < ROUNDS && q->found; round++)
        for (uint32_t k = 0; k < here->ways && n < most; k++) {
            const uint8_t *at = here->way[k].ip;
            int taken = memcmp(at, q->ip, 16) == 0 || has_ip(own, at);
            int used = strcmp(interface_of(here, q->ip), here->way[k].interface) == 0;
            for (unsigned i = 0; i < n; i++) {
                taken |= memcmp(at, ip[i], 16) == 0;
                used |= strcmp(interface_of(here, ip[i]), here->way[k].interface) == 0;
            }
            if (taken || (round != WORKS && used) || (round != ELSEWHERE && !q->way[k].works))
                continue;
            memcpy(ip[n++], at, 16);
        }
    return n;
}

/* ---- who lives ---- */

void rnl_search_alive(struct rnl_search *p, const unsigned char *bits, size_t bytes, uint64_t now_ns)
{
    p->alive_count++;
    for (uint32_t h = 0; h < p->hosts; h++) {
        const struct peer *q = &p->peer[h];
        struct rnl_socket_addr to = {.port = p->here[h].probe_port};
        if (h == p->host || !q->found)
            continue;
        for (uint32_t k = 0; next_ip(p, h, &k, to.ip);)
            say_bits(p, &to, ALIVE, h, q->alive_ns != 0 && now_ns - q->alive_ns < fresh_ns, p->alive_count, bits,
                     bytes < BITS_MOST ? bytes : BITS_MOST,
                     bytes > RNL_SEARCH_SHORT - AT_BITS ? RNL_SEARCH_LONG : RNL_SEARCH_SHORT);
    }
}

/* The count tells what is older than what has come, so that nothing can be played back. */
static void hear_alive(struct rnl_search *p, struct peer *q, const unsigned char *at, uint64_t count, uint32_t bytes)
{
    if (count <= q->alive_count)
        return;
    q->alive_count = count;
    q->alive_ns = q->heard_ns = p->now_ns;
    if (!get32(at + 16))
        return;
    memset(q->bits, 0, sizeof q->bits);
    memcpy(q->bits, at + AT_BITS, bytes - AT_BITS < BITS_MOST ? bytes - AT_BITS : BITS_MOST);
    q->news = 1;
}

int rnl_search_vouched(struct rnl_search *p, uint32_t *host, unsigned char *bits, size_t bytes)
{
    for (uint32_t h = 0; h < p->hosts; h++)
        if (p->peer[h].news) {
            p->peer[h].news = 0;
            *host = h;
            memcpy(bits, p->peer[h].bits, bytes < BITS_MOST ? bytes : BITS_MOST);
            return 1;
        }
    return 0;
}

uint64_t rnl_search_heard_ns(const struct rnl_search *p, uint32_t other)
{
    return p->peer[other].heard_ns;
}

void rnl_search_drop(struct rnl_search *p, uint32_t other)
{
    p->peer[other].found = 0;
    p->peer[other].dropped = 1;
}

/* ---- words ---- */

void rnl_search_say_words(struct rnl_search *p, uint32_t other, const unsigned char *at, size_t bytes)
{
    struct rnl_socket_addr to = {.port = p->here[other].probe_port};
    int may = p->peer[other].found && bytes <= RNL_SEARCH_WORDS;
    for (uint32_t k = 0; may && next_ip(p, other, &k, to.ip);)
        say_bits(p, &to, WORDS, other, 0, 0, at, bytes, RNL_SEARCH_LONG);
}

void rnl_search_on_words(struct rnl_search *p, void (*hear)(void *arg, uint32_t other, const unsigned char *at),
                         void *arg)
{
    p->on_words = hear;
    p->words_arg = arg;
}

/* ---- what comes ---- */

static void take_in(struct rnl_search *p, unsigned char *at, const struct rnl_socket_in *in)
{
    unsigned char had[16], tag[16];
    if (in->cut || (in->bytes != RNL_SEARCH_SHORT && in->bytes != RNL_SEARCH_LONG) ||
        memcmp(at, magic, sizeof magic) != 0)
        return;
    memcpy(had, at + AT_TAG, sizeof had);
    sign(p, at, in->bytes, tag);
    uint32_t kind = get32(at + 4), other = get32(at + 8);
    uint64_t nonce = get32(at + 24) | (uint64_t)get32(at + 28) << 32;
    if (sodium_memcmp(had, tag, sizeof tag) != 0 || get32(at + 12) != p->host || other >= p->hosts || other == p->host)
        return;
    struct peer *q = &p->peer[other];
    if (q->dropped)
        return;
    q->heard = 1;
    if (kind == ALIVE) {
        hear_alive(p, q, at, nonce, in->bytes);
        return;
    }
    if (kind == WORDS) {
        if (in->bytes == RNL_SEARCH_LONG && p->on_words != NULL)
            p->on_words(p->words_arg, other, at + AT_BITS);
        return;
    }
    if (!is_ours_to_ask(p, other)) {
        if (kind == ASK) {
            came_by(p, other, in);
            say(p, &in->from, ANSWER, other, get32(at + 16), nonce, in->bytes);
        }
        if (kind != CHOSEN || (q->settled && memcmp(q->ip, in->from.ip, sizeof q->ip) != 0)) /* played back */
            return;
        memcpy(q->ip, in->from.ip, sizeof q->ip);
        q->found = q->settled = 1;
        say(p, &in->from, AGREED, other, get32(at + 16), nonce, RNL_SEARCH_SHORT);
        return;
    }
    if (nonce != p->nonce) /* an answer from another time */
        return;
    if (kind == ANSWER)
        hear_answer(p, other, at, in);
    else if (kind == AGREED && q->found)
        q->settled = 1;
}

static void hear(struct rnl_search *p)
{
    struct rnl_socket_in in[BATCH];
    for (int n = BATCH; n == BATCH;) {
        for (int i = 0; i < BATCH; i++)
            in[i] = (struct rnl_socket_in){.at = p->in[i], .room = DATAGRAM_MOST};
        n = p->socket->ops->recv(p->socket, in, BATCH);
        for (int i = 0; i < n; i++)
            if (in[i].segment == 0 || in[i].segment >= in[i].bytes) /* the socket was opened without merging */
                take_in(p, p->in[i], &in[i]);
    }
    hear_errors(p);
}

static int is_open(const struct rnl_search *p)
{
    for (uint32_t h = 0; h < p->hosts; h++)
        if (h != p->host && !p->peer[h].settled)
            return 1;
    return 0;
}

void rnl_search_step(struct rnl_search *p, uint64_t now_ns)
{
    p->now_ns = now_ns;
    hear(p);
    if (now_ns >= p->give_up_at)
        p->gave_up = 1;
    if (now_ns >= p->again_at && !rnl_search_done(p)) {
        for (uint32_t h = p->host + 1; h < p->hosts; h++)
            if (!p->peer[h].settled)
                ask(p, h);
        p->again_at = now_ns + p->gap;
        p->gap = 2 * p->gap < most_ns ? 2 * p->gap : most_ns;
    }
    (void)p->socket->ops->arm(p->socket);
    hear_errors(p); /* arming may have found some */
}

uint64_t rnl_search_deadline_ns(const struct rnl_search *p)
{
    if (rnl_search_done(p))
        return UINT64_MAX;
    return p->again_at < p->give_up_at ? p->again_at : p->give_up_at;
}

int rnl_search_done(const struct rnl_search *p)
{
    return p->gave_up || !is_open(p);
}

int rnl_search_way(const struct rnl_search *p, uint32_t other, uint8_t ip[16])
{
    memcpy(ip, p->peer[other].ip, 16);
    return p->peer[other].found;
}

int rnl_search_vain(const struct rnl_search *p, uint32_t other, struct rnl_vain *out)
{
    const struct peer *q = &p->peer[other];
    if (other == p->host || q->settled)
        return 0;
    *out = (struct rnl_vain){
        .other = other, .heard = q->heard, .asked = (uint32_t)is_ours_to_ask(p, other), .ways = p->here[other].ways};
    for (uint32_t k = 0; k < out->ways; k++)
        out->way[k] = q->way[k].vain;
    return 1;
}

/* ---- beginning and end ---- */

int rnl_search_adopt(int fd, struct rnl_socket **out)
{
    /* No connected sockets beside it: what came for them would wake nobody who waits at `fd`. */
    const struct rnl_kernel_options options = {.without = RNL_KERNEL_SEGMENT | RNL_KERNEL_MERGE | RNL_KERNEL_ECN |
                                                          RNL_KERNEL_CONNECT};
    return rnl_kernel_socket_adopt(fd, &options, out);
}

int rnl_search_new(uint32_t host, uint32_t hosts, const struct rnl_here *here,
                   const unsigned char key[RNL_JOB_KEY_BYTES], uint64_t nonce, struct rnl_socket *socket,
                   uint64_t now_ns, struct rnl_search **out)
{
    struct rnl_search *p = calloc(1, sizeof *p + hosts * sizeof p->peer[0]);
    if (p == NULL)
        goto no_memory;
    p->host = host;
    p->hosts = hosts;
    p->here = here;
    p->socket = socket;
    memcpy(p->key, key, sizeof p->key);
    p->nonce = nonce;
    p->again_at = now_ns;
    p->gap = first_ns;
    p->give_up_at = now_ns + give_up_ns;
    for (uint32_t h = 0; h < hosts; h++) {
        p->peer[h].way = calloc(here[h].ways + 1, sizeof *p->peer[h].way);
        if (p->peer[h].way == NULL)
            goto no_memory;
        for (uint32_t k = 0; k < here[h].ways; k++) {
            memcpy(p->peer[h].way[k].vain.ip, here[h].way[k].ip, sizeof here[h].way[k].ip);
            p->peer[h].way[k].vain.port = here[h].probe_port;
        }
    }
    *out = p;
    return 0;
no_memory:
    if (p != NULL)
        p->socket = NULL; /* it stays the caller's */
    rnl_search_free(p);
    return rnl_fail(RNL_ERR_NO_MEMORY, "no memory to look for %u hosts", hosts);
}

void rnl_search_free(struct rnl_search *p)
{
    if (p == NULL)
        return;
    for (uint32_t h = 0; h < p->hosts; h++)
        free(p->peer[h].way);
    if (p->socket != NULL)
        p->socket->ops->close(p->socket);
    explicit_bzero(p->key, sizeof p->key);
    free(p);
}

/* ---- our own addresses ---- */

static int usable(const struct ifaddrs *i, uint8_t ip[16])
{
    if (i->ifa_addr == NULL || !(i->ifa_flags & IFF_UP))
        return 0;
    if (i->ifa_addr->sa_family == AF_INET) {
        struct sockaddr_in in;
        memcpy(&in, i->ifa_addr, sizeof in);
        memset(ip, 0, 10);
        ip[10] = ip[11] = 0xff;
        memcpy(ip + 12, &in.sin_addr, 4);
        return 1;
    }
    if (i->ifa_addr->sa_family != AF_INET6)
        return 0;
    struct sockaddr_in6 in6;
    memcpy(&in6, i->ifa_addr, sizeof in6);
    memcpy(ip, &in6.sin6_addr, 16);
    return !IN6_IS_ADDR_LINKLOCAL(&in6.sin6_addr); /* means nothing on another host */
}

int rnl_search_ways(struct rnl_here *here)
{
    struct ifaddrs *all;
    here->kernel = rnl_here_kernel();
    here->ways = 0;
    if (getifaddrs(&all) < 0)
        return -errno;
    for (unsigned loopback = 0; loopback < 2; loopback++)
        for (const struct ifaddrs *i = all; i != NULL && here->ways < RNL_HOST_WAYS_MAX; i = i->ifa_next) {
            uint8_t ip[16];
            if (!!(i->ifa_flags & IFF_LOOPBACK) != loopback || !usable(i, ip))
                continue;
            memcpy(here->way[here->ways].ip, ip, sizeof ip);
            strncpy(here->way[here->ways].interface, i->ifa_name, sizeof here->way[0].interface - 1);
            here->ways++;
        }
    freeifaddrs(all);
    return 0;
}
