/* SPDX-License-Identifier: BSD-3-Clause
 *
 * net.c - Myrinet with one crossbar: packets are cut through, hold their path from head to tail, and wait in the
 * network when their destination is not open. A packet's way:
 *
 *   sender      |start|<-------------- duration ------------>| done
 *   network           |<- head ->|
 *   receiver                     |<-------------- duration ------------>| in SRAM
 *
 * If the port is taken or the card not open, the packet waits there, its sender's engine with it (back-pressure), save
 * that the network's slack holds a few short packets. From the restart on, the receiver needs the whole duration, and
 * its sender is free a head's time earlier, but not before the signal to go on has come back.
 *
 * A packet with a limit that its sender moves stops there, and holds its path: what is let out later comes a head's
 * time after that, and no sooner does the sender's mark tell of it. Such a packet is never in the network's slack. If
 * it is to be lost, it is when it has arrived; if it is to be late, its head is. */
#include "sim/engine/random.h"
#include "sim/myrinet/hw/hw.h"

#include <stdlib.h>
#include <string.h>

enum {
    OVERHEAD_BYTES = 6, /* route, type, CRC and the gap between packets */
    STREAM_CRC = 0x4352,
    STREAM_LOST = 0x4c4f,
    STREAM_LATE = 0x4c41,
    /* no values of the machine, whose network keeps order: what experiments without order ask of one, at most */
    LATE_US = 40,
    REORDER_US = 160 /* there and back within AM-II's patience: nothing is sent again for that alone */
};

static void free_packet(struct myri_hw_packet *p)
{
    p->next = p->hw->free_packets;
    p->hw->free_packets = p;
}

static uint64_t position(const struct myri_hw_packet *p, uint32_t reach)
{
    return reach == p->n ? p->duration_ps : myri_machine_bytes(&p->hw->machine, MYRI_M_link_rate, reach);
}

static void fill(struct myri_card *c, uint32_t from, uint32_t to)
{
    struct myri_hw_packet *p = c->send.on;
    myri_lanai_read(&c->cpu, c->send.at + from, c->send.snapshot + from, to - from);
    memcpy(p->bytes + from, c->send.snapshot + from, to - from);
    if (p->bad && p->bad_bit / 8 >= from && p->bad_bit / 8 < to)
        p->bytes[p->bad_bit / 8] ^= (uint8_t)(1u << p->bad_bit % 8);
}

/* A packet of the card's is made up, of which so much is let out of the SRAM at once. */
void myri_net_begin(struct myri_card *c, uint32_t reach)
{
    struct myri_hw_packet *p = c->send.packet;
    p->duration_ps = myri_machine_bytes(&c->hw->machine, MYRI_M_link_rate, p->n + OVERHEAD_BYTES);
    p->released_ps = position(p, reach);
    p->limited = reach < p->n;
    p->bad = p->held = p->gone = 0;
    c->send.on = p;
    c->send.to = p->to;
    c->send.reach = reach;
    c->send.settled = c->send.released = 0;
    c->send.stalled = 0;
    fill(c, 0, reach);
}

static void going(struct rnl_sim *sim, struct rnl_sim_event *e)
{
    struct myri_hw *hw = rnl_sim_owner(sim);
    struct myri_card *c = &hw->card[e->entity];
    myri_card_wake(c, rnl_sim_now(sim));
    c->send.moving = c->send.flowing && !c->send.stalled; /* it may have been so short that it is gone */
    myri_card_share(c);
}

static void sent(struct rnl_sim *sim, struct rnl_sim_event *e)
{
    struct myri_hw *hw = rnl_sim_owner(sim);
    struct myri_card *c = &hw->card[e->entity];
    uint64_t now = rnl_sim_now(sim);
    myri_card_wake(c, now);
    c->send.on = NULL;
    c->send.flowing = 1; /* all of it has left */
    myri_card_settle(c, now);
    if (hw->fault[0])
        return;
    c->status |= SDONE;
    c->reg[SMARK] = c->send.n;
    c->send.moving = c->send.flowing = 0;
    myri_card_share(c);
    myri_hw_trace(hw, c->id, MYRI_LANE_SEND, c->send.from_ps, now, "send", c->send.n);
}

/* The packet that flows into this card has so much left: when its end is here, and when it has left its sender. */
static void set_end(struct myri_card *c, uint64_t now)
{
    struct myri_hw *hw = c->hw;
    struct myri_hw_packet *p = c->port.first;
    struct myri_card *from = &hw->card[p->from];
    if (p->released_ps < p->duration_ps) {
        uint64_t stops = now + (c->port.left_ps - (p->duration_ps - p->released_ps)) * 1000000 / c->port.speed;
        rnl_sim_at(hw->sim, &c->port.stall, stops + hw->t.receive_start);
        return;
    }
    rnl_sim_cancel(hw->sim, &c->port.stall);
    uint64_t end = now + c->port.left_ps * 1000000 / c->port.speed;
    rnl_sim_at(hw->sim, &c->port.done, end + hw->t.receive_start);
    if (p->held && from->send.flowing) {
        uint64_t leave = end > now + hw->t.head ? end - hw->t.head : now;
        rnl_sim_at(hw->sim, &from->send.done, leave > p->leave_ps ? leave : p->leave_ps);
    }
}

static void advance(struct myri_card *c, uint64_t now)
{
    c->port.left_ps -= myri_net_flowed(c, now);
    c->port.paced_ps = now;
}

/* No faster than its sender reads it from its SRAM, nor than this card writes it into its own. */
static void pace(struct myri_card *c)
{
    struct myri_hw_packet *p = c->port.first;
    struct myri_card *from = &c->hw->card[p->from];
    uint64_t now = myri_hw_now(c->hw), speed = c->net_speed;
    if (p->held && from->send.moving && from->net_speed < speed)
        speed = from->net_speed;
    if (speed == c->port.speed)
        return;
    advance(c, now);
    c->port.speed = speed;
    if (!c->port.stalled)
        set_end(c, now);
}

void myri_net_pace(struct myri_card *c)
{
    if (c->port.flowing)
        pace(c);
    if (!c->send.flowing)
        return;
    /* A short packet that was stopped may be there before its sender knows that it may go on: then nothing of it flows
     * any more, and the port is empty or has somebody else's. */
    struct myri_card *to = &c->hw->card[c->send.to];
    if (to->port.flowing && to->port.first->held && to->port.first->from == c->id)
        pace(to);
}

static void flow(struct myri_card *c, uint64_t now)
{
    struct myri_hw *hw = c->hw;
    struct myri_hw_packet *p = c->port.first;
    struct myri_card *from = &hw->card[p->from];
    myri_card_wake(c, now);
    if (p->n > c->reg[RML] - c->reg[RMP] || c->reg[RMP] < c->cpu.code_end || c->reg[RML] > c->cpu.sram_bytes) {
        myri_hw_fault(hw, "node %u has room for %u bytes, a packet of %u comes from node %u", c->id,
                      c->reg[RML] - c->reg[RMP], p->n, p->from);
        return;
    }
    c->port.flowing = 1;
    c->port.stalled = 0;
    c->port.settled = 0;
    c->port.from_ps = c->port.paced_ps = now;
    c->port.left_ps = p->duration_ps;
    c->port.speed = 1000000;
    if (p->held) {
        /* One that was stopped goes on when the signal to do so has come back to its sender, whose processor may be
         * that far ahead. */
        int stopped = now > p->entered_ps + hw->t.head;
        p->leave_ps = stopped ? now + hw->t.head : now;
        from->send.flowing = 1;
        rnl_sim_at(hw->sim, &from->send.go, p->leave_ps);
    } else if (!p->aside) {
        from->slack_used -= p->n;
    }
    set_end(c, now);
    myri_card_share(c);
}

static void next_packet(struct myri_card *c)
{
    struct myri_hw_packet *p = c->port.first;
    c->port.first = p->next;
    if (!c->port.first)
        c->port.last = NULL;
    free_packet(p);
}

/* All that its sender has let out is here. */
static void stall(struct rnl_sim *sim, struct rnl_sim_event *e)
{
    struct myri_hw *hw = rnl_sim_owner(sim);
    struct myri_card *c = &hw->card[e->entity], *from = &hw->card[c->port.first->from];
    uint64_t now = rnl_sim_now(sim);
    myri_card_wake(c, now);
    myri_card_wake(from, now);
    c->port.left_ps = c->port.first->duration_ps - c->port.first->released_ps;
    c->port.paced_ps = now;
    c->port.stalled = from->send.stalled = 1;
    myri_card_settle(c, now);
    myri_card_settle(from, now);
    from->send.moving = 0;
    myri_card_share(c);
    myri_card_share(from);
}

/* What its sender has let out a head's time ago goes on. */
static void released(struct rnl_sim *sim, struct rnl_sim_event *e)
{
    struct myri_hw *hw = rnl_sim_owner(sim);
    struct myri_card *from = &hw->card[e->entity];
    struct myri_hw_packet *p = from->send.on;
    struct myri_card *to = &hw->card[from->send.to];
    uint64_t now = rnl_sim_now(sim);
    uint32_t reach = from->send.releases[0].reach;
    memmove(from->send.releases, from->send.releases + 1, --from->send.released * sizeof from->send.releases[0]);
    if (from->send.released)
        rnl_sim_at(sim, e, from->send.releases[0].at_ps);
    if (to->port.first != p || !to->port.flowing) {
        p->released_ps = position(p, reach);
        return;
    }
    myri_card_wake(to, now);
    myri_card_wake(from, now);
    advance(to, now);
    p->released_ps = position(p, reach);
    if (to->port.stalled) {
        to->port.stalled = from->send.stalled = 0;
        from->send.moving = from->send.flowing && now >= p->leave_ps;
        myri_card_share(to);
        myri_card_share(from);
    }
    set_end(to, now);
}

void myri_net_release(struct myri_card *c, uint32_t reach, uint64_t at)
{
    if (reach == c->send.reach)
        return;
    uint32_t i = c->send.released < MYRI_HW_RELEASES ? c->send.released++ : MYRI_HW_RELEASES - 1;
    fill(c, c->send.reach, reach);
    c->send.reach = reach;
    c->send.releases[i].reach = reach;
    c->send.releases[i].at_ps = at + c->hw->t.head;
    if (i == 0)
        rnl_sim_at(c->hw->sim, &c->send.release, c->send.releases[0].at_ps);
}

static void arrived(struct rnl_sim *sim, struct rnl_sim_event *e)
{
    struct myri_hw *hw = rnl_sim_owner(sim);
    struct myri_card *c = &hw->card[e->entity];
    struct myri_hw_packet *p = c->port.first;
    uint64_t now = rnl_sim_now(sim);
    myri_card_wake(c, now);
    c->port.left_ps = 0;
    c->port.stalled = 1;
    myri_card_settle(c, now);
    if (hw->card[p->from].send.on == p)
        hw->card[p->from].send.on = NULL;
    c->port.flowing = 0;
    if (p->gone) {
        next_packet(c);
        myri_card_share(c);
        if (c->port.first)
            flow(c, now);
        return;
    }
    c->reg[RLEN] = c->reg[RMARK] = p->n;
    c->status |= RECV | (p->bad ? CRCERR : 0u);
    c->port.open = 0;
    myri_card_share(c);
    if (p->bad && hw->count.packets_bad == 0) {
        hw->first_bad.at_ps = now;
        hw->first_bad.from = p->from;
        hw->first_bad.to = c->id;
        hw->first_bad.bytes = p->n;
    }
    hw->count.packets_received++;
    hw->count.packets_bad += (uint64_t)p->bad;
    hw->count.bytes_received += p->n;
    myri_hw_trace(hw, c->id, MYRI_LANE_RECEIVE, c->port.from_ps, now, "receive", p->n);
    next_packet(c);
}

void myri_net_arm(struct rnl_sim *sim, struct rnl_sim_event *e)
{
    struct myri_hw *hw = rnl_sim_owner(sim);
    struct myri_card *c = &hw->card[e->entity];
    c->port.open = 1;
    if (c->port.first && !c->port.flowing)
        flow(c, rnl_sim_now(sim));
}

static void head_arrived(struct rnl_sim *sim, struct rnl_sim_event *e)
{
    struct myri_hw_packet *p = (struct myri_hw_packet *)((char *)e - offsetof(struct myri_hw_packet, event));
    struct myri_hw *hw = p->hw;
    struct myri_card *c = &hw->card[p->to];
    if (p->ordinal > c->port.newest[p->from])
        c->port.newest[p->from] = p->ordinal;
    else if (hw->count.packets_overtaken++ == 0 && hw->for_order)
        myri_hw_fault(hw,
                      "node %u: a packet of %u bytes of node %u comes behind one that left later, and %s takes the "
                      "network to keep packets in order",
                      c->id, p->n, p->from, hw->for_order);
    if (c->port.last)
        c->port.last->next = p;
    else
        c->port.first = p;
    c->port.last = p;
    if (c->port.first == p && c->port.open && !c->port.flowing)
        flow(c, rnl_sim_now(sim));
}

void myri_net_enter(struct rnl_sim *sim, struct rnl_sim_event *e)
{
    struct myri_hw *hw = rnl_sim_owner(sim);
    struct myri_card *c = &hw->card[e->entity];
    struct myri_hw_packet *p = c->send.packet;
    uint64_t now = rnl_sim_now(sim), chance = rnl_sim_random(rnl_sim_seed(sim), STREAM_CRC, c->id, c->ordinal++);
    uint64_t seed = rnl_sim_seed(sim), lost = rnl_sim_random(seed, STREAM_LOST, c->id, c->ordinal),
             late = rnl_sim_random(seed, STREAM_LATE, c->id, c->ordinal), head = hw->t.head;
    c->send.packet = NULL;
    c->send.entered_ps = p->entered_ps = now;
    p->ordinal = c->ordinal;
    if (rnl_sim_chance(chance, hw->bad_per_2_32)) { /* one bit, which the CRC always finds */
        p->bad_bit = (uint32_t)rnl_sim_below(chance << 32, (uint64_t)p->n * 8);
        p->bad = 1;
        if (p->bad_bit / 8 < c->send.reach)
            p->bytes[p->bad_bit / 8] ^= (uint8_t)(1u << p->bad_bit % 8);
    }
    hw->count.packets_sent++;
    hw->count.bytes_sent += p->n;
    int gone = rnl_sim_chance(lost, hw->lost_per_2_32);
    p->aside = !gone && (hw->reorder || rnl_sim_chance(late, hw->late_per_2_32));
    if (p->aside)
        head += (p->limited ? 0 : p->duration_ps) +
                rnl_sim_below(late << 32, (hw->reorder ? REORDER_US : LATE_US) * (uint64_t)1000000);
    if (p->limited) {
        p->aside = 0;
        p->held = 1;
        p->gone = gone;
        gone = 0;
        hw->count.packets_lost += (uint64_t)p->gone;
    } else if (gone || p->aside || c->slack_used + p->n <= (uint64_t)hw->machine.v[MYRI_M_slack]) {
        if (!gone && !p->aside)
            c->slack_used += p->n;
        myri_card_wake(c, now);
        c->send.moving = 1;
        myri_card_share(c);
        rnl_sim_at(sim, &c->send.done, now + p->duration_ps);
    } else {
        p->held = 1;
    }
    if (!p->held)
        c->send.on = NULL;
    if (gone) {
        hw->count.packets_lost++;
        free_packet(p);
        return;
    }
    rnl_sim_event_init(&p->event, head_arrived, p->to);
    rnl_sim_at(sim, &p->event, now + head);
}

void myri_net_init(struct myri_card *c)
{
    rnl_sim_event_init(&c->send.enter, myri_net_enter, c->id);
    rnl_sim_event_init(&c->send.go, going, c->id);
    rnl_sim_event_init(&c->send.done, sent, c->id);
    rnl_sim_event_init(&c->port.arm, myri_net_arm, c->id);
    rnl_sim_event_init(&c->send.release, released, c->id);
    rnl_sim_event_init(&c->port.done, arrived, c->id);
    rnl_sim_event_init(&c->port.stall, stall, c->id);
}
