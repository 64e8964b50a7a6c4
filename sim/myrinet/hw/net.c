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
 * its sender is free a head's time earlier, but not before the signal to go on has come back. */
#include "sim/engine/random.h"
#include "sim/myrinet/hw/hw.h"

#include <stdlib.h>
#include <string.h>

enum {
    OVERHEAD_BYTES = 6,
    STREAM_CRC = 0x4352,
    STREAM_LOST = 0x4c4f,
    STREAM_LATE = 0x4c41,
    LATE_US = 40
}; /* route, type, CRC and the gap between packets */

static void free_packet(struct myri_hw_packet *p)
{
    p->next = p->hw->free_packets;
    p->hw->free_packets = p;
}

static void going(struct rnl_sim *sim, struct rnl_sim_event *e)
{
    struct myri_hw *hw = rnl_sim_owner(sim);
    struct myri_card *c = &hw->card[e->entity];
    myri_card_wake(c, rnl_sim_now(sim));
    c->send.moving = c->send.flowing; /* it may have been so short that it is gone */
    myri_card_share(c);
}

static void sent(struct rnl_sim *sim, struct rnl_sim_event *e)
{
    struct myri_hw *hw = rnl_sim_owner(sim);
    struct myri_card *c = &hw->card[e->entity];
    uint64_t now = rnl_sim_now(sim);
    myri_card_wake(c, now);
    for (uint32_t i = 0; i < c->send.n; i++)
        if (myri_lanai_byte(&c->cpu, c->send.at + i) != c->send.snapshot[i]) {
            myri_hw_fault(hw, "node %u: byte %u of a packet changed in its buffer while it was on the wire", c->id, i);
            return;
        }
    c->status |= SDONE;
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
    uint64_t end = now + c->port.left_ps * 1000000 / c->port.speed;
    rnl_sim_at(hw->sim, &c->port.done, end + hw->t.receive_start);
    if (p->held && from->send.flowing) {
        uint64_t leave = end > now + hw->t.head ? end - hw->t.head : now;
        rnl_sim_at(hw->sim, &from->send.done, leave > p->leave_ps ? leave : p->leave_ps);
    }
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
    uint64_t went = (now - c->port.paced_ps) * c->port.speed / 1000000;
    c->port.left_ps -= went < c->port.left_ps ? went : c->port.left_ps;
    c->port.paced_ps = now;
    c->port.speed = speed;
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

static void arrived(struct rnl_sim *sim, struct rnl_sim_event *e)
{
    struct myri_hw *hw = rnl_sim_owner(sim);
    struct myri_card *c = &hw->card[e->entity];
    struct myri_hw_packet *p = c->port.first;
    uint64_t now = rnl_sim_now(sim);
    myri_card_wake(c, now);
    for (uint32_t i = 0; i < p->n; i++)
        myri_lanai_set_byte(&c->cpu, c->reg[RMP] + i, p->bytes[i]);
    c->reg[RLEN] = p->n;
    c->status |= RECV | (p->bad ? CRCERR : 0u);
    c->port.open = c->port.flowing = 0;
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
    c->port.first = p->next;
    if (!c->port.first)
        c->port.last = NULL;
    free_packet(p);
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
    struct myri_card *c = &p->hw->card[p->to];
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
    c->send.to = p->to;
    p->duration_ps = myri_machine_bytes(&hw->machine, MYRI_M_link_rate, p->n + OVERHEAD_BYTES);
    p->entered_ps = now;
    if (rnl_sim_chance(chance, hw->bad_per_2_32)) { /* one bit, which the CRC always finds */
        uint32_t bit = (uint32_t)rnl_sim_below(chance << 32, (uint64_t)p->n * 8);
        p->bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        p->bad = 1;
    }
    hw->count.packets_sent++;
    hw->count.bytes_sent += p->n;
    int gone = rnl_sim_chance(lost, hw->lost_per_2_32);
    p->aside = !gone && rnl_sim_chance(late, hw->late_per_2_32);
    if (p->aside)
        head += p->duration_ps + rnl_sim_below(late << 32, LATE_US * (uint64_t)1000000);
    if (gone || p->aside || c->slack_used + p->n <= (uint64_t)hw->machine.v[MYRI_M_slack]) {
        if (!gone && !p->aside)
            c->slack_used += p->n;
        myri_card_wake(c, now);
        c->send.moving = 1;
        myri_card_share(c);
        rnl_sim_at(sim, &c->send.done, now + p->duration_ps);
    } else {
        p->held = 1;
    }
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
    rnl_sim_event_init(&c->port.done, arrived, c->id);
}
