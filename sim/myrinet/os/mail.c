/* SPDX-License-Identifier: BSD-3-Clause
 *
 * mail.c - letters; see mail.h. A letter is in a place of its box from the moment at which it is sent. */
#include "sim/myrinet/os/mail.h"

#include <string.h>

void myri_mail_init(struct myri_mailbox *b, struct myri_host *host)
{
    memset(b, 0, sizeof *b);
    b->host = host;
}

static void arrive(struct myri_mail_place *at)
{
    struct myri_mailbox *b = at->box;
    at->under_way = 0;
    at->order = ++b->came;
    b->waiting++;
    if (b->owner)
        myri_process_wake(b->owner);
}

static void served(struct rnl_sim *sim, struct rnl_sim_event *e)
{
    (void)sim;
    arrive((struct myri_mail_place *)e);
}

/* The interrupt takes the processor's time from who has it, and from nobody where none does. */
static void serve(struct rnl_sim *sim, struct rnl_sim_event *e)
{
    struct myri_mail_place *at = (struct myri_mail_place *)e;
    struct myri_hw *hw = rnl_sim_owner(sim);
    const struct myri_process *owner = at->box->owner;
    if (!owner || !owner->os || owner->os->busy)
        at->box->host->stolen_ps += hw->t.interrupt;
    rnl_sim_event_init(e, served, at->box->host->id);
    rnl_sim_at(sim, e, rnl_sim_now(sim) + hw->t.interrupt);
}

/* One interrupt at a time. */
static void over_ethernet(struct rnl_sim *sim, struct rnl_sim_event *e)
{
    struct myri_host *h = ((struct myri_mail_place *)e)->box->host;
    uint64_t at = h->letters_ps > rnl_sim_now(sim) ? h->letters_ps : rnl_sim_now(sim);
    h->hw->count.interrupts++;
    h->letters_ps = at + h->hw->t.interrupt;
    rnl_sim_event_init(e, serve, h->id);
    rnl_sim_at(sim, e, at);
}

void myri_mail_send(struct myri_process *from, struct myri_mailbox *to, const struct myri_letter *letter)
{
    struct myri_hw *hw = from->os->host->hw;
    struct myri_mail_place *at = to->place;
    myri_task_spend(from->task, from->os->signal_ps, "letter");
    while (at < to->place + MYRI_MAIL_MOST && (at->order || at->under_way))
        at++;
    if (at == to->place + MYRI_MAIL_MOST) {
        myri_hw_fault(hw, "host %u: %d letters wait in a box, and nobody takes them", to->host->id, MYRI_MAIL_MOST);
        return;
    }
    at->letter = *letter;
    at->box = to;
    at->under_way = 1;
    if (to->host == from->os->host) {
        arrive(at);
        return;
    }
    rnl_sim_event_init(&at->event, over_ethernet, to->host->id);
    rnl_sim_at(hw->sim, &at->event, myri_hw_now(hw) + myri_machine_us(&hw->machine, MYRI_M_ethernet));
}

int myri_mail_take(struct myri_mailbox *b, struct myri_letter *out, uint64_t until)
{
    struct myri_process *p = b->owner;
    struct myri_mail_place *oldest = NULL;
    while (!b->waiting) {
        if (myri_hw_now(b->host->hw) >= until || b->host->hw->fault[0])
            return 0;
        myri_process_sleep_until(p, until);
    }
    for (struct myri_mail_place *at = b->place; at < b->place + MYRI_MAIL_MOST; at++)
        if (at->order && (!oldest || at->order < oldest->order))
            oldest = at;
    *out = oldest->letter;
    oldest->order = 0;
    b->waiting--;
    myri_task_spend(p->task, p->os->signal_ps, "letter");
    return 1;
}
