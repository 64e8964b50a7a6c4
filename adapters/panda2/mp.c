/* SPDX-License-Identifier: BSD-3-Clause
 *
 * mp.c - message passing: what comes for a map goes to its handler, to a receive that waits, or into its queue. Numbers
 * from MAPS_MAX on are of receives on DIRECT_MAP. */
#include "panda2.h"

enum { MAPS_MAX = 64, RECEIVES_MAX = 1024 };

struct map {
    bool used;
    void (*handler)(int map, pan_msg_p msg);
    pan_msg_p first, last; /* that nobody has received */
};
struct receive {
    pan_msg_p msg; /* NULL: this number is free */
    int map;
    uint32_t turn; /* they get messages in the order in which they were made */
    bool done;
};

static struct map map_of[MAPS_MAX];
static struct receive receive_of[RECEIVES_MAX];
static uint32_t turns;
static pan_mutex_p lock;
static pan_cond_p change;

void pan2_mp_open(void)
{
    lock = pan_mutex_create();
    change = pan_cond_create(lock);
    map_of[DIRECT_MAP].used = true;
}

void pan2_mp_close(void)
{
    for (int map = 0; map < MAPS_MAX; map++)
        if (map_of[map].used)
            pan_mp_free_map(map);
    pan_cond_clear(change);
    pan_mutex_clear(lock);
}

void pan_mp_init(void) {}

void pan_mp_end(void) {}

int pan_mp_register_map(void)
{
    for (int i = 1; i < MAPS_MAX; i++)
        if (!map_of[i].used) {
            map_of[i].used = true;
            return i;
        }
    pan2_fail("there are %d maps already", MAPS_MAX - 1);
}

static struct map *the_map(int map)
{
    if (map < 0 || map >= MAPS_MAX || !map_of[map].used)
        pan2_fail("map %d was not registered", map);
    return &map_of[map];
}

void pan_mp_clear_map(int map, void (*clear)(pan_msg_p message))
{
    struct map *m = the_map(map);
    for (;;) {
        pan_mutex_lock(lock);
        pan_msg_p msg = m->first;
        if (msg)
            m->first = msg->next;
        pan_mutex_unlock(lock);
        if (!msg)
            return;
        clear(msg);
    }
}

void pan_mp_free_map(int map)
{
    pan_mp_clear_map(map, pan_msg_clear);
    the_map(map)->handler = NULL;
    the_map(map)->used = map == DIRECT_MAP;
}

void pan_mp_register_async_receive(int map, void (*handler)(int map, pan_msg_p msg))
{
    the_map(map)->handler = handler;
}

/* ---- sending ---- */

int pan_mp_send_message(int cpu, int entry, pan_msg_p message, int mode)
{
    const struct pan2_head head = {.kind = PAN2_MP, .where = (uint32_t)entry};
    const struct pan2_piece piece = {message->data, message->size};
    pan2_send_one(cpu, &head, &piece, 1);
    if (mode == MODE_ASYNC)
        pan_msg_clear(message);
    return 0;
}

void pan_mp_finish_send(int entry)
{
    (void)entry; /* the message was copied when it was sent */
}

int pan_mp_poll_send(int entry)
{
    (void)entry;
    return 1;
}

/* ---- receiving ---- */

static void fill(struct receive *r, pan_msg_p from)
{
    pan_msg_copy(from, r->msg);
    r->done = true;
    pan_cond_broadcast(change);
}

static struct receive *first_receive(int map)
{
    struct receive *found = NULL;
    for (int i = 0; i < RECEIVES_MAX; i++) {
        struct receive *r = &receive_of[i];
        if (r->msg && !r->done && r->map == map && (!found || (int32_t)(r->turn - found->turn) < 0))
            found = r;
    }
    return found;
}

void pan2_take_mp(struct pan2_arrived *in)
{
    uint32_t where = in->head.where;
    struct map *m = where < MAPS_MAX && where != DIRECT_MAP ? &map_of[where] : NULL;
    struct receive *r = where >= MAPS_MAX && where - MAPS_MAX < RECEIVES_MAX ? &receive_of[where - MAPS_MAX] : NULL;
    pan_msg_p msg = pan2_msg_take(in);
    if (m && m->handler) {
        m->handler((int)where, msg);
        return;
    }
    pan_mutex_lock(lock);
    if (m && m->used)
        r = first_receive((int)where);
    else if (r && (!r->msg || r->done || r->map != DIRECT_MAP))
        r = NULL;
    if (r) {
        fill(r, msg);
    } else if (m && m->used) {
        msg->next = NULL;
        if (m->first)
            m->last->next = msg;
        else
            m->first = msg;
        m->last = msg;
        msg = NULL;
    }
    pan_mutex_unlock(lock);
    pan_msg_clear(msg);
}

int pan_mp_receive_message(int map, pan_msg_p message, int mode)
{
    struct map *m = the_map(map);
    int i = 0;
    pan_mutex_lock(lock);
    while (i < RECEIVES_MAX && receive_of[i].msg)
        i++;
    if (i == RECEIVES_MAX)
        pan2_fail("%d receives wait already", RECEIVES_MAX);
    struct receive *r = &receive_of[i];
    *r = (struct receive){.msg = message, .map = map, .turn = turns++};
    pan_msg_p there = m->first;
    if (there) {
        m->first = there->next;
        fill(r, there);
    }
    pan_mutex_unlock(lock);
    pan_msg_clear(there);
    if (mode == MODE_SYNC)
        pan_mp_finish_receive(MAPS_MAX + i);
    return MAPS_MAX + i;
}

static struct receive *the_receive(int entry)
{
    int i = entry - MAPS_MAX;
    if (i < 0 || i >= RECEIVES_MAX || !receive_of[i].msg)
        pan2_fail("%d is no number of a receive that waits", entry);
    return &receive_of[i];
}

void pan_mp_finish_receive(int entry)
{
    struct receive *r = the_receive(entry);
    pan_mutex_lock(lock);
    while (!r->done)
        pan_cond_wait(change);
    r->msg = NULL;
    pan_mutex_unlock(lock);
}

int pan_mp_poll_receive(int entry)
{
    struct receive *r = the_receive(entry);
    pan_poll();
    pan_mutex_lock(lock);
    bool done = r->done;
    if (done)
        r->msg = NULL;
    pan_mutex_unlock(lock);
    return done;
}
