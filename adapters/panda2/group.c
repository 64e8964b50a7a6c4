/* SPDX-License-Identifier: BSD-3-Clause
 *
 * group.c - groups with names, and the one of all. All processes deliver all joins, leaves and messages of all groups
 * in one order, so they agree on who is a member when, and count the groups alike; who is no member drops a message. */
#include "panda2.h"

#include <panda/pan_bg.h>

enum { NAME_MAX_BYTES = 128, GROUPS_MAX = 1024 };

struct PAN_GROUP_T {
    char name[NAME_MAX_BYTES];
    uint32_t number; /* the same at all processes */
    pan_pset_p members;
    void (*receive)(pan_msg_p msg_in); /* NULL: this process has not joined it */
};
struct pending { /* an own message that was not delivered yet */
    struct pending *next;
    pan_msg_p msg; /* NULL: who waits keeps it */
    uint32_t token;
    bool *done;
};

struct join { /* of this process, until it is a member: what comes next after the join is delivered */
    struct join *next;
    const char *name;
    void (*receive)(pan_msg_p msg_in);
};

static struct join *joins;
static pan_group_p group_of[GROUPS_MAX];
static uint32_t groups;
static struct pending *pending;
static uint32_t tokens;
static void (*bg_receive)(pan_msg_p message);
static pan_pset_p alive;
static pan_mutex_p lock; /* of all above; no upcall is made with it */
static pan_cond_p change;

void pan2_group_open(void)
{
    lock = pan_mutex_create();
    change = pan_cond_create(lock);
    alive = pan_pset_create();
    pan_pset_fill(alive);
}

void pan2_group_close(void)
{
    pan_pset_clear(alive);
    pan_cond_clear(change);
    pan_mutex_clear(lock);
}

void pan_group_init(void) {}
void pan_group_end(void) {}
void pan_bg_init(void) {}
void pan_bg_end(void) {}
void pan_bg_register(void (*func)(pan_msg_p message))
{
    bg_receive = func;
}

/* ---- delivering ---- */

static pan_group_p find(const char *name)
{
    for (uint32_t i = 0; i < groups; i++)
        if (strcmp(group_of[i]->name, name) == 0)
            return group_of[i];
    return NULL;
}

/* Returns NULL if there are too many. */
static pan_group_p find_or_make(const char *name)
{
    pan_group_p g = find(name);
    if (g || groups == GROUPS_MAX)
        return g;
    g = pan_calloc(1, sizeof *g);
    memcpy(g->name, name, strlen(name)); /* take_join has seen that it fits */
    g->members = pan_pset_create();
    g->number = groups;
    group_of[groups++] = g;
    return g;
}

static void take_join(struct pan2_arrived *in)
{
    char name[NAME_MAX_BYTES] = {0};
    if (in->n >= sizeof name)
        return;
    memcpy(name, in->data, in->n);
    pan_mutex_lock(lock);
    pan_group_p g = find_or_make(name);
    if (g)
        pan_pset_add(g->members, in->sender);
    for (const struct join *j = joins; g && j && in->sender == pan_my_pid(); j = j->next)
        if (strcmp(j->name, name) == 0)
            g->receive = j->receive;
    pan_cond_broadcast(change);
    pan_mutex_unlock(lock);
}

static void take_leave(struct pan2_arrived *in)
{
    pan_mutex_lock(lock);
    if (in->head.where < groups)
        pan_pset_del(group_of[in->head.where]->members, in->sender);
    pan_cond_broadcast(change);
    pan_mutex_unlock(lock);
}

/* The own message as it was sent, if it was given to Panda, or what came. */
static pan_msg_p message_of(struct pan2_arrived *in)
{
    struct pending *p = NULL;
    pan_msg_p m = NULL;
    if (in->sender == pan_my_pid()) {
        pan_mutex_lock(lock);
        for (struct pending **at = &pending; *at; at = &(*at)->next)
            if ((*at)->token == in->head.token) {
                p = *at;
                *at = p->next;
                break;
            }
        if (p && p->done)
            *p->done = true;
        pan_cond_broadcast(change);
        pan_mutex_unlock(lock);
    }
    if (p)
        m = p->msg;
    free(p);
    return m ? m : pan2_msg_take(in);
}

static void take_data(struct pan2_arrived *in)
{
    void (*receive)(pan_msg_p) = NULL;
    if (in->head.kind == PAN2_BG) {
        receive = bg_receive;
    } else {
        pan_mutex_lock(lock);
        pan_group_p g = in->head.where < groups ? group_of[in->head.where] : NULL;
        if (g && pan_pset_ismember(g->members, pan_my_pid()) && pan_pset_ismember(g->members, in->sender))
            receive = g->receive;
        pan_mutex_unlock(lock);
        if (!receive && in->sender != pan_my_pid())
            return;
    }
    pan_msg_p m = message_of(in);
    if (receive)
        receive(m);
    else
        pan_msg_clear(m);
}

void pan2_take_all(struct pan2_arrived *in)
{
    if (in->head.kind == PAN2_JOIN)
        take_join(in);
    else if (in->head.kind == PAN2_LEAVE)
        take_leave(in);
    else
        take_data(in);
}

/* A dead member does not count any more. */
void pan2_group_death(int pid)
{
    pan_mutex_lock(lock);
    pan_pset_del(alive, pid);
    pan_cond_broadcast(change);
    pan_mutex_unlock(lock);
}

/* ---- joining and leaving ---- */

static void must_wait(const char *function)
{
    if (pan2_in_upcall())
        pan2_fail("%s was called in an upcall, where there are no threads that could wait", function);
}

static bool is_member(const char *name)
{
    const struct PAN_GROUP_T *g = find(name);
    return g && pan_pset_ismember(g->members, pan_my_pid());
}

pan_group_p pan_group_join(char *group_name, void (*receive)(pan_msg_p msg_in))
{
    const struct pan2_head head = {.kind = PAN2_JOIN};
    const struct pan2_piece name = {group_name, strlen(group_name)};
    must_wait("pan_group_join");
    if (name.len >= NAME_MAX_BYTES)
        pan2_fail("the name of a group has at most %d characters: %s", NAME_MAX_BYTES - 1, group_name);
    struct join j = {.name = group_name, .receive = receive};
    pan_mutex_lock(lock);
    j.next = joins;
    joins = &j;
    pan_mutex_unlock(lock);
    pan2_send_all(&head, &name, 1);
    pan_mutex_lock(lock);
    while (!is_member(group_name))
        pan_cond_wait(change);
    for (struct join **at = &joins; *at; at = &(*at)->next)
        if (*at == &j) {
            *at = j.next;
            break;
        }
    pan_group_p g = find(group_name);
    pan_mutex_unlock(lock);
    return g;
}

void pan_group_leave(pan_group_p g)
{
    const struct pan2_head head = {.kind = PAN2_LEAVE, .where = g->number};
    must_wait("pan_group_leave");
    pan2_send_all(&head, NULL, 0);
    pan_mutex_lock(lock);
    while (pan_pset_ismember(g->members, pan_my_pid()))
        pan_cond_wait(change);
    g->receive = NULL;
    pan_mutex_unlock(lock);
}

void pan_group_clear(pan_group_p g)
{
    (void)g; /* its name and members are kept for those who are in it */
}

void pan_group_await_size(pan_group_p g, int n)
{
    must_wait("pan_group_await_size");
    pan_mutex_lock(lock);
    for (;;) {
        int size = 0;
        for (int i = pan_pset_find(g->members, 0); i >= 0; i = pan_pset_find(g->members, i + 1))
            size += pan_pset_ismember(alive, i);
        if (size >= n)
            break;
        pan_cond_wait(change);
    }
    pan_mutex_unlock(lock);
}

/* ---- sending ---- */

/* Keeps the message (NULL: the sender keeps it) until it is delivered here. Returns its number. */
static uint32_t note(pan_msg_p msg, bool *done)
{
    struct pending *p = pan_calloc(1, sizeof *p);
    pan_mutex_lock(lock);
    p->msg = msg;
    p->done = done;
    uint32_t token = p->token = tokens++;
    p->next = pending;
    pending = p;
    pan_mutex_unlock(lock);
    return token;
}

void pan_group_send(pan_group_p g, pan_msg_p msg)
{
    const struct pan2_piece piece = {msg->data, msg->size};
    if (!g->receive)
        pan2_fail("process %d sends to the group %s, which is closed: it is not a member", pan_my_pid(), g->name);
    const struct pan2_head head = {.kind = PAN2_DATA, .where = g->number, .token = note(msg, NULL)};
    pan2_send_all(&head, &piece, 1);
}

enum { SENDS_MAX = 256 };
static bool bg_done[SENDS_MAX], bg_used[SENDS_MAX];

int pan_bg_send_message(pan_msg_p message, int mode)
{
    const struct pan2_piece piece = {message->data, message->size};
    int entry = -1;
    if (mode != BG_MODE_ASYNC) {
        if (mode == BG_MODE_SYNC)
            must_wait("pan_bg_send_message with BG_MODE_SYNC");
        pan_mutex_lock(lock);
        for (entry = 0; entry < SENDS_MAX && bg_used[entry];)
            entry++;
        if (entry == SENDS_MAX)
            pan2_fail("%d messages to all are not finished", SENDS_MAX);
        bg_used[entry] = true;
        bg_done[entry] = false;
        pan_mutex_unlock(lock);
    }
    const struct pan2_head head = {.kind = PAN2_BG,
                                   .token = note(entry < 0 ? message : NULL, entry < 0 ? NULL : &bg_done[entry])};
    pan2_send_all(&head, &piece, 1);
    if (mode == BG_MODE_SYNC)
        pan_bg_finish_send(entry);
    return entry;
}

void pan_bg_finish_send(int entry)
{
    if (entry < 0 || entry >= SENDS_MAX || !bg_used[entry])
        pan2_fail("%d is no number of a message to all that was sent", entry);
    must_wait("pan_bg_finish_send");
    pan_mutex_lock(lock);
    while (!bg_done[entry])
        pan_cond_wait(change);
    bg_used[entry] = false;
    pan_mutex_unlock(lock);
}

/* ---- parameters, of which there are none ---- */

void pan_group_va_set_params(void *first, ...)
{
    (void)first;
}
void pan_group_va_get_params(void *first, ...)
{
    (void)first;
}
void pan_group_va_set_g_params(pan_group_p g, ...)
{
    (void)g;
}
void pan_group_va_get_g_params(pan_group_p g, ...)
{
    (void)g;
}
