/* SPDX-License-Identifier: BSD-3-Clause
 *
 * kernel.c - frames of AM-II; see kernel.h. */
#include "sim/myrinet/systems/am2/kernel.h"

#include <stddef.h>

enum { TICK_US = 100, PATIENCE = 4, TRIES = 100, STAYS_US = 600, ASKS_US = 2 };

#define PS(us)            ((us) * (uint64_t)1000000)
#define IN_CARD(k, field) ((k)->card + (uint32_t)offsetof(struct am2_card, field))

static uint32_t frame_at(const struct am2_kernel *k, uint32_t frame)
{
    return IN_CARD(k, frame) + frame * (uint32_t)sizeof(struct am2_frame);
}

static void order(struct am2_kernel *k, uint32_t what, struct am2_resident *r)
{
    myri_card_wake(k->card_of, myri_hw_now(k->hw));
    myri_card_poke(k->card_of, IN_CARD(k, order_frame), r->frame);
    myri_card_poke(k->card_of, IN_CARD(k, order_at), r->image);
    myri_card_poke(k->card_of, IN_CARD(k, order), what);
    r->place = what == AM2_MOVE_IN ? AM2_PLACE_COMING : AM2_PLACE_GOING;
    k->moves = r;
}

static void bring_in(struct am2_kernel *k, struct am2_resident *r, uint32_t frame)
{
    r->frame = frame;
    k->in[frame] = r;
    order(k, AM2_MOVE_IN, r);
}

static void send_out(struct am2_kernel *k, struct am2_resident *r)
{
    r->asked = 0;
    order(k, AM2_MOVE_OUT, r);
}

/* Has it brought in, if that can begin now: a move at a time, and each stays a while on the card. */
static void want(struct am2_kernel *k, struct am2_resident *r)
{
    uint64_t now = myri_hw_now(k->hw), stays = PS(STAYS_US);
    struct am2_resident *oldest = NULL;
    if (r->place != AM2_PLACE_HOST || k->moves || k->next)
        return;
    for (uint32_t f = 0; f < AM2_FRAMES; f++) {
        struct am2_resident *is = k->in[f];
        if (!is) {
            bring_in(k, r, f);
            return;
        }
        if (now - is->since_ps >= stays && (!oldest || is->since_ps < oldest->since_ps))
            oldest = is;
    }
    if (!oldest)
        return;
    k->next = r;
    oldest->asked = 1;
    if (!oldest->held)
        send_out(k, oldest);
}

static void has_moved(struct am2_kernel *k)
{
    struct am2_resident *r = k->moves, *next = k->next;
    if (!r || myri_card_peek(k->card_of, IN_CARD(k, order)))
        return;
    k->moves = NULL;
    if (r->place == AM2_PLACE_COMING) {
        r->place = AM2_PLACE_CARD;
        r->since_ps = myri_hw_now(k->hw);
        k->moved_in++;
        return;
    }
    r->place = AM2_PLACE_HOST;
    k->in[r->frame] = NULL;
    k->moved_out++;
    k->next = NULL;
    for (uint32_t f = 0; f < AM2_FRAMES; f++)
        if (k->in[f])
            k->in[f]->asked = 0;
    if (next && next->place == AM2_PLACE_HOST)
        bring_in(k, next, r->frame);
}

static void driver(struct myri_host *h, uint32_t value)
{
    struct am2_kernel *k = h->driver_arg;
    if (value & AM2_INTERRUPT_MOVED)
        has_moved(k);
    if (!(value & AM2_INTERRUPT_WANTED))
        return;
    uint32_t wanted = myri_card_peek(k->card_of, IN_CARD(k, wanted));
    myri_card_wake(k->card_of, myri_hw_now(k->hw));
    myri_card_poke(k->card_of, IN_CARD(k, wanted), 0);
    if (wanted && wanted <= AM2_ENDPOINTS && k->of[wanted - 1])
        want(k, k->of[wanted - 1]);
}

static struct am2_kernel *kernel_of(struct am2_kernel *own, struct myri_hw *hw, uint32_t node)
{
    struct myri_host *h = &hw->host[node];
    if (h->driver_arg)
        return h->driver_arg;
    own->hw = hw;
    own->host = h;
    own->card_of = &hw->card[node];
    own->card = myri_card_symbol(hw, "card");
    h->driver_arg = own;
    h->driver = driver;
    myri_card_poke(own->card_of, IN_CARD(own, nodes), hw->nodes);
    myri_card_poke(own->card_of, IN_CARD(own, tick), 2 * TICK_US);
    myri_card_poke(own->card_of, IN_CARD(own, patience), PATIENCE);
    myri_card_poke(own->card_of, IN_CARD(own, tries), TRIES);
    for (uint32_t i = 0; i < hw->nodes; i++)
        myri_card_poke(own->card_of, IN_CARD(own, route) + 4 * i, ROUTE_VALID | i);
    return own;
}

static void set_word(const struct am2_resident *r, size_t offset, uint32_t value)
{
    if (r->place == AM2_PLACE_CARD)
        myri_card_poke(r->kernel->card_of, frame_at(r->kernel, r->frame) + (uint32_t)offset, value);
    else
        myri_host_set_word(r->kernel->host, r->image + (uint32_t)offset, value);
}

uint32_t am2_kernel_peek(const struct am2_resident *r, uint32_t offset)
{
    return r->place == AM2_PLACE_HOST || r->place == AM2_PLACE_COMING
               ? myri_host_word(r->kernel->host, r->image + offset)
               : myri_card_peek(r->kernel->card_of, frame_at(r->kernel, r->frame) + offset);
}

int am2_kernel_open(struct am2_resident *r, struct am2_kernel *own, struct myri_hw *hw, uint32_t node,
                    uint32_t endpoint, struct myri_space *space, uint32_t out_at, uint32_t in_at)
{
    struct am2_kernel *k = kernel_of(own, hw, node);
    if (endpoint >= AM2_ENDPOINTS || k->of[endpoint])
        return -1;
    r->kernel = k;
    r->space = space;
    r->endpoint = endpoint;
    r->image = myri_host_take(k->host, sizeof(struct am2_frame), 1);
    r->place = AM2_PLACE_HOST;
    if (hw->fault[0])
        return -1;
    k->of[endpoint] = r;
    uint32_t frame = myri_card_peek(k->card_of, IN_CARD(k, frames));
    if (frame < AM2_FRAMES) {
        myri_card_poke(k->card_of, IN_CARD(k, frames), frame + 1);
        r->place = AM2_PLACE_CARD;
        r->frame = frame;
        k->in[frame] = r;
    }
    set_word(r, offsetof(struct am2_frame, endpoint), endpoint);
    set_word(r, offsetof(struct am2_frame, out_at), out_at);
    set_word(r, offsetof(struct am2_frame, in_at), in_at);
    myri_card_poke(k->card_of, IN_CARD(k, where) + 4 * endpoint,
                   r->place == AM2_PLACE_CARD ? AM2_IN_FRAME + frame : AM2_IN_HOST);
    return 0;
}

void am2_kernel_name(struct am2_resident *r, uint32_t k, uint32_t node, uint32_t endpoint)
{
    set_word(r, offsetof(struct am2_frame, name) + 4 * (size_t)k, AM2_VALID | node << 8 | endpoint);
}

static void see(struct am2_resident *r, int sees)
{
    uint32_t at = frame_at(r->kernel, r->frame);
    r->task->map_from = sees ? at + (uint32_t)offsetof(struct am2_frame, ready) : 0;
    r->task->map_to = sees ? at + (uint32_t)sizeof(struct am2_frame) : 0;
}

void am2_hold(struct am2_resident *r)
{
    struct am2_kernel *k = r->kernel;
    if (r->place != AM2_PLACE_CARD && !k->hw->fault[0]) {
        k->faults++;
        myri_task_spend(r->task, myri_machine_us(&k->hw->machine, MYRI_M_system_call), "fault");
    }
    while (r->place != AM2_PLACE_CARD && !k->hw->fault[0]) {
        want(k, r);
        myri_task_spend(r->task, PS(ASKS_US), "endpoint comes");
    }
    r->held++;
    see(r, r->place == AM2_PLACE_CARD);
}

void am2_release(struct am2_resident *r)
{
    see(r, 0);
    if (!--r->held && r->asked && !r->kernel->moves)
        send_out(r->kernel, r);
}

void am2_kernel_close(struct am2_resident *r)
{
    struct am2_kernel *k = r->kernel;
    myri_task_spend(r->task, myri_machine_us(&k->hw->machine, MYRI_M_system_call), "close");
    while (r->place != AM2_PLACE_HOST && !k->hw->fault[0]) {
        if (r->place == AM2_PLACE_CARD && !k->moves && !r->asked)
            send_out(k, r);
        myri_task_spend(r->task, PS(ASKS_US), "endpoint goes");
    }
    if (k->next == r)
        k->next = NULL;
    k->of[r->endpoint] = NULL;
    r->place = AM2_PLACE_NONE;
    myri_card_wake(k->card_of, myri_hw_now(k->hw));
    myri_card_poke(k->card_of, IN_CARD(k, where) + 4 * r->endpoint, AM2_NO_ENDPOINT);
}
