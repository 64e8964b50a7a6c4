/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ether.c - datagrams over Ethernet; see ether.h. A datagram is in a place of each receiver from the moment at which it
 * is sent. */
#include "sim/myrinet/os/ether.h"

#include <string.h>

enum { FRAME_DATA = MYRI_ETHER_MOST - MYRI_FLIP_HEADER };

static uint32_t frames_of(uint32_t bytes)
{
    return bytes ? (bytes + FRAME_DATA - 1) / FRAME_DATA : 1;
}

uint64_t myri_ether_ps(uint32_t bytes)
{
    uint32_t frames = frames_of(bytes), last = bytes - (frames - 1) * FRAME_DATA + MYRI_FLIP_HEADER;
    last = last < MYRI_ETHER_LEAST ? MYRI_ETHER_LEAST : last;
    uint64_t wire = (uint64_t)frames * (MYRI_ETHER_PREAMBLE + MYRI_ETHER_FRAME) +
                    (uint64_t)(frames - 1) * (MYRI_ETHER_MOST + MYRI_ETHER_GAP) + last;
    return wire * MYRI_ETHER_BYTE_PS;
}

int myri_ether_open(struct myri_ether_port *p, struct myri_host *host, uint32_t most)
{
    uint32_t room = (most + 3) & ~3u;
    memset(p, 0, sizeof *p);
    p->host = host;
    p->most = most;
    p->flag = myri_host_take(host, 4, 0);
    uint32_t at = myri_host_take(host, MYRI_ETHER_PLACES * room, 0);
    for (uint32_t i = 0; i < MYRI_ETHER_PLACES; i++) {
        p->place[i].port = p;
        p->place[i].at = at + i * room;
    }
    host->hw->ether.port[host->id] = p;
    return host->hw->fault[0] ? -1 : 0;
}

static uint64_t kernel_ps(const struct myri_ether_port *p, uint32_t frames)
{
    return frames * myri_machine_us(&p->host->hw->machine, MYRI_M_datagram);
}

static void put_flag(struct myri_ether_port *p, int by)
{
    myri_host_set_word(p->host, p->flag, myri_host_word(p->host, p->flag) + (uint32_t)by);
}

static void served(struct rnl_sim *sim, struct rnl_sim_event *e)
{
    struct myri_ether_place *at = (struct myri_ether_place *)e;
    struct myri_ether_port *p = at->port;
    (void)sim;
    at->order = ++p->came;
    put_flag(p, 1);
    myri_host_interrupted(p->host);
    myri_host_written(p->host, p->flag, 4);
}

static int computes(const struct myri_host *h)
{
    for (uint32_t i = 0; i < h->tasks; i++)
        if (h->task[i]->watch == MYRI_HW_NO_WATCH && !h->task[i]->ended)
            return 1;
    return 0;
}

/* The last frame is there. What interrupts take is taken from the program, and from nobody while that sleeps. */
static void arrives(struct rnl_sim *sim, struct rnl_sim_event *e)
{
    struct myri_ether_place *at = (struct myri_ether_place *)e;
    struct myri_ether_port *p = at->port;
    uint32_t frames = frames_of(at->bytes);
    uint64_t one = p->host->hw->t.interrupt + kernel_ps(p, 1), now = rnl_sim_now(sim);
    p->host->hw->count.interrupts += frames;
    if (computes(p->host))
        p->host->stolen_ps += frames * one;
    p->interrupt_ps = (p->interrupt_ps > now ? p->interrupt_ps : now) + one;
    rnl_sim_event_init(e, served, p->host->id);
    rnl_sim_at(sim, e, p->interrupt_ps);
}

static void put(struct myri_ether_port *to, const struct myri_host *from, uint32_t at, uint32_t bytes, uint64_t there)
{
    struct myri_hw *hw = to->host->hw;
    struct myri_ether_place *place = to->place;
    while (place < to->place + MYRI_ETHER_PLACES && place->used)
        place++;
    if (place == to->place + MYRI_ETHER_PLACES) {
        myri_hw_fault(hw, "host %u: %d datagrams have come over Ethernet, nobody takes them, and one more comes",
                      to->host->id, MYRI_ETHER_PLACES);
        return;
    }
    place->used = 1;
    place->from = from->id;
    place->bytes = bytes;
    memcpy(to->host->memory + place->at, from->memory + at, bytes);
    rnl_sim_event_init(&place->event, arrives, to->host->id);
    rnl_sim_at(hw->sim, &place->event, there);
}

void myri_ether_send(struct myri_ether_port *p, struct myri_task *t, uint32_t to, uint32_t at, uint32_t bytes)
{
    struct myri_hw *hw = p->host->hw;
    if (bytes > p->most) {
        myri_hw_fault(hw, "host %u: a datagram of %u bytes, of which kernels have places for %u", p->host->id, bytes,
                      p->most);
        return;
    }
    if (myri_hw_now(hw) < p->left_ps)
        myri_task_spend(t, p->left_ps - myri_hw_now(hw), "wait for Ethernet");
    myri_task_spend(t, myri_machine_us(&hw->machine, MYRI_M_system_call), "system call");
    myri_task_spend(t, myri_machine_bytes(&hw->machine, MYRI_M_copy_rate, bytes), "copy");
    myri_task_spend(t, kernel_ps(p, frames_of(bytes)), "FLIP");
    uint64_t begins = hw->ether.free_ps > myri_hw_now(hw) ? hw->ether.free_ps : myri_hw_now(hw);
    p->left_ps = begins + myri_ether_ps(bytes);
    hw->ether.free_ps = p->left_ps + (uint64_t)MYRI_ETHER_GAP * MYRI_ETHER_BYTE_PS;
    for (uint32_t i = 0; i < hw->nodes && !hw->fault[0]; i++)
        if (hw->ether.port[i] && hw->ether.port[i] != p && (to == MYRI_ETHER_ALL || to == i))
            put(hw->ether.port[i], p->host, at, bytes, p->left_ps);
}

uint32_t myri_ether_take(struct myri_ether_port *p, struct myri_task *t, uint32_t to, uint32_t *from)
{
    const struct myri_machine *m = &p->host->hw->machine;
    struct myri_ether_place *oldest = NULL;
    for (struct myri_ether_place *at = p->place; at < p->place + MYRI_ETHER_PLACES; at++)
        if (at->order && (!oldest || at->order < oldest->order))
            oldest = at;
    if (!oldest)
        return 0;
    put_flag(p, -1);
    myri_task_spend(t, myri_machine_us(m, MYRI_M_system_call), "system call");
    myri_task_copy(t, to, oldest->at, oldest->bytes);
    *from = oldest->from;
    oldest->order = 0;
    oldest->used = 0;
    return oldest->bytes;
}
