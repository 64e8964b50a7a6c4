/* SPDX-License-Identifier: BSD-3-Clause
 *
 * handshake.c - the state machine that handshake.h draws. */
#include "net/flow/handshake.h"
#include "base/bug.h"

#include <assert.h>
#include <sodium.h>
#include <string.h>

#include "base/sometimes.h"
#include "net/wire/bytes.h"

enum { GENERATION_BITS = 12, UNKNOWN_BURST = 16, UNKNOWN_BURST_MOST = 1024 };
#define UNKNOWN_EVERY_NS \
    ((uint64_t)1000000) /* each UNKNOWN costs two hashes; 1,000 a second are below a thousandth of a core */
static_assert(RNL_HS_RANKS_MAX == 1 << (32 - GENERATION_BITS), "a connection number is a rank and a generation");

/* What went wrong while opening, from least to most specific; the error message reports the most specific one. */
enum hs_failure { SILENCE = 0, STALE, FORGED };

static const unsigned char no_nonce[RNL_NONCE_BYTES];

int rnl_hs_init(struct rnl_handshake *hs, const struct rnl_hs_config *config)
{
    unsigned char random[16];
    memset(hs, 0, sizeof *hs);
    if (config->ranks > RNL_HS_RANKS_MAX || config->rank >= config->ranks || config->incarnation == 0 ||
        config->protect >= RNL_PROTECTS || config->ciphers == 0 || config->first_ns == 0 ||
        config->most_ns < config->first_ns || config->mtu_bytes < RNL_HELLO_BYTES)
        return rnl_fail(RNL_ERR_ARG,
                        "connections for rank %u of %u were asked for, with incarnation %llu, protection %u, ciphers "
                        "%#x and datagrams of %u bytes: at most %d ranks, nothing 0, at least %d bytes",
                        config->rank, config->ranks, (unsigned long long)config->incarnation, config->protect,
                        config->ciphers, config->mtu_bytes, RNL_HS_RANKS_MAX, RNL_HELLO_BYTES);
    hs->config = *config;
    /* The base is random, so that a process hardly ever has the connection numbers of the one before it. */
    rnl_keyed_hash(random, config->secret, "runnel start", NULL, 0);
    hs->base = rnl_get32(random) & 0xffff;
    return 0;
}

void rnl_hs_peer_init(const struct rnl_handshake *hs, struct rnl_hs_peer *peer, uint32_t rank, uint64_t expected)
{
    memset(peer, 0, sizeof *peer);
    peer->rank = rank;
    peer->generation = hs->base;
    peer->expected = expected;
    peer->as = hs->config.rank;
    peer->keys = hs->config.job;
}

void rnl_hs_peer_pair(struct rnl_hs_peer *peer, uint32_t as, const struct rnl_job_keys *keys)
{
    peer->as = as;
    peer->keys = keys;
}

void rnl_hs_peer_drop(struct rnl_handshake *hs, struct rnl_hs_peer *peer)
{
    /* The present nonce may be in flight, so its generation must not be used again. */
    if (peer->generation >= hs->base)
        hs->base = peer->generation + 1;
    memset(peer, 0, sizeof *peer);
}

bool rnl_hs_expect(struct rnl_hs_peer *peer, uint64_t incarnation)
{
    peer->expected = incarnation;
    if (peer->state < RNL_HS_MADE || peer->incarnation == incarnation)
        return false;
    peer->state = RNL_HS_IDLE;
    return true;
}

/* Makes our nonce for a peer, which is unique to this peer, address and generation. */
static void nonce_for(const struct rnl_handshake *hs, uint32_t rank, uint32_t generation, const void *address,
                      uint32_t bytes, unsigned char nonce[RNL_NONCE_BYTES])
{
    unsigned char in[16 + RNL_HS_ADDRESS] = {0};
    rnl_put32(in, rank);
    rnl_put32(in + 4, generation);
    rnl_put64(in + 8, bytes);
    memcpy(in + 16, address, RNL_BUG(hs_nonce_for_any_address) ? 0 : bytes);
    rnl_keyed_hash(nonce, hs->config.secret, "runnel nonce", in, 16 + bytes);
}

/* Returns the connection number for packets from `rank` to us; never 0. */
static uint32_t connection_of(uint32_t rank, uint32_t generation)
{
    uint32_t few = generation % ((1u << GENERATION_BITS) - 1) + 1;
    return few << (32 - GENERATION_BITS) | rank;
}

/* Writes a HELLO to `rank`, whose record is `peer`, or NULL: there is none. */
static uint32_t hello(const struct rnl_handshake *hs, const struct rnl_hs_peer *peer, uint32_t rank,
                      uint64_t their_incarnation, const unsigned char mine[RNL_NONCE_BYTES],
                      const unsigned char theirs[RNL_NONCE_BYTES], uint32_t connection, unsigned flags,
                      unsigned char *out, size_t room)
{
    const struct rnl_hs_config *c = &hs->config;
    struct rnl_hello h = {.src = peer ? peer->as : c->rank,
                          .dst = rank,
                          .src_incarnation = c->incarnation,
                          .dst_incarnation = their_incarnation,
                          .connection = connection,
                          .window_bytes = c->window_bytes,
                          .ack_delay_ns = c->ack_delay_ns,
                          .mtu_bytes = c->mtu_bytes,
                          .flags = (uint8_t)flags,
                          .protect = c->protect,
                          .ciphers = c->ciphers};
    memcpy(h.nonce, mine, RNL_NONCE_BYTES);
    memcpy(h.echo, theirs, RNL_NONCE_BYTES);
    return rnl_hello_encode(out, room, peer ? peer->keys : c->job, &h);
}

/* Writes the HELLO of the states MADE and UP, which names their pair of nonces. */
static uint32_t hello_pair(const struct rnl_handshake *hs, const struct rnl_hs_peer *peer, unsigned char *out,
                           size_t room)
{
    unsigned flags = RNL_HELLO_UP | (peer->state == RNL_HS_UP ? RNL_HELLO_SURE : 0);
    return hello(hs, peer, peer->rank, peer->incarnation, peer->mine, peer->theirs, peer->rx_connection, flags, out,
                 room);
}

static void begin_opening(struct rnl_handshake *hs, struct rnl_hs_peer *peer, uint64_t now_ns)
{
    peer->state = RNL_HS_OPENING;
    peer->tries = 0;
    peer->failure = SILENCE;
    peer->next_ns = now_ns;
    peer->give_up_ns = now_ns + hs->config.give_up_ns;
}

int rnl_hs_open(struct rnl_handshake *hs, struct rnl_hs_peer *peer, const void *address, uint32_t address_bytes,
                uint64_t now_ns)
{
    if (address_bytes > RNL_HS_ADDRESS)
        return rnl_fail(RNL_ERR_ARG, "an address of %u bytes was given for rank %u: at most %d", address_bytes,
                        peer->rank, RNL_HS_ADDRESS);
    if (peer->state >= RNL_HS_MADE)
        return 0;
    memcpy(peer->address, address, address_bytes);
    peer->address_bytes = (uint8_t)address_bytes;
    begin_opening(hs, peer, now_ns);
    return 0;
}

uint32_t rnl_hs_claimed_rank(const struct rnl_handshake *hs, const unsigned char *at, size_t bytes)
{
    uint32_t src, dst;
    if (!rnl_hello_peek(at, bytes, &src, &dst) || src >= hs->config.ranks || src == hs->config.rank)
        return UINT32_MAX;
    return src;
}

static void give_up(struct rnl_hs_peer *peer, struct rnl_hs_step *step, int status)
{
    if (peer->state == RNL_HS_MADE)
        step->events |= RNL_HS_GONE;
    else
        peer->generation++; /* replies that arrive later fit no nonce */
    peer->state = RNL_HS_IDLE;
    step->events |= RNL_HS_FAILED;
    step->status = status;
}

/* The HELLO is of this job, but no connection is possible; an opening fails at once. */
static void differs(struct rnl_handshake *hs, struct rnl_hs_peer *peer, const struct rnl_hello *h,
                    struct rnl_hs_step *step)
{
    const struct rnl_hs_config *c = &hs->config;
    int status;
    if (!peer || peer->state != RNL_HS_OPENING)
        return;
    if (h->version != RNL_WIRE_VERSION)
        status = rnl_fail(RNL_ERR_UNSUPPORTED,
                          "rank %u speaks version %u of the packets, this process version %d: all processes of a job "
                          "need the same version of Runnel",
                          h->src, h->version, RNL_WIRE_VERSION);
    else if (h->protect != c->protect)
        status = rnl_fail(RNL_ERR_UNSUPPORTED,
                          "rank %u was set to have its packets %s, this process %s: give all processes of a job the "
                          "same setting",
                          h->src, rnl_protect_text(h->protect), rnl_protect_text(c->protect));
    else
        status = rnl_fail(RNL_ERR_UNSUPPORTED,
                          "rank %u has the ciphers %#x, this process %#x, and none in common: allow both %s and %s",
                          h->src, h->ciphers, c->ciphers, rnl_cipher_text(RNL_CIPHER_AES128_GCM),
                          rnl_cipher_text(RNL_CIPHER_CHACHA20_POLY1305));
    give_up(peer, step, status);
}

/* Our nonce came back, so the peer is alive at this address: makes the connection and its keys. */
static void make(struct rnl_handshake *hs, struct rnl_hs_peer *peer, const struct rnl_hello *h, const void *address,
                 uint32_t address_bytes, const unsigned char mine[RNL_NONCE_BYTES], uint64_t now_ns,
                 struct rnl_hs_step *step)
{
    const struct rnl_hs_config *c = &hs->config;
    struct rnl_hs_made *made = &step->made;
    if (peer->state >= RNL_HS_MADE)
        step->events |= RNL_HS_GONE;
    peer->state = h->flags & RNL_HELLO_UP ? RNL_HS_UP : RNL_HS_MADE;
    step->events |= RNL_HS_CONNECTED | (peer->state == RNL_HS_UP ? RNL_HS_CONFIRMED : 0);
    peer->rx_connection = connection_of(peer->rank, peer->generation);
    peer->generation++;
    peer->incarnation = h->src_incarnation;
    peer->tries = 0;
    peer->next_ns = now_ns + c->first_ns;
    peer->give_up_ns = now_ns + c->give_up_ns;
    memcpy(peer->mine, mine, RNL_NONCE_BYTES);
    memcpy(peer->theirs, h->nonce, RNL_NONCE_BYTES);
    memcpy(peer->address, address, address_bytes);
    peer->address_bytes = (uint8_t)address_bytes;

    struct rnl_direction d = {peer->as,
                              peer->rank,
                              c->incarnation,
                              h->src_incarnation,
                              {0},
                              {0},
                              {(uint8_t)__builtin_ctz(h->ciphers & c->ciphers), c->protect}};
    memcpy(d.src_nonce, mine, RNL_NONCE_BYTES);
    memcpy(d.dst_nonce, h->nonce, RNL_NONCE_BYTES);
    rnl_direction_key(made->tx, peer->keys, &d);
    d.src = peer->rank;
    d.dst = peer->as;
    d.src_incarnation = h->src_incarnation;
    d.dst_incarnation = c->incarnation;
    memcpy(d.src_nonce, h->nonce, RNL_NONCE_BYTES);
    memcpy(d.dst_nonce, mine, RNL_NONCE_BYTES);
    rnl_direction_key(made->rx, peer->keys, &d);
    /* UNKNOWN quotes a packet number. If all connections began with 1, an attacker could obtain an UNKNOWN for future
     * numbers while the peer does not have our connection yet, and replay it when those packets are in flight. */
    unsigned char first[16];
    rnl_keyed_hash(first, hs->config.secret, "runnel first", mine, RNL_NONCE_BYTES);
    made->first_number = 1 + (rnl_get32(first) & 0x7fffffff);
    made->first_control = 1 + (rnl_get32(first + 4) & 0x7fffffff);
    if (RNL_BUGGIFY("packet numbers begin near the end of 32 bits"))
        made->first_number = UINT32_MAX - (first[0] & 0x7f);
    made->suite = d.suite;
    made->tx_connection = h->connection;
    made->rx_connection = peer->rx_connection;
    made->incarnation = h->src_incarnation;
    made->mtu_bytes = h->mtu_bytes < c->mtu_bytes ? h->mtu_bytes : c->mtu_bytes;
    made->window_bytes = h->window_bytes;
    made->ack_delay_ns = h->ack_delay_ns;
}

static bool same(const unsigned char *a, const unsigned char *b)
{
    return memcmp(a, b, RNL_NONCE_BYTES) == 0;
}

/* Takes in a HELLO of this job, version and suite, from an acceptable incarnation. Returns the bytes of the reply. */
static uint32_t take(struct rnl_handshake *hs, struct rnl_hs_peer *peer, const struct rnl_hello *h, const void *address,
                     uint32_t address_bytes, uint64_t now_ns, unsigned char *out, size_t room, struct rnl_hs_step *step)
{
    unsigned char mine[RNL_NONCE_BYTES];
    int have = peer && peer->state >= RNL_HS_MADE, wants = h->flags & RNL_HELLO_WANTS_REPLY,
        paired = h->flags & RNL_HELLO_UP;
    if (have && h->src_incarnation == peer->incarnation && same(h->nonce, peer->theirs)) {
        /* This hello is of the opening that made our connection, and may be older than what the peer knows now. */
        if (paired && same(h->echo, peer->mine))
            step->events |= rnl_hs_confirm(peer);
        else if (!wants)
            return 0;
        return h->flags & RNL_HELLO_SURE ? 0 : hello_pair(hs, peer, out, room);
    }
    uint32_t generation = peer ? peer->generation : hs->base;
    nonce_for(hs, h->src, generation, address, address_bytes, mine);
    /* If the same process merely replies to a later HELLO of ours, the reply is out of date and makes no connection. */
    int another = !have || h->src_incarnation != peer->incarnation;
    if ((same(h->echo, mine) || RNL_BUG(hs_no_echo)) && h->dst_incarnation == hs->config.incarnation &&
        (another || wants || paired)) {
        if (!peer) {
            step->events |= RNL_HS_NEEDS_PEER;
            return 0;
        }
        RNL_SOMETIMES(peer->state == RNL_HS_UP && another, "a process takes the place of one that was connected");
        if (peer->state == RNL_HS_UP && !another) {
            step->events |= RNL_HS_GONE;
            rnl_hs_end(peer, 1);
            return 0;
        }
        make(hs, peer, h, address, address_bytes, mine, now_ns, step);
        return hello_pair(hs, peer, out, room);
    }
    /* It replies to us without having our pair: it is another process, or it has dropped a record since and has other
     * nonces now, or this is an old reply. Its reply to our next nonce, which was never sent before, decides. */
    int restarted = have && !RNL_BUG(hs_restart_ignored) && peer->state == RNL_HS_MADE && (another || !paired) &&
                    same(h->echo, peer->mine) && address_bytes == peer->address_bytes &&
                    memcmp(address, peer->address, address_bytes) == 0;
    RNL_SOMETIMES(!wants && !paired && !restarted, "an answer comes that needs none");
    RNL_SOMETIMES(restarted && another, "another process answers than the one that the connection is with");
    RNL_SOMETIMES(restarted && !another, "the same process answers with another nonce than the one of our pair");
    if (!wants && !paired && !restarted && !RNL_BUG(hs_answers_everything))
        return 0;
    unsigned flags = restarted || (peer && peer->state == RNL_HS_OPENING) ? RNL_HELLO_WANTS_REPLY : 0;
    return hello(hs, peer, h->src, h->src_incarnation, mine, h->nonce, connection_of(h->src, generation), flags, out,
                 room);
}

void rnl_hs_input(struct rnl_handshake *hs, struct rnl_hs_peer *peer, const unsigned char *at, size_t bytes,
                  const void *address, uint32_t address_bytes, uint64_t now_ns, unsigned char *out, size_t room,
                  struct rnl_hs_step *step)
{
    const struct rnl_hs_config *c = &hs->config;
    uint32_t src, dst;
    struct rnl_hello h;
    memset(step, 0, sizeof *step);
    if (!rnl_hello_peek(at, bytes, &src, &dst) || src >= c->ranks || src == c->rank ||
        dst != (peer ? peer->as : c->rank) || (peer && peer->rank != src) || address_bytes > RNL_HS_ADDRESS) {
        hs->count.strayed++;
        return;
    }
    enum rnl_hello_verdict verdict = rnl_hello_decode(at, bytes, peer ? peer->keys : c->job, &h);
    int opening = peer && peer->state == RNL_HS_OPENING;
    if (verdict == RNL_HELLO_FORGED && opening && peer->failure < FORGED && address_bytes == peer->address_bytes &&
        memcmp(address, peer->address, address_bytes) == 0)
        peer->failure = FORGED;
    switch (verdict) {
    case RNL_HELLO_GOOD:
        break;
    case RNL_HELLO_FORGED:
        hs->count.forged++;
        return;
    case RNL_HELLO_VERSION:
        hs->count.version++;
        break;
    default:
        hs->count.bad++;
        return;
    }
    int version = verdict == RNL_HELLO_VERSION;
    if (!version &&
        ((peer && ((peer->expected != 0 && h.src_incarnation != peer->expected && !RNL_BUG(hs_stale_incarnation)) ||
                   h.src_incarnation == peer->refused)))) {
        RNL_SOMETIMES(h.src_incarnation != peer->refused, "a process says hello that the job does not know");
        hs->count.stale++;
        if (opening && peer->failure < STALE)
            peer->failure = STALE;
        return;
    }
    if (version || h.protect != c->protect || (h.ciphers & c->ciphers) == 0) {
        unsigned char mine[RNL_NONCE_BYTES];
        hs->count.mismatch += !version;
        differs(hs, peer, &h, step);
        if ((h.flags & RNL_HELLO_WANTS_REPLY) &&
            bytes >= RNL_HELLO_BYTES) { /* a reply, so that the peer learns why, too */
            uint32_t generation = peer ? peer->generation : hs->base;
            nonce_for(hs, h.src, generation, address, address_bytes, mine);
            step->bytes = hello(hs, peer, h.src, 0, mine, no_nonce, connection_of(h.src, generation), 0, out, room);
            hs->count.answered += step->bytes != 0;
        }
        return;
    }
    hs->count.taken++;
    /* A HELLO for the process before this one cannot echo our nonce, and the reply says which incarnation is here. */
    if (h.dst_incarnation != 0 && h.dst_incarnation != c->incarnation)
        hs->count.stale++;
    step->bytes = take(hs, peer, &h, address, address_bytes, now_ns, out, room, step);
    hs->count.answered += step->bytes != 0;
}

static void fail_silent(const struct rnl_handshake *hs, struct rnl_hs_peer *peer, struct rnl_hs_step *step)
{
    unsigned long long ms = hs->config.give_up_ns / 1000000;
    int status;
    if (peer->state == RNL_HS_MADE)
        status = rnl_fail(RNL_TIMED_OUT,
                          "rank %u answered, and then was silent for %llu ms before the connection was up: it ended, "
                          "or our packets do not reach it any more",
                          peer->rank, ms);
    else if (peer->failure == FORGED)
        status = rnl_fail(RNL_TIMED_OUT,
                          "rank %u did not answer for %llu ms, but from its address came packets with the key of "
                          "another job, or damaged: does a process of another job use that address?",
                          peer->rank, ms);
    else if (peer->failure == STALE)
        status = rnl_fail(RNL_TIMED_OUT,
                          "rank %u did not answer for %llu ms, but a process did that was this rank before: it was "
                          "replaced, and the new one is not running yet",
                          peer->rank, ms);
    else
        status = rnl_fail(RNL_TIMED_OUT,
                          "rank %u did not answer for %llu ms: it does not run, its address is wrong, or a firewall "
                          "is between us",
                          peer->rank, ms);
    give_up(peer, step, status);
}

void rnl_hs_output(struct rnl_handshake *hs, struct rnl_hs_peer *peer, uint64_t now_ns, unsigned char *out, size_t room,
                   struct rnl_hs_step *step)
{
    const struct rnl_hs_config *c = &hs->config;
    memset(step, 0, sizeof *step);
    if (now_ns < rnl_hs_deadline(peer))
        return;
    /* Time in which this process did not run is no silence: a call that comes late counts for an eighth of the
     * bound. */
    uint64_t late = now_ns - peer->next_ns;
    if (late > c->give_up_ns / 8)
        peer->give_up_ns += late - c->give_up_ns / 8;
    if (now_ns >= peer->give_up_ns) {
        fail_silent(hs, peer, step);
        return;
    }
    if (peer->state == RNL_HS_OPENING) {
        unsigned char mine[RNL_NONCE_BYTES];
        nonce_for(hs, peer->rank, peer->generation, peer->address, peer->address_bytes, mine);
        step->bytes = hello(hs, peer, peer->rank, peer->expected, mine, no_nonce,
                            connection_of(peer->rank, peer->generation), RNL_HELLO_WANTS_REPLY, out, room);
    } else {
        step->bytes = hello_pair(hs, peer, out, room);
    }
    uint64_t wait = c->most_ns;
    if (c->most_ns >> peer->tries > c->first_ns)
        wait = c->first_ns << peer->tries++;
    peer->next_ns = now_ns + wait < peer->give_up_ns ? now_ns + wait : peer->give_up_ns;
}

unsigned rnl_hs_confirm(struct rnl_hs_peer *peer)
{
    if (peer->state != RNL_HS_MADE)
        return 0;
    peer->state = RNL_HS_UP;
    return RNL_HS_CONFIRMED;
}

void rnl_hs_end(struct rnl_hs_peer *peer, int refuse)
{
    if (peer->state >= RNL_HS_MADE && refuse)
        peer->refused = peer->incarnation;
    if (peer->state == RNL_HS_OPENING)
        peer->generation++;
    peer->state = RNL_HS_IDLE;
}

uint32_t rnl_hs_unknown(struct rnl_handshake *hs, const struct rnl_packet *p, uint64_t now_ns, unsigned char *out,
                        size_t room)
{
    struct rnl_unknown u = {p->connection, p->number, p->control, hs->config.incarnation};
    uint64_t ranks = hs->config.ranks; /* each may have a connection with the process that had our rank before */
    uint64_t burst = UNKNOWN_EVERY_NS * (ranks < UNKNOWN_BURST        ? UNKNOWN_BURST
                                         : ranks < UNKNOWN_BURST_MOST ? ranks
                                                                      : UNKNOWN_BURST_MOST);
    if (p->type == RNL_PACKET_HELLO || p->type == RNL_PACKET_UNKNOWN ||
        (p->bytes < RNL_UNKNOWN_BYTES && !RNL_BUG(hs_unknown_amplifies)))
        return 0;
    if (hs->unknown_ns > now_ns + burst)
        return 0;
    if (hs->unknown_ns < now_ns)
        hs->unknown_ns = now_ns;
    hs->unknown_ns += UNKNOWN_EVERY_NS;
    uint32_t bytes = rnl_unknown_encode(out, room, hs->config.job, hs->config.rank, &u);
    hs->count.unknowns += bytes != 0;
    return bytes;
}

bool rnl_hs_unknown_said(struct rnl_handshake *hs, struct rnl_hs_peer *peer, uint32_t tx_connection,
                         const unsigned char *at, size_t bytes, uint64_t now_ns, uint64_t *number, unsigned *control)
{
    struct rnl_unknown u;
    if (!rnl_unknown_decode(at, bytes, peer->keys, peer->rank, &u)) {
        hs->count.forged++;
        return false;
    }
    if (peer->state < RNL_HS_MADE || u.connection != tx_connection) {
        hs->count.stale++;
        return false;
    }
    hs->count.taken++;
    if (peer->state == RNL_HS_MADE) {
        if (peer->next_ns > now_ns)
            peer->next_ns = now_ns;
        return false;
    }
    *number = u.number;
    *control = u.control;
    return true;
}
