/* SPDX-License-Identifier: BSD-3-Clause
 *
 * credits.h - LFC's protocol on the card, which both firmwares have: packets and the queues for credits, buffers and
 * who needs them, the tree of a multicast. Each firmware has `card` and its own loop. */
#ifndef MYRI_LFC_CREDITS_H
#define MYRI_LFC_CREDITS_H

#include "sim/myrinet/hw/nic.h"
#include "sim/myrinet/systems/lfc/layout.h"

enum { LFC_NONE = 0xffff, OF_SLOT = LFC_BUFFERS }; /* packets: buffers, then slots */

static uint32_t bytes_of[LFC_BUFFERS + LFC_SLOTS], users[LFC_BUFFERS + LFC_SLOTS], source_of[LFC_BUFFERS];
static uint32_t free_buffer[LFC_BUFFERS], to_host[LFC_BUFFERS];
static struct {
    uint32_t next, packet, hop;
} entry[LFC_ENTRIES];
static uint32_t head[LFC_NODES], tail[LFC_NODES]; /* entries that wait for credit */
static uint32_t credit[LFC_NODES], owed[LFC_NODES];

struct lfc_loop {
    uint32_t node, nodes, half;
    uint32_t open;                   /* buffer for what comes in */
    uint32_t seen, asked;            /* of posted, of questions */
    uint32_t frees, hosts, hosts_at; /* free buffers; packets for the host, and the first of them */
    uint32_t putting;                /* packet on its way into the host, or LFC_NONE; LFC_BUFFERS: a value */
    uint32_t place_end, ring_end, put;
    uint32_t sending;             /* packet, or LFC_NONE */
    uint32_t ready, last, unused; /* entries that have their credit: the first and the last; free ones */
    uint32_t controls, control_at;
    uint32_t has_value, ticking;
    uint32_t since; /* packets that were there when the timer was started */
};

FIRMWARE uint32_t behind(struct lfc_loop *l, uint32_t node, uint32_t by)
{
    uint32_t k = node + by;
    return (k >= l->nodes ? k - l->nodes : k) & (LFC_NODES - 1);
}

static volatile uint32_t *packet_at(uint32_t p)
{
    return card.packet[p];
}

static void put_control(struct lfc_loop *l, uint32_t to, uint32_t kind, uint32_t value)
{
    uint32_t at = (l->control_at + l->controls) & (LFC_CONTROLS - 1);
    if (l->controls == LFC_CONTROLS) {
        card.errors++;
        return;
    }
    card.control[at][0] = to;
    card.control[at][1] = l->node << 24 | kind << 16;
    card.control[at][2] = value;
    l->controls++;
}

static void make_ready(struct lfc_loop *l, uint32_t e)
{
    entry[e].next = LFC_NONE;
    if (l->ready == LFC_NONE)
        l->ready = e;
    else
        entry[l->last].next = e;
    l->last = e;
}

/* The packet is to go to that card, when there is a credit. */
static void queue(struct lfc_loop *l, uint32_t packet, uint32_t hop)
{
    uint32_t e = l->unused;
    if (e == LFC_NONE) { /* more than there are packets and hops */
        card.errors++;
        return;
    }
    l->unused = entry[e].next;
    entry[e].packet = packet;
    entry[e].hop = hop;
    entry[e].next = LFC_NONE;
    users[packet]++;
    if (credit[hop]) {
        credit[hop]--;
        make_ready(l, e);
    } else {
        if (head[hop] == LFC_NONE)
            head[hop] = e;
        else
            entry[tail[hop]].next = e;
        tail[hop] = e;
    }
}

static void credits_came(struct lfc_loop *l, uint32_t from, uint32_t n)
{
    if (n > card.credits - credit[from]) {
        card.errors++;
        return;
    }
    credit[from] += n;
    while (credit[from] && head[from] != LFC_NONE) {
        uint32_t e = head[from];
        head[from] = entry[e].next;
        credit[from]--;
        make_ready(l, e);
    }
}

/* One that needed this packet has it. */
static void done_with(struct lfc_loop *l, uint32_t p)
{
    if (--users[p])
        return;
    if (p >= OF_SLOT) {
        card.what[p - OF_SLOT] = 0;
        return;
    }
    free_buffer[l->frees++] = p;
    if (++owed[source_of[p]] == l->half)
        put_control(l, source_of[p], LFC_CREDIT, 0); /* what is owed then goes with it */
}

/* To the children of this node in the tree of who sent it first. */
static void pass_on(struct lfc_loop *l, uint32_t p, uint32_t first)
{
    uint32_t k = l->node >= first ? l->node - first : l->node + l->nodes - first;
    uint32_t child = k + k + 1;
    if (child < l->nodes)
        queue(l, p, behind(l, first, child));
    if (child + 1 < l->nodes && child < l->nodes)
        queue(l, p, behind(l, first, child + 1));
}

static void other_came(struct lfc_loop *l, uint32_t kind, uint32_t from, uint32_t value)
{
    if (kind == LFC_FETCH) {
        volatile uint32_t *v = &card.variable[value >> 24 & (LFC_VARIABLES - 1)];
        if (from == l->node) {
            card.value[0] = *v;
            l->has_value = 1;
        } else {
            put_control(l, from, LFC_VALUE, *v);
        }
        *v += value & 0xffffff;
    } else if (kind == LFC_VALUE) {
        card.value[0] = value;
        l->has_value = 1;
    } else if (kind != LFC_CREDIT) {
        card.errors++;
    }
}

static void arrived(struct lfc_loop *l)
{
    uint32_t p = l->open, n = nic_read(RLEN), hop, from, kind;
    volatile uint32_t *at = packet_at(p);
    hop = at[0];
    from = hop >> 24 & (LFC_NODES - 1);
    kind = hop >> 16 & 0xff;
    if (from == l->node || from >= l->nodes || n < 8) {
        card.errors++;
    } else {
        if (hop & 0xffff)
            credits_came(l, from, hop & 0xffff);
        if (kind == LFC_PACKET && n >= 12 && l->frees) {
            bytes_of[p] = n;
            source_of[p] = from;
            users[p] = 1;
            to_host[(l->hosts_at + l->hosts++) & (LFC_BUFFERS - 1)] = p;
            if (at[(n >> 2) - 1] & LFC_TO_ALL)
                pass_on(l, p, at[(n >> 2) - 1] >> 24 & (LFC_NODES - 1));
            l->open = free_buffer[--l->frees];
        } else {
            other_came(l, kind, from, at[1]);
        }
    }
    nic_arm(SRAM_AT(packet_at(l->open)), sizeof card.packet[0]);
}

/* A slot of the host's. They are sent in the order in which they have been filled, but for what lacks credit. */
static void posted(struct lfc_loop *l)
{
    uint32_t slot = l->seen++ & (LFC_SLOTS - 1), p = OF_SLOT + slot, what = card.what[slot], bytes = what & 0xffff;
    bytes = bytes > LFC_DATA ? LFC_DATA : bytes;
    bytes_of[p] = ((bytes + 3) & ~3u) + 12;
    users[p] = 1;
    if (what >> 24 & 1)
        pass_on(l, p, l->node);
    else if ((what >> 16 & 0xff) < l->nodes && (what >> 16 & 0xff) != l->node)
        queue(l, p, what >> 16 & 0xff);
    done_with(l, p);
}

static void send_next(struct lfc_loop *l)
{
    if (l->sending != LFC_NONE) {
        done_with(l, l->sending);
        l->sending = LFC_NONE;
    }
    if (l->controls) {
        volatile uint32_t *c = card.control[l->control_at];
        uint32_t to = c[0] & (LFC_NODES - 1);
        c[1] |= owed[to];
        owed[to] = 0;
        l->control_at = (l->control_at + 1) & (LFC_CONTROLS - 1);
        l->controls--;
        nic_send(card.route[to], SRAM_AT(&c[1]), 8);
    } else if (l->ready != LFC_NONE) {
        uint32_t e = l->ready, p = entry[e].packet, hop = entry[e].hop;
        volatile uint32_t *at = packet_at(p);
        l->ready = entry[e].next;
        entry[e].next = l->unused;
        l->unused = e;
        at[0] = l->node << 24 | LFC_PACKET << 16 | owed[hop];
        owed[hop] = 0;
        l->sending = p;
        nic_send(card.route[hop], SRAM_AT(at), bytes_of[p]);
    }
}

static void watch(struct lfc_loop *l)
{
    l->ticking = 1;
    l->since = l->put;
    nic_write(TMR, card.watchdog);
}

/* That packet, or value, is in the host. */
FIRMWARE void put_away(struct lfc_loop *l, uint32_t p)
{
    if (p < LFC_BUFFERS) {
        done_with(l, p);
        if (card.interrupt && !l->ticking)
            watch(l);
    }
}

/* The engine between card and host: what has been put there is done with, the next one goes if there is a place. */
static void put_next(struct lfc_loop *l)
{
    if (l->putting != LFC_NONE) {
        put_away(l, l->putting);
        l->putting = LFC_NONE;
    }
    if (l->has_value) {
        card.value[1] = LFC_VALID;
        l->has_value = 0;
        l->putting = LFC_BUFFERS;
        nic_dma(card.value_at, SRAM_AT(card.value), TO_HOST, 8);
    } else if (l->hosts && l->put - card.taken < LFC_RING) {
        uint32_t p = to_host[l->hosts_at], n = bytes_of[p] - 4;
        l->hosts_at = (l->hosts_at + 1) & (LFC_BUFFERS - 1);
        l->hosts--;
        l->put++;
        l->putting = p;
        nic_dma(l->place_end - n, SRAM_AT(&packet_at(p)[1]), TO_HOST, n);
        if (l->place_end == l->ring_end)
            l->place_end -= LFC_RING * LFC_PLACE;
        l->place_end += LFC_PLACE;
    }
}

FIRMWARE void timer(struct lfc_loop *l)
{
    uint32_t taken = card.taken;
    nic_write(TMR, 0);
    l->ticking = 0;
    if (!card.interrupt)
        return;
    if ((int32_t)(taken - l->since) < 0) /* nobody has polled since then */
        nic_write(HIRQ, 1);
    else if (taken != l->put) /* somebody has; what came later has its own time */
        watch(l);
}

/* The host has asked for a value. */
static void question(struct lfc_loop *l)
{
    l->asked++;
    if (card.ask_node == l->node)
        other_came(l, LFC_FETCH, l->node, card.ask_what);
    else
        put_control(l, card.ask_node & (LFC_NODES - 1), LFC_FETCH, card.ask_what);
}

static void init(struct lfc_loop *l)
{
    l->node = nic_read(NODE);
    l->nodes = card.nodes;
    l->half = card.credits > 1 ? card.credits / 2 : 1;
    l->seen = l->asked = l->hosts = l->hosts_at = l->put = l->controls = l->control_at = 0;
    l->has_value = l->ticking = l->since = 0;
    l->putting = l->sending = l->ready = l->last = LFC_NONE;
    for (uint32_t i = 0; i < LFC_ENTRIES; i++)
        entry[i].next = i + 1 < LFC_ENTRIES ? i + 1 : LFC_NONE;
    l->unused = 0;
    for (uint32_t i = 0; i < LFC_NODES; i++) {
        head[i] = LFC_NONE;
        credit[i] = card.credits;
        owed[i] = 0;
    }
    for (l->frees = 0; l->frees + 1 < LFC_BUFFERS; l->frees++)
        free_buffer[l->frees] = l->frees + 1;
    l->open = 0;
    l->place_end = card.ring_at + LFC_PLACE;
    l->ring_end = card.ring_at + LFC_RING * LFC_PLACE;
    nic_arm(SRAM_AT(packet_at(0)), sizeof card.packet[0]);
}

#endif
