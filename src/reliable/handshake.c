/* SPDX-License-Identifier: BSD-3-Clause
 *
 * handshake.c - see handshake.h. */
#include "reliable/handshake.h"

#include <assert.h>
#include <sodium.h>
#include <string.h>

#include "base/sometimes.h"
#include "wire/bytes.h"

enum { GENERATION_BITS = 12, UNKNOWN_BURST = 16, UNKNOWN_BURST_MOST = 1024 };
#define UNKNOWN_EVERY_NS \
    ((uint64_t)1000000) /* each costs two hashes: 1,000 a second are below a thousandth of a core */
static_assert(RNL_HS_RANKS_MAX == 1 << (32 - GENERATION_BITS), "a connection number is a rank and a generation");

/* What went wrong while opening, worse ones last: the sentence of giving up tells the last. */
enum trouble { SILENCE = 0, STALE, FORGED };

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
    /* By chance, so that a process and the one before it hardly ever have the same connection numbers. */
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
}

void rnl_hs_peer_drop(struct rnl_handshake *hs, struct rnl_hs_peer *peer)
{
    if (peer->generation >= hs->base) /* the nonce of today may be on its way */
        hs->base = peer->generation + 1;
    memset(peer, 0, sizeof *peer);
}

int rnl_hs_expect(struct rnl_hs_peer *peer, uint64_t incarnation)
{
    peer->expected = incarnation;
    if (peer->state < RNL_HS_MADE || peer->incarnation == incarnation)
        return 0;
    peer->state = RNL_HS_IDLE;
    return 1;
}

/* Our nonce towards a peer: of nobody else, at no other address, in no other generation. */
static void nonce_for(const struct rnl_handshake *hs, uint32_t rank, uint32_t generation, const void *address,
                      uint32_t bytes, unsigned char nonce[RNL_NONCE_BYTES])
{
    unsigned char in[16 + RNL_HS_ADDRESS] = {0};
    rnl_put32(in, rank);
    rnl_put32(in + 4, generation);
    rnl_put64(in + 8, bytes);
    memcpy(in + 16, address, bytes);
    rnl_keyed_hash(nonce, hs->config.secret, "runnel nonce", in, 16 + bytes);
}

/* For packets of `rank` to us; never 0. */
static uint32_t connection_of(uint32_t rank, uint32_t generation)
{
    uint32_t few = generation % ((1u << GENERATION_BITS) - 1) + 1;
    return few << (32 - GENERATION_BITS) | rank;
}

static uint32_t hello(const struct rnl_handshake *hs, uint32_t rank, uint64_t their_incarnation,
                      const unsigned char mine[RNL_NONCE_BYTES], const unsigned char theirs[RNL_NONCE_BYTES],
                      uint32_t connection, unsigned flags, unsigned char *out, size_t room)
{
    const struct rnl_hs_config *c = &hs->config;
    struct rnl_hello h = {.src = c->rank,
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
    return rnl_hello_encode(out, room, c->job, &h);
}

/* What MADE and UP say of their pair. */
static uint32_t hello_pair(const struct rnl_handshake *hs, const struct rnl_hs_peer *peer, unsigned char *out,
                           size_t room)
{
    unsigned flags = RNL_HELLO_UP | (peer->state == RNL_HS_UP ? RNL_HELLO_SURE : 0);
    return hello(hs, peer->rank, peer->incarnation, peer->mine, peer->theirs, peer->rx_connection, flags, out, room);
}

static void begin_opening(struct rnl_handshake *hs, struct rnl_hs_peer *peer, uint64_t now_ns)
{
    peer->state = RNL_HS_OPENING;
    peer->tries = 0;
    peer->trouble = SILENCE;
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

uint32_t rnl_hs_claims(const struct rnl_handshake *hs, const unsigned char *at, size_t bytes)
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
        peer->generation++; /* answers that come later are to nobody */
    peer->state = RNL_HS_IDLE;
    step->events |= RNL_HS_FAILED;
    step->status = status;
}

/* Of this job, and we can never talk. Whoever waits is told at once. */
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

/* Our nonce came back: the peer lives, at this address. */
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

    struct rnl_direction d = {c->rank,
                              peer->rank,
                              c->incarnation,
                              h->src_incarnation,
                              {0},
                              {0},
                              {(uint8_t)__builtin_ctz(h->ciphers & c->ciphers), c->protect}};
    memcpy(d.src_nonce, mine, RNL_NONCE_BYTES);
    memcpy(d.dst_nonce, h->nonce, RNL_NONCE_BYTES);
    rnl_direction_key(made->tx, c->job, &d);
    d.src = peer->rank;
    d.dst = c->rank;
    d.src_incarnation = h->src_incarnation;
    d.dst_incarnation = c->incarnation;
    memcpy(d.src_nonce, h->nonce, RNL_NONCE_BYTES);
    memcpy(d.dst_nonce, mine, RNL_NONCE_BYTES);
    rnl_direction_key(made->rx, c->job, &d);
    /* UNKNOWN quotes a number. If all connections began with 1, a stranger could have it said of packets to come,
     * before the peer has our connection, and repeat it when they are under way. */
    unsigned char first[16];
    rnl_keyed_hash(first, hs->config.secret, "runnel first", mine, RNL_NONCE_BYTES);
    made->first_number = 1 + (rnl_get32(first) & 0x7fffffff);
    made->first_control = 1 + (rnl_get32(first + 4) & 0x7fffffff);
    if (RNL_RARELY("packet numbers begin near the end of 32 bits"))
        made->first_number = UINT32_MAX - (first[0] & 0x7f);
    made->suite = d.suite;
    made->tx_connection = h->connection;
    made->rx_connection = peer->rx_connection;
    made->incarnation = h->src_incarnation;
    made->mtu_bytes = h->mtu_bytes < c->mtu_bytes ? h->mtu_bytes : c->mtu_bytes;
    made->window_bytes = h->window_bytes;
    made->ack_delay_ns = h->ack_delay_ns;
}

static int same(const unsigned char *a, const unsigned char *b)
{
    return memcmp(a, b, RNL_NONCE_BYTES) == 0;
}

/* A HELLO of this job, version and suite, from an incarnation that may be. Returns the bytes of the answer. */
static uint32_t take(struct rnl_handshake *hs, struct rnl_hs_peer *peer, const struct rnl_hello *h, const void *address,
                     uint32_t address_bytes, uint64_t now_ns, unsigned char *out, size_t room, struct rnl_hs_step *step)
{
    unsigned char mine[RNL_NONCE_BYTES];
    int have = peer && peer->state >= RNL_HS_MADE, wants = h->flags & RNL_HELLO_WANT, paired = h->flags & RNL_HELLO_UP;
    if (have && h->src_incarnation == peer->incarnation && same(h->nonce, peer->theirs)) {
        /* From the opening that made our connection, whatever it had heard by then. */
        if (paired && same(h->echo, peer->mine))
            step->events |= rnl_hs_heard(peer);
        else if (!wants)
            return 0;
        return h->flags & RNL_HELLO_SURE ? 0 : hello_pair(hs, peer, out, room);
    }
    uint32_t generation = peer ? peer->generation : hs->base;
    nonce_for(hs, h->src, generation, address, address_bytes, mine);
    /* The same process answers once more to what we have said since: overtaken answers, which make nothing. */
    int another = !have || h->src_incarnation != peer->incarnation;
    if (same(h->echo, mine) && h->dst_incarnation == hs->config.incarnation && (another || wants || paired)) {
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
    /* It answers us and does not have our pair: it is another process, or took another rank's record away meanwhile and
     * has other nonces since; or this is an old answer. What it says to our next nonce, which nobody has heard before,
     * will tell. */
    int restarted = have && peer->state == RNL_HS_MADE && (another || !paired) && same(h->echo, peer->mine) &&
                    address_bytes == peer->address_bytes && memcmp(address, peer->address, address_bytes) == 0;
    RNL_SOMETIMES(!wants && !paired && !restarted, "an answer comes that needs none");
    RNL_SOMETIMES(restarted && another, "another process answers than the one that the connection is with");
    RNL_SOMETIMES(restarted && !another, "the same process answers with another nonce than the one of our pair");
    if (!wants && !paired && !restarted)
        return 0;
    unsigned flags = restarted || (peer && peer->state == RNL_HS_OPENING) ? RNL_HELLO_WANT : 0;
    return hello(hs, h->src, h->src_incarnation, mine, h->nonce, connection_of(h->src, generation), flags, out, room);
}

void rnl_hs_input(struct rnl_handshake *hs, struct rnl_hs_peer *peer, const unsigned char *at, size_t bytes,
                  const void *address, uint32_t address_bytes, uint64_t now_ns, unsigned char *out, size_t room,
                  struct rnl_hs_step *step)
{
    const struct rnl_hs_config *c = &hs->config;
    uint32_t src, dst;
    struct rnl_hello h;
    memset(step, 0, sizeof *step);
    if (!rnl_hello_peek(at, bytes, &src, &dst) || src >= c->ranks || src == c->rank || dst != c->rank ||
        (peer && peer->rank != src) || address_bytes > RNL_HS_ADDRESS) {
        hs->count.strayed++;
        return;
    }
    enum rnl_hello_verdict verdict = rnl_hello_decode(at, bytes, c->job, &h);
    int opening = peer && peer->state == RNL_HS_OPENING;
    if (verdict == RNL_HELLO_FORGED && opening && peer->trouble < FORGED && address_bytes == peer->address_bytes &&
        memcmp(address, peer->address, address_bytes) == 0)
        peer->trouble = FORGED;
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
    if (!version && ((peer && ((peer->expected != 0 && h.src_incarnation != peer->expected) ||
                               h.src_incarnation == peer->refused)))) {
        RNL_SOMETIMES(h.src_incarnation != peer->refused, "a process says hello that the job does not know");
        hs->count.stale++;
        if (opening && peer->trouble < STALE)
            peer->trouble = STALE;
        return;
    }
    if (version || h.protect != c->protect || (h.ciphers & c->ciphers) == 0) {
        unsigned char mine[RNL_NONCE_BYTES];
        hs->count.mismatch += !version;
        differs(hs, peer, &h, step);
        if ((h.flags & RNL_HELLO_WANT) && bytes >= RNL_HELLO_BYTES) { /* so that it learns why, too */
            uint32_t generation = peer ? peer->generation : hs->base;
            nonce_for(hs, h.src, generation, address, address_bytes, mine);
            step->bytes = hello(hs, h.src, 0, mine, no_nonce, connection_of(h.src, generation), 0, out, room);
            hs->count.answered += step->bytes != 0;
        }
        return;
    }
    hs->count.taken++;
    if (h.dst_incarnation != 0 && h.dst_incarnation != c->incarnation)
        hs->count
            .stale++; /* for the process before this one: its echo cannot be ours, and the answer tells who is here */
    step->bytes = take(hs, peer, &h, address, address_bytes, now_ns, out, room, step);
    hs->count.answered += step->bytes != 0;
}

static void fail_silent(const struct rnl_handshake *hs, struct rnl_hs_peer *peer, struct rnl_hs_step *step)
{
    unsigned long long ms = hs->config.give_up_ns / 1000000;
    int status;
    if (peer->state == RNL_HS_MADE)
        status =
            rnl_fail(RNL_TIMED_OUT,
                     "rank %u answered, and then was not heard for %llu ms before the connection was up: it ended, "
                     "or our packets do not reach it any more",
                     peer->rank, ms);
    else if (peer->trouble == FORGED)
        status = rnl_fail(RNL_TIMED_OUT,
                          "rank %u did not answer for %llu ms, but from its address came packets with the key of "
                          "another job, or damaged: does a process of another job use that address?",
                          peer->rank, ms);
    else if (peer->trouble == STALE)
        status = rnl_fail(RNL_TIMED_OUT,
                          "rank %u did not answer for %llu ms, but a process answered that was it and is no longer: it "
                          "was replaced, and the new one is not there yet",
                          peer->rank, ms);
    else
        status = rnl_fail(RNL_TIMED_OUT,
                          "rank %u did not answer for %llu ms: it does not run, or a firewall or a wrong address is "
                          "between us",
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
    /* Time in which we did not ask, or did not listen, is no silence: a late turn counts for an eighth of the bound. */
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
        step->bytes = hello(hs, peer->rank, peer->expected, mine, no_nonce, connection_of(peer->rank, peer->generation),
                            RNL_HELLO_WANT, out, room);
    } else {
        step->bytes = hello_pair(hs, peer, out, room);
    }
    uint64_t wait = c->most_ns;
    if (c->most_ns >> peer->tries > c->first_ns)
        wait = c->first_ns << peer->tries++;
    peer->next_ns = now_ns + wait < peer->give_up_ns ? now_ns + wait : peer->give_up_ns;
}

unsigned rnl_hs_heard(struct rnl_hs_peer *peer)
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
    uint64_t ranks = hs->config.ranks; /* all may have a connection with the process that was here before us */
    uint64_t burst = UNKNOWN_EVERY_NS * (ranks < UNKNOWN_BURST        ? UNKNOWN_BURST
                                         : ranks < UNKNOWN_BURST_MOST ? ranks
                                                                      : UNKNOWN_BURST_MOST);
    if (p->type == RNL_PACKET_HELLO || p->type == RNL_PACKET_UNKNOWN || p->bytes < RNL_UNKNOWN_BYTES)
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

int rnl_hs_unknown_said(struct rnl_handshake *hs, struct rnl_hs_peer *peer, uint32_t tx_connection,
                        const unsigned char *at, size_t bytes, uint64_t now_ns, uint64_t *number, unsigned *control)
{
    struct rnl_unknown u;
    if (!rnl_unknown_decode(at, bytes, hs->config.job, peer->rank, &u)) {
        hs->count.forged++;
        return 0;
    }
    if (peer->state < RNL_HS_MADE || u.connection != tx_connection) {
        hs->count.stale++;
        return 0;
    }
    hs->count.taken++;
    if (peer->state == RNL_HS_MADE) {
        if (peer->next_ns > now_ns)
            peer->next_ns = now_ns;
        return 0;
    }
    *number = u.number;
    *control = u.control;
    return 1;
}
