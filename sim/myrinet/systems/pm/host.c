/* SPDX-License-Identifier: BSD-3-Clause
 *
 * host.c - PM's library, with and without its pin-down cache; see host.h. */
#include "sim/myrinet/systems/pm/gang.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { LIBRARY = 35, HANDLER = 12 }; /* host operations of a call */

#define IN_CARD(m, field) ((m)->card + (uint32_t)offsetof(struct pm_card, field))

/* ---- the pin-down cache ---- */

static uint32_t find(const struct pm_pins *p, uint32_t page)
{
    uint32_t i = 0;
    while (i < p->held && p->entry[i].page != page)
        i++;
    return i;
}

static uint32_t oldest(const struct pm_pins *p)
{
    uint32_t least = 0;
    for (uint32_t i = 1; i < p->held; i++)
        if (p->entry[i].used < p->entry[least].used)
            least = i;
    return least;
}

void pm_pin(struct pm_pins *p, struct myri_task *t, uint32_t at, uint32_t bytes)
{
    struct myri_host *h = t->host;
    uint32_t size = h->hw->page, last = (at + bytes - 1) / size, missed = 0;
    p->limit = PM_PINNED / size;
    for (uint32_t page = at / size; page <= last; page++) {
        uint32_t i = find(p, page);
        if (i < p->held) {
            p->hits++;
        } else {
            missed++;
            if (p->held < p->limit) {
                p->held++;
            } else {
                i = oldest(p);
                h->pins[p->entry[i].page] = 0;
            }
            p->entry[i].page = page;
            h->pins[page] = 1;
        }
        p->entry[i].used = ++p->uses;
    }
    p->misses += missed;
    myri_task_spend(t, missed * myri_machine_us(&h->hw->machine, MYRI_M_pin_page), "pin");
}

/* ---- the library ---- */

int pm_open(struct pm *m, struct myri_side *side)
{
    m->side = side;
    m->card = myri_card_symbol(side->hw, "card");
    m->known_free = PM_RING;
    m->out = myri_host_take(side->host, PM_RING * PM_BUFFER, 1);
    m->buffers = side->buffers ? side->buffers : PM_RING;
    m->given = m->buffers;
    m->in = myri_host_take(side->host, m->buffers * PM_SLOT, 1);
    (void)myri_host_take(side->host, side->largest, 0); /* behind them: where experiments put pieces together */
    if (side->hw->fault[0])
        return -1;
    for (uint32_t i = 0; i < m->buffers; i++)
        myri_card_poke(side->card, IN_CARD(m, receive) + 4 * i, m->in + i * PM_SLOT);
    myri_card_poke(side->card, IN_CARD(m, after_refusal), PM_POSTED);
    for (uint32_t i = 0; i < side->nodes; i++)
        myri_card_poke(side->card, IN_CARD(m, route) + 4 * i, ROUTE_VALID | i);
    return 0;
}

uint32_t pm_get_send_buffer(struct pm *m)
{
    if (m->known_free == 0) { /* slots are used in turn */
        uint32_t state;
        if (myri_task_await(m->side->task, IN_CARD(m, send) + 16 * (m->sent & (PM_RING - 1)), PM_FREE, 0, &state) == 0)
            m->known_free = 1;
    }
    return m->out + (m->sent & (PM_RING - 1)) * PM_BUFFER;
}

static void post(struct pm *m, uint32_t to, uint32_t at, uint32_t bytes)
{
    uint32_t slot = IN_CARD(m, send) + 16 * (m->sent & (PM_RING - 1));
    const uint32_t what[3] = {to, bytes, at};
    (void)pm_get_send_buffer(m);
    m->known_free--;
    myri_task_store_words(m->side->task, slot + 4, what, 3);
    myri_task_store(m->side->task, slot, PM_POSTED);
    m->sent++;
}

void pm_send(struct pm *m, uint32_t to, uint32_t at, uint32_t bytes)
{
    myri_task_operate(m->side->task, LIBRARY, "library");
    post(m, to, at, bytes);
}

void pm_send_many(struct pm *m, const uint32_t *to, uint32_t n, uint32_t at, uint32_t bytes)
{
    myri_task_operate(m->side->task, LIBRARY, "library");
    for (uint32_t i = 0; i < n; i++)
        post(m, to[i] | (i ? PM_SAME : 0), at, bytes);
}

int pm_send_done(struct pm *m)
{
    uint32_t done = m->sent - 1;
    myri_task_load(m->side->task, IN_CARD(m, done), &done);
    return done == m->sent;
}

int pm_receive(struct pm *m, uint64_t until)
{
    uint32_t end = m->in + m->next * PM_SLOT + PM_BUFFER,
             mark = myri_task_poll_by_call(m->side->task, end, 0, until, LIBRARY);
    if (!mark)
        return 0;
    myri_task_operate(m->side->task, HANDLER, "handler");
    m->got_bytes = mark & 0xffff;
    m->got_from = mark >> 16 & 0x7fff;
    m->got_at = end - ((m->got_bytes + 3) & ~3u);
    return 1;
}

void pm_put_receive_buffer(struct pm *m)
{
    myri_host_set_word(m->side->host, m->in + m->next * PM_SLOT + PM_BUFFER, 0);
    myri_task_store(m->side->task, IN_CARD(m, receive) + 4 * (m->given++ % PM_RING), m->in + m->next * PM_SLOT);
    m->next = (m->next + 1) % m->buffers;
}

/* ---- experiments ---- */

struct pm_host_state {
    struct pm pm;
    enum { BUFFERS, CACHED, UNCACHED, CACHE } pinning; /* BUFFERS: its own; others: what is pinned of a user's pages */
    struct pm_pins pins;
    uint32_t held, filled; /* filled: of a message being put together */
};

static int open_with(struct myri_side *side, int pinning)
{
    struct pm_host_state *st = side->state;
    st->pinning = pinning;
    for (uint32_t at = 0; pinning == CACHED && at < side->reach + side->hw->page; at += side->hw->page)
        side->host->pins[(side->out + at) / side->hw->page] = 1;
    return pm_open(&st->pm, side);
}

static int open_side(struct myri_side *side)
{
    return open_with(side, BUFFERS);
}

static int open_cached(struct myri_side *side)
{
    return open_with(side, CACHED);
}

static int open_uncached(struct myri_side *side)
{
    return open_with(side, UNCACHED);
}

static int open_cache(struct myri_side *side)
{
    return open_with(side, CACHE);
}

/* A message that lies in user memory in whole pages: each is a unit, as pages are not in a row physically. All are
 * pinned before the first one is sent, and those of the message before released. */
static void send_pages(struct myri_side *side, uint32_t to, uint32_t bytes)
{
    struct pm_host_state *st = side->state;
    struct myri_host *h = side->host;
    uint32_t page = side->hw->page, pages = (bytes + page - 1) / page, unit = page < PM_BUFFER ? page : PM_BUFFER;
    if (st->pinning == CACHE) {
        myri_task_operate(side->task, LIBRARY, "library");
        pm_pin(&st->pins, side->task, side->out, bytes);
    } else if (st->pinning == UNCACHED) {
        myri_task_spend(side->task, pages * myri_machine_us(&side->hw->machine, MYRI_M_pin_page), "pin");
        memset(h->pins + side->out / page, 1, pages);
    }
    for (uint32_t at = 0; at < bytes; at += unit)
        pm_send(&st->pm, to, side->out + at, bytes - at < unit ? bytes - at : unit);
    uint32_t done;
    (void)myri_task_await(side->task, IN_CARD(&st->pm, done), st->pm.sent, 0, &done);
}

/* In place: what the experiment writes into a buffer is there when the buffer is taken. */
static void send_message(struct myri_side *side, uint32_t to, uint32_t bytes)
{
    struct pm_host_state *st = side->state;
    uint32_t unit = side->packet ? side->packet : PM_BUFFER;
    if (st->pinning != BUFFERS) {
        send_pages(side, to, bytes);
        return;
    }
    for (uint32_t at = 0; at < bytes; at += unit) {
        uint32_t n = bytes - at < unit ? bytes - at : unit, buffer = pm_get_send_buffer(&st->pm);
        for (uint32_t k = 0; k < n; k += 4)
            myri_host_set_word(side->host, buffer + k, myri_host_word(side->host, side->out + at + k));
        pm_send(&st->pm, to, buffer, n);
    }
}

static void send_to_all(struct myri_side *side, uint32_t bytes)
{
    struct pm_host_state *st = side->state;
    uint32_t to[PM_NODES], n = 0, done;
    for (uint32_t node = 0; node < side->nodes; node++)
        if (node != side->node)
            to[n++] = node;
    for (uint32_t at = 0; at < bytes; at += PM_BUFFER) {
        uint32_t part = bytes - at < PM_BUFFER ? bytes - at : PM_BUFFER, buffer = pm_get_send_buffer(&st->pm);
        for (uint32_t k = 0; k < part; k += 4)
            myri_host_set_word(side->host, buffer + k, myri_host_word(side->host, side->out + at + k));
        pm_send_many(&st->pm, to, n, buffer, part);
        (void)myri_task_await(side->task, IN_CARD(&st->pm, done), st->pm.sent, 0, &done); /* a copy may be refused */
    }
}

static uint32_t receive_message(struct myri_side *side, uint32_t bytes, uint64_t until)
{
    struct pm_host_state *st = side->state;
    uint32_t got = st->filled; /* of one that was not whole when the last call gave up */
    if (st->held) {
        pm_put_receive_buffer(&st->pm);
        st->held = 0;
    }
    while (got < bytes) {
        if (!pm_receive(&st->pm, until))
            return 0;
        side->got = st->pm.got_at;
        side->from = st->pm.got_from;
        got += st->pm.got_bytes;
        st->filled = got;
        if (got < bytes) { /* used where it is; the pieces are put together without time, for checking */
            for (uint32_t k = 0; k < st->pm.got_bytes; k += 4)
                myri_host_set_word(side->host, st->pm.in + st->pm.buffers * PM_SLOT + got - st->pm.got_bytes + k,
                                   myri_host_word(side->host, st->pm.got_at + k));
            pm_put_receive_buffer(&st->pm);
        }
    }
    if (got > st->pm.got_bytes) {
        uint32_t whole = st->pm.in + st->pm.buffers * PM_SLOT;
        for (uint32_t k = 0; k < st->pm.got_bytes; k += 4)
            myri_host_set_word(side->host, whole + got - st->pm.got_bytes + k,
                               myri_host_word(side->host, st->pm.got_at + k));
        side->got = whole;
    }
    st->held = 1;
    st->filled = 0;
    return got;
}

static void finish(struct myri_side *side)
{
    struct pm_host_state *st = side->state;
    if (st->held)
        pm_put_receive_buffer(&st->pm);
    st->held = 0;
}

/* ---- jobs that take turns ---- */

static void *open_jobs(struct myri_hw *hw, struct myri_side *side, uint32_t jobs)
{
    struct pm_gang *g = malloc(sizeof *g);
    if (!g || pm_gang_init(g, hw, jobs) < 0) {
        free(g);
        return NULL;
    }
    for (uint32_t i = 0; i < jobs * hw->nodes; i++) {
        struct pm_host_state *st = side[i].state;
        if (pm_gang_open(g, i / hw->nodes, &st->pm, &side[i]) < 0) {
            free(g);
            return NULL;
        }
    }
    pm_gang_start(g);
    return g;
}

static void join_job(void *gang, uint32_t job, struct myri_side *side)
{
    pm_gang_join(gang, job, side);
}

static void leave_job(void *gang, uint32_t job, struct myri_side *side)
{
    pm_gang_leave(gang, job, side);
}

static uint32_t turns_of(const void *gang, double *exchange_us, double *turn_us)
{
    const struct pm_gang *g = gang;
    *exchange_us = (double)g->exchanged_ps / 1e6 / g->nodes;
    *turn_us = (double)g->turned_ps / 1e6;
    return g->turns;
}

static const struct myri_turns turns = {
    .most = PM_JOBS, .open = open_jobs, .join = join_job, .leave = leave_job, .taken = turns_of};

/* A packet is a part of a pinned buffer, or what lies within a page of user memory. */
enum { PM_MOST = 8 * PM_BUFFER }; /* bytes of a message in buffers */
static const struct myri_issues issues = {.transfer = "DMA, own buffers",
                                          .translation = "none: own buffers",
                                          .protection = "none",
                                          .control = "poll",
                                          .reliability = "card ACK/NACK",
                                          .to_many = "card sends each"};
#define PM_SYSTEM(called, words, firmware, opener, largest, ...)                                                      \
    {                                                                                                                 \
        .name = called, .title = words, .source = "Dubnicki et al. 1997, section 7; Bhoedjang et al. 1998; PM's own", \
        .object = "systems/pm/" firmware, .machines = "H-P H-PP", .state_bytes = sizeof(struct pm_host_state),        \
        .most = largest, .look = LIBRARY, .buffers_most = PM_RING, .open = opener, .send = send_message,              \
        .receive = receive_message, .finish = finish, .piece = PM_BUFFER, .by_page = largest != PM_MOST,              \
        .to_all = largest == PM_MOST ? send_to_all : NULL, .packet_least = largest == PM_MOST ? 4 : 0,                \
        .packet_most = largest == PM_MOST ? PM_BUFFER : 0, .turns = __VA_ARGS__, .issues = &issues,                   \
        .on_crc = "PM takes the hardware to be reliable, so it has no time-outs (Bhoedjang et al. 1998)"              \
    }
const struct myri_system myri_system_pm =
    PM_SYSTEM("pm", "PM, from its pinned buffers", "firmware", open_side, PM_MOST, NULL);
const struct myri_system myri_system_pm_cached = PM_SYSTEM(
    "pm-cached", "PM, from user pages that are all in its pin-down cache", "firmware", open_cached, 1 << 20, NULL);
const struct myri_system myri_system_pm_uncached = PM_SYSTEM(
    "pm-uncached", "PM, from user pages that are pinned for each message", "firmware", open_uncached, 1 << 20, NULL);
static_assert(PM_PINNED >= 1 << 20, "a message's pages are all pinned while it is on its way");
const struct myri_system myri_system_pm_cache =
    PM_SYSTEM("pm-cache", "PM, from user pages through its pin-down cache of 1 MB", "firmware", open_cache, 1 << 20,
              NULL, .by_place = 1);
const struct myri_system myri_system_pm_gang =
    PM_SYSTEM("pm-gang", "PM, whose jobs take turns", "firmware-gang", open_side, PM_MOST, &turns);
const struct myri_system myri_system_pm_tuned =
    PM_SYSTEM("pm-tuned", "PM with firmware written for speed alone", "firmware-tuned", open_side, PM_MOST, NULL);
const struct myri_system myri_system_pm_tuned_cached =
    PM_SYSTEM("pm-tuned-cached", "PM-tuned, from user pages that are all in its pin-down cache", "firmware-tuned",
              open_cached, 1 << 20, NULL);
const struct myri_system myri_system_pm_tuned_uncached =
    PM_SYSTEM("pm-tuned-uncached", "PM-tuned, from user pages that are pinned for each message", "firmware-tuned",
              open_uncached, 1 << 20, NULL);
