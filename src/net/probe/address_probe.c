/* SPDX-License-Identifier: BSD-3-Clause
 *
 * address_probe.c - the probes between hosts and the liveness attestations of address_probe.h. */
#include "net/probe/address_probe.h"

#include "base/bug.h"
#include "base/error.h"
#include "base/secret.h"
#include "net/socket/kernel.h"
#include "net/wire/bytes.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

enum { REQUEST = 1, REPLY, CHOSEN, AGREED, ALIVE, MEASURE, ECHO, AT_TAG = 32, AT_BITS = 48, BATCH = 16 };
enum { DATAGRAM_MOST = 2048, DATAGRAM_MOST_MEASURED = 9216 };
enum { BITS_MOST = RNL_JOB_RANKS_MAX / 8 };
#define MS ((uint64_t)1000 * 1000)
static const uint64_t first_ns = 15 * MS, most_ns = 400 * MS;
static const uint64_t fresh_ns = 3000 * MS * RNL_HOST_PROBE_ATTEST_EVERY_S;
static const unsigned char magic[4] = {'R', 'N', 'L', 'Q'};

struct measured { /* both directions of the path to a peer */
    struct rnl_path_sender to;
    struct rnl_path_receiver from;
    bool begun;
};
struct peer {
    bool found;  /* ip is where it is */
    bool agreed; /* and it knows where we are */
    bool heard;
    bool news; /* its bits have not been asked for */
    uint64_t alive_ns, alive_count;
    uint64_t attested_ns; /* when both directions last worked, as far as its last ALIVE knows */
    unsigned char bits[BITS_MOST];
    uint8_t ip[16];
    uint32_t chosen;                /* the way, if we send probes */
    struct rnl_probe_attempt *path; /* its addresses */
    struct measured *measured;
};
struct rnl_host_probe {
    uint32_t host, hosts;
    const struct rnl_host_info *info;
    struct rnl_socket *socket;
    unsigned char *key; /* rnl_secret_new */
    uint64_t nonce, give_up_at, again_at, gap, now_ns, alive_count;
    bool gave_up, measures;
    uint32_t in_bytes;
    unsigned char *in; /* BATCH of in_bytes each */
    struct peer peer[];
};

static bool is_ours_to_probe(const struct rnl_host_probe *p, uint32_t other)
{
    return p->host < other;
}

static void sign(const struct rnl_host_probe *p, unsigned char *at, uint32_t bytes, unsigned char tag[16])
{
    memset(at + AT_TAG, 0, 16);
    rnl_keyed_hash(tag, p->key, "probe", at, bytes);
}

/* ---- what the kernel says ---- */

static struct rnl_probe_attempt *path_to(struct rnl_host_probe *p, const struct rnl_socket_addr *to)
{
    for (uint32_t h = 0; h < p->hosts; h++)
        for (uint32_t k = 0; p->info[h].probe_port == to->port && k < p->info[h].addresses; k++)
            if (p->peer[h].path && memcmp(p->info[h].address[k].ip, to->ip, sizeof to->ip) == 0)
                return &p->peer[h].path[k];
    return NULL;
}

static void receive_errors(struct rnl_host_probe *p)
{
    struct rnl_socket_error e;
    while (p->socket->ops->error(p->socket, &e) == 1) {
        struct rnl_probe_attempt *w = path_to(p, &e.to);
        if (!w)
            continue;
        w->sys_errno = e.sys_errno;
        w->from_own_kernel = e.from_us;
    }
}

/* Returns why it was not sent; 0 = it was. */
static uint32_t send_bits(struct rnl_host_probe *p, const struct rnl_socket_addr *to, uint32_t kind, uint32_t other,
                          uint32_t which, uint64_t nonce, const unsigned char *bits, size_t n, uint32_t bytes)
{
    unsigned char at[DATAGRAM_MOST_MEASURED], tag[16];
    memset(at, 0, bytes);
    memcpy(at, magic, sizeof magic);
    rnl_put32(at + 4, kind);
    rnl_put32(at + 8, p->host);
    rnl_put32(at + 12, other);
    rnl_put32(at + 16, which);
    rnl_put64(at + 24, nonce);
    if (n > 0)
        memcpy(at + AT_BITS, bits, n);
    sign(p, at, bytes, tag);
    memcpy(at + AT_TAG, tag, sizeof tag);
    const struct rnl_socket_out out = {.to = *to, .at = at, .bytes = bytes};
    struct rnl_socket_result result = {.stop = RNL_SOCKET_WENT};
    struct rnl_probe_attempt *w = path_to(p, to);
    if (p->socket->ops->send(p->socket, &out, 1, &result) == 1)
        return 0;
    if (w && result.stop != RNL_SOCKET_FULL && kind != MEASURE) {
        w->sys_errno = result.sys_errno;
        w->from_own_kernel = true;
    }
    return result.stop;
}

static void send_bare(struct rnl_host_probe *p, const struct rnl_socket_addr *to, uint32_t kind, uint32_t other,
                      uint32_t which, uint64_t nonce, uint32_t bytes)
{
    (void)send_bits(p, to, kind, other, which, nonce, NULL, 0, bytes);
}

static struct rnl_socket_addr addr_of(const struct rnl_host_probe *p, uint32_t host, uint32_t way)
{
    struct rnl_socket_addr a = {.port = p->info[host].probe_port};
    memcpy(a.ip, p->info[host].address[way].ip, sizeof a.ip);
    return a;
}

/* ---- asking ---- */

static void send_probe(struct rnl_host_probe *p, uint32_t other)
{
    struct peer *q = &p->peer[other];
    for (uint32_t k = 0; k < p->info[other].addresses; k++) {
        const struct rnl_socket_addr to = addr_of(p, other, k);
        if (q->found && (q->path[k].works || !p->measures))
            continue;
        send_bare(p, &to, REQUEST, other, k, p->nonce, RNL_HOST_PROBE_SHORT_BYTES);
        send_bare(p, &to, REQUEST, other, k, p->nonce, RNL_HOST_PROBE_LONG_BYTES);
    }
    if (q->found && !q->agreed) {
        const struct rnl_socket_addr to = addr_of(p, other, q->chosen);
        send_bare(p, &to, CHOSEN, other, q->chosen, p->nonce, RNL_HOST_PROBE_SHORT_BYTES);
    }
}

static void receive_reply(struct rnl_host_probe *p, uint32_t other, const unsigned char *at,
                          const struct rnl_socket_in *in)
{
    struct peer *q = &p->peer[other];
    uint32_t k = rnl_get32(at + 16);
    if (k >= p->info[other].addresses)
        return;
    struct rnl_probe_attempt *w = &q->path[k];
    const struct rnl_socket_addr asked = addr_of(p, other, k);
    w->works |= in->bytes == RNL_HOST_PROBE_LONG_BYTES && rnl_socket_addr_equal(&asked, &in->from);
    if (!rnl_socket_addr_equal(&asked, &in->from))
        w->other_source = true;
    else if (in->bytes < RNL_HOST_PROBE_LONG_BYTES)
        w->only_short = true;
    if (q->found || !w->works)
        return;
    q->found = true;
    q->chosen = k;
    memcpy(q->ip, asked.ip, sizeof q->ip);
    send_bare(p, &in->from, CHOSEN, other, k, p->nonce, RNL_HOST_PROBE_SHORT_BYTES);
}

/* ---- further addresses ---- */

/* A REQUEST came by one of the addresses that the other host has told. */
static void came_by(struct rnl_host_probe *p, uint32_t other, const struct rnl_socket_in *in)
{
    for (uint32_t k = 0; k < p->info[other].addresses && in->bytes == RNL_HOST_PROBE_LONG_BYTES; k++)
        if (memcmp(p->info[other].address[k].ip, in->from.ip, 16) == 0)
            p->peer[other].path[k].works = true;
}

/* All addresses of `other` that work: first the one that was chosen. *k: 0 at first. 1, or 0 = no more. */
static bool next_ip(const struct rnl_host_probe *p, uint32_t other, uint32_t *k, uint8_t ip[16])
{
    const struct peer *q = &p->peer[other];
    if ((*k)++ == 0) {
        memcpy(ip, q->ip, sizeof q->ip);
        return true;
    }
    for (; *k - 2 < p->info[other].addresses; (*k)++) {
        const uint8_t *at = p->info[other].address[*k - 2].ip;
        if (!q->path[*k - 2].works || memcmp(at, q->ip, sizeof q->ip) == 0)
            continue;
        memcpy(ip, at, sizeof q->ip);
        return true;
    }
    return false;
}

static bool has_ip(const struct rnl_host_info *info, const uint8_t ip[16])
{
    for (uint32_t k = 0; k < info->addresses; k++)
        if (memcmp(info->address[k].ip, ip, sizeof info->address[k].ip) == 0)
            return true;
    return false;
}

/* The interface of an address, or "". */
static const char *interface_of(const struct rnl_host_info *info, const uint8_t ip[16])
{
    for (uint32_t k = 0; k < info->addresses; k++)
        if (memcmp(info->address[k].ip, ip, sizeof info->address[k].ip) == 0)
            return info->address[k].interface;
    return "";
}

unsigned rnl_host_probe_alternates(const struct rnl_host_probe *p, uint32_t other, uint8_t (*ip)[16], unsigned max)
{
    enum { WORKS_ELSEWHERE, WORKS, ELSEWHERE, ROUNDS };
    const struct rnl_host_info *info = &p->info[other], *own = &p->info[p->host];
    const struct peer *q = &p->peer[other];
    unsigned n = 0;
    for (int round = 0; round < ROUNDS && q->found; round++)
        for (uint32_t k = 0; k < info->addresses && n < max; k++) {
            const uint8_t *at = info->address[k].ip;
            int taken = memcmp(at, q->ip, 16) == 0 || has_ip(own, at);
            int used = strcmp(interface_of(info, q->ip), info->address[k].interface) == 0;
            for (unsigned i = 0; i < n; i++) {
                taken |= memcmp(at, ip[i], 16) == 0;
                used |= strcmp(interface_of(info, ip[i]), info->address[k].interface) == 0;
            }
            if (taken || (round != WORKS && used) || (round != ELSEWHERE && !q->path[k].works))
                continue;
            memcpy(ip[n++], at, 16);
        }
    return n;
}

/* ---- who lives ---- */

void rnl_host_probe_attest(struct rnl_host_probe *p, const unsigned char *bits, size_t bytes, uint64_t now_ns)
{
    p->alive_count++;
    for (uint32_t h = 0; h < p->hosts; h++) {
        const struct peer *q = &p->peer[h];
        struct rnl_socket_addr to = {.port = p->info[h].probe_port};
        const uint64_t age_ns = now_ns - q->alive_ns;
        const uint32_t heard = q->alive_ns != 0 && age_ns < fresh_ns ? 1 + (uint32_t)(age_ns / MS) : 0;
        if (h == p->host || !q->found)
            continue;
        for (uint32_t k = 0; next_ip(p, h, &k, to.ip);)
            (void)send_bits(p, &to, ALIVE, h, heard, p->alive_count, bits, bytes < BITS_MOST ? bytes : BITS_MOST,
                            bytes > RNL_HOST_PROBE_SHORT_BYTES - AT_BITS ? RNL_HOST_PROBE_LONG_BYTES
                                                                         : RNL_HOST_PROBE_SHORT_BYTES);
    }
}

/* The count tells what is older than what has come, so that nothing can be played back. */
static void receive_alive(struct rnl_host_probe *p, struct peer *q, const unsigned char *at, uint64_t count,
                          uint32_t bytes)
{
    if (count <= q->alive_count)
        return;
    q->alive_count = count;
    q->alive_ns = p->now_ns;
    const uint32_t heard = rnl_get32(at + 16); /* 1 + how many ms ago it has heard this host; 0 = not lately */
    if (!heard)
        return;
    const uint64_t age_ns = (heard - 1) * MS;
    q->attested_ns = age_ns < p->now_ns ? p->now_ns - age_ns : 0;
    memset(q->bits, 0, sizeof q->bits);
    memcpy(q->bits, at + AT_BITS, bytes - AT_BITS < BITS_MOST ? bytes - AT_BITS : BITS_MOST);
    q->news = true;
}

bool rnl_host_probe_attested(struct rnl_host_probe *p, uint32_t *host, unsigned char *bits, size_t bytes,
                             uint64_t *when_ns)
{
    for (uint32_t h = 0; h < p->hosts; h++)
        if (p->peer[h].news) {
            p->peer[h].news = false;
            *host = h;
            *when_ns = p->peer[h].attested_ns;
            memcpy(bits, p->peer[h].bits, bytes < BITS_MOST ? bytes : BITS_MOST);
            return true;
        }
    return false;
}

/* ---- measurements ---- */

static void fill_attempts(const struct rnl_host_probe *, uint32_t other, struct rnl_probe_failure *out);

struct direction {
    struct rnl_host_probe *p;
    uint32_t other;
};

static enum rnl_path_sent send_measure(void *arg, uint32_t number, uint32_t bytes)
{
    const struct direction *d = arg;
    struct rnl_socket_addr to = {.port = d->p->info[d->other].probe_port};
    memcpy(to.ip, d->p->peer[d->other].ip, sizeof to.ip);
    const uint32_t stop = send_bits(d->p, &to, MEASURE, d->other, number, d->p->nonce, NULL, 0, bytes);
    return stop == RNL_SOCKET_TOO_LONG ? RNL_PATH_TOO_LONG : RNL_PATH_WENT;
}

static void receive_measure(struct rnl_host_probe *p, uint32_t other, const unsigned char *at,
                            const struct rnl_socket_in *in)
{
    struct measured *m = p->peer[other].measured;
    rnl_path_receive(&m->from, rnl_get32(at + 16));
    (void)send_bits(p, &in->from, ECHO, other, rnl_get32(at + 16), rnl_get64(at + 24),
                    (const unsigned char *)&m->from.counts, sizeof m->from.counts, RNL_HOST_PROBE_SHORT_BYTES);
}

static void receive_echo(struct rnl_host_probe *p, uint32_t other, const unsigned char *at)
{
    struct measured *m = p->peer[other].measured;
    struct rnl_path_counts counts;
    memcpy(&counts, at + AT_BITS, sizeof counts);
    if (rnl_get64(at + 24) == p->nonce && m->begun)
        rnl_path_echo(&m->to, rnl_get32(at + 16), &counts, p->now_ns);
}

static void measure(struct rnl_host_probe *p)
{
    for (uint32_t h = 0; h < p->hosts && p->measures; h++) {
        struct measured *m = p->peer[h].measured;
        struct direction d = {.p = p, .other = h};
        if (!p->peer[h].agreed)
            continue;
        if (!m->begun)
            rnl_path_begin(&m->to, p->hosts, RNL_HOST_PROBE_LONG_BYTES, p->now_ns);
        m->begun = true;
        rnl_path_step(&m->to, p->now_ns, send_measure, &d);
    }
}

/* When the next step of a measurement is due; UINT64_MAX = all are over. */
static uint64_t measure_at(const struct rnl_host_probe *p)
{
    uint64_t at = UINT64_MAX;
    for (uint32_t h = 0; h < p->hosts && p->measures; h++)
        if (p->peer[h].agreed) {
            const struct measured *m = p->peer[h].measured;
            const uint64_t due = m->begun ? rnl_path_deadline_ns(&m->to) : 0;
            at = due < at ? due : at;
        }
    return at;
}

void rnl_host_probe_report(const struct rnl_host_probe *p, uint32_t other, struct rnl_path_report *out)
{
    const struct peer *q = &p->peer[other];
    memset(out, 0, sizeof *out);
    out->agreed = q->agreed;
    memcpy(out->ip, q->ip, sizeof out->ip);
    if (q->measured && q->measured->begun)
        rnl_path_result(&q->measured->to, &out->result);
    fill_attempts(p, other, &out->attempts);
}

/* ---- what arrives ---- */

static bool is_listed(const struct rnl_host_probe *p, uint32_t other, const struct rnl_socket_addr *from)
{
    return from->port == p->info[other].probe_port && has_ip(&p->info[other], from->ip);
}

static bool is_chosen(const struct rnl_host_probe *p, uint32_t other, const struct rnl_socket_addr *from)
{
    const struct rnl_socket_addr chosen = addr_of(p, other, p->peer[other].chosen);
    return rnl_socket_addr_equal(&chosen, from) != 0;
}

static bool is_length(uint32_t bytes)
{
    return bytes == RNL_HOST_PROBE_SHORT_BYTES || bytes == RNL_HOST_PROBE_LONG_BYTES;
}

static void take_in(struct rnl_host_probe *p, unsigned char *at, const struct rnl_socket_in *in)
{
    unsigned char had[16], tag[16];
    if (in->cut || in->bytes < RNL_HOST_PROBE_SHORT_BYTES || !(is_length(in->bytes) || p->measures) ||
        memcmp(at, magic, sizeof magic) != 0)
        return;
    memcpy(had, at + AT_TAG, sizeof had);
    sign(p, at, in->bytes, tag);
    uint32_t kind = rnl_get32(at + 4), other = rnl_get32(at + 8);
    uint64_t nonce = rnl_get64(at + 24);
    if (sodium_memcmp(had, tag, sizeof tag) != 0 || rnl_get32(at + 12) != p->host || other >= p->hosts ||
        other == p->host)
        return;
    struct peer *q = &p->peer[other];
    q->heard = true;
    if (kind == MEASURE || kind == ECHO) {
        if (p->measures && kind == MEASURE)
            receive_measure(p, other, at, in);
        else if (p->measures)
            receive_echo(p, other, at);
        return;
    }
    if (!is_length(in->bytes))
        return;
    if (kind == ALIVE) {
        receive_alive(p, q, at, nonce, in->bytes);
        return;
    }
    if (!is_ours_to_probe(p, other)) {
        if (kind == REQUEST) {
            came_by(p, other, in);
            send_bare(p, &in->from, REPLY, other, rnl_get32(at + 16), nonce, in->bytes);
        }
        /* What is replayed proves who wrote it, not where it came from: only what the host has listed is believed. */
        if (kind != CHOSEN || (!is_listed(p, other, &in->from) && !RNL_BUG(chosen_from_anywhere)) ||
            (q->agreed && memcmp(q->ip, in->from.ip, sizeof q->ip) != 0))
            return;
        memcpy(q->ip, in->from.ip, sizeof q->ip);
        q->found = q->agreed = true;
        send_bare(p, &in->from, AGREED, other, rnl_get32(at + 16), nonce, RNL_HOST_PROBE_SHORT_BYTES);
        return;
    }
    if (nonce != p->nonce) /* an answer from another time */
        return;
    if (kind == REPLY)
        receive_reply(p, other, at, in);
    else if (kind == AGREED && q->found && is_chosen(p, other, &in->from))
        q->agreed = true;
}

static void hear(struct rnl_host_probe *p)
{
    struct rnl_socket_in in[BATCH];
    for (int n = BATCH; n == BATCH;) {
        for (int i = 0; i < BATCH; i++)
            in[i] = (struct rnl_socket_in){.at = p->in + i * p->in_bytes, .room = p->in_bytes};
        n = p->socket->ops->recv(p->socket, in, BATCH);
        for (int i = 0; i < n; i++)
            if (in[i].segment == 0 || in[i].segment >= in[i].bytes) /* the socket was opened without merging */
                take_in(p, p->in + i * p->in_bytes, &in[i]);
    }
    receive_errors(p);
}

static bool is_open(const struct rnl_host_probe *p)
{
    for (uint32_t h = 0; h < p->hosts; h++)
        if (h != p->host && !p->peer[h].agreed)
            return true;
    return false;
}

void rnl_host_probe_step(struct rnl_host_probe *p, uint64_t now_ns)
{
    p->now_ns = now_ns;
    hear(p);
    if (now_ns >= p->give_up_at)
        p->gave_up = true;
    if (now_ns >= p->again_at && !p->gave_up && !rnl_host_probe_done(p)) {
        for (uint32_t h = p->host + 1; h < p->hosts; h++)
            if (!p->peer[h].agreed || p->measures)
                send_probe(p, h);
        p->again_at = now_ns + p->gap;
        p->gap = 2 * p->gap < most_ns ? 2 * p->gap : most_ns;
    }
    measure(p);
    (void)p->socket->ops->arm(p->socket);
    receive_errors(p); /* arming may have found some */
}

uint64_t rnl_host_probe_deadline_ns(const struct rnl_host_probe *p)
{
    if (rnl_host_probe_done(p))
        return UINT64_MAX;
    const uint64_t at = measure_at(p), again = p->gave_up ? UINT64_MAX : p->again_at;
    const uint64_t end = p->gave_up ? UINT64_MAX : p->give_up_at, least = again < end ? again : end;
    return at < least ? at : least;
}

bool rnl_host_probe_done(const struct rnl_host_probe *p)
{
    return (p->gave_up || !is_open(p)) && measure_at(p) == UINT64_MAX;
}

bool rnl_host_probe_address(const struct rnl_host_probe *p, uint32_t other, uint8_t ip[16])
{
    memcpy(ip, p->peer[other].ip, 16);
    return p->peer[other].found;
}

static void fill_attempts(const struct rnl_host_probe *p, uint32_t other, struct rnl_probe_failure *out)
{
    const struct peer *q = &p->peer[other];
    *out = (struct rnl_probe_failure){.other = other,
                                      .heard = q->heard,
                                      .asked = (uint32_t)is_ours_to_probe(p, other),
                                      .addresses = p->info[other].addresses};
    for (uint32_t k = 0; k < out->addresses; k++)
        out->address[k] = q->path[k];
}

bool rnl_host_probe_failed(const struct rnl_host_probe *p, uint32_t other, struct rnl_probe_failure *out)
{
    if (other == p->host || p->peer[other].agreed)
        return false;
    fill_attempts(p, other, out);
    return true;
}

/* ---- beginning and end ---- */

int rnl_host_probe_adopt(int fd, struct rnl_socket **out)
{
    /* No connected sockets beside it: what came for them would wake nobody who waits at `fd`. */
    const struct rnl_kernel_options options = {.without = RNL_KERNEL_SEGMENT | RNL_KERNEL_MERGE | RNL_KERNEL_ECN |
                                                          RNL_KERNEL_CONNECT};
    return rnl_kernel_socket_adopt(fd, &options, out);
}

int rnl_host_probe_new(uint32_t host, uint32_t hosts, const struct rnl_host_info *info,
                       const unsigned char key[RNL_JOB_SECRET], uint64_t nonce, struct rnl_socket *socket,
                       uint64_t now_ns, struct rnl_host_probe **out)
{
    struct rnl_host_probe *p = calloc(1, sizeof *p + hosts * sizeof p->peer[0]);
    if (!p)
        goto no_memory;
    p->host = host;
    p->hosts = hosts;
    p->info = info;
    p->socket = socket;
    p->key = rnl_secret_new(RNL_JOB_SECRET);
    if (!p->key)
        goto no_memory;
    memcpy(p->key, key, RNL_JOB_SECRET);
    p->nonce = nonce;
    p->again_at = now_ns;
    p->gap = first_ns;
    p->now_ns = now_ns;
    p->give_up_at = now_ns + RNL_HOST_PROBE_GIVE_UP_MS * MS;
    p->in_bytes = DATAGRAM_MOST;
    p->in = malloc((size_t)BATCH * DATAGRAM_MOST_MEASURED);
    if (!p->in)
        goto no_memory;
    for (uint32_t h = 0; h < hosts; h++) {
        p->peer[h].path = calloc(info[h].addresses + 1, sizeof *p->peer[h].path);
        if (!p->peer[h].path)
            goto no_memory;
        for (uint32_t k = 0; k < info[h].addresses; k++) {
            memcpy(p->peer[h].path[k].ip, info[h].address[k].ip, sizeof info[h].address[k].ip);
            p->peer[h].path[k].port = info[h].probe_port;
        }
    }
    *out = p;
    return 0;
no_memory:
    if (p)
        p->socket = NULL; /* it stays the caller's */
    rnl_host_probe_free(p);
    return rnl_fail(RNL_ERR_NO_MEMORY, "no memory to look for %u hosts", hosts);
}

int rnl_host_probe_measure(struct rnl_host_probe *p, uint64_t give_up_ns)
{
    for (uint32_t h = 0; h < p->hosts; h++) {
        p->peer[h].measured = calloc(1, sizeof *p->peer[h].measured);
        if (!p->peer[h].measured)
            return rnl_fail(RNL_ERR_NO_MEMORY, "no memory to measure the paths to %u hosts", p->hosts);
    }
    p->measures = true;
    p->in_bytes = DATAGRAM_MOST_MEASURED;
    p->give_up_at = p->now_ns + give_up_ns;
    return 0;
}

void rnl_host_probe_free(struct rnl_host_probe *p)
{
    if (!p)
        return;
    for (uint32_t h = 0; h < p->hosts; h++) {
        free(p->peer[h].path);
        free(p->peer[h].measured);
    }
    free(p->in);
    if (p->socket)
        p->socket->ops->close(p->socket);
    rnl_secret_free(p->key, RNL_JOB_SECRET);
    free(p);
}
