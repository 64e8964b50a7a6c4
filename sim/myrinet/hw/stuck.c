/* SPDX-License-Identifier: BSD-3-Clause
 *
 * stuck.c - what is said of a run that ends before its tasks do: who waits, in which call and since when, what of the
 * cards goes on, and at which line of its firmware. */
#include "sim/myrinet/hw/hw.h"

#include "base/error.h"

#include <stdio.h>
#include <string.h>

void myri_card_fault(struct myri_card *c)
{
    const struct myri_lanai *m = &c->cpu;
    char line[80];
    myri_lanai_line(c->hw->lines, m->r[2], line, sizeof line);
    if (c->hw->lines && strncmp(line, "address", 7) != 0)
        myri_hw_fault(c->hw, "the firmware of node %u: %s, at address %u, in %s", c->id, m->fault, m->fault_at, line);
    else
        myri_hw_fault(c->hw, "the firmware of node %u: %s, at address %u", c->id, m->fault, m->fault_at);
}

static void add(char *text, size_t room, const char *more)
{
    size_t n = strlen(text);
    if (n + strlen(more) < room)
        memcpy(text + n, more, strlen(more) + 1);
}

/* An address of a card's memory, by the object that lies there. */
static void name_place(const struct myri_hw *hw, const struct myri_task *t, char *out, size_t n)
{
    const struct myri_lanai *m = &hw->card[t->host->id].cpu;
    if (t->in.host) {
        snprintf(out, n, " of host address %u", t->in.at);
        return;
    }
    snprintf(out, n, " of card address %u", t->in.at);
    for (uint32_t i = 0; i < m->symbols; i++)
        if (t->in.at >= m->symbol[i].at && t->in.at < m->symbol[i].at + m->symbol[i].bytes)
            snprintf(out, n, " of %s+%u", m->symbol[i].name, t->in.at - m->symbol[i].at);
}

static int tasks(const struct myri_hw *hw, char *text, size_t room)
{
    int shown = 0;
    for (uint32_t i = 0; i < hw->nodes; i++)
        for (uint32_t k = 0; k < hw->host[i].tasks; k++) {
            const struct myri_task *t = hw->host[i].task[k];
            char one[120], place[64] = "";
            if (t->ended || t->daemon || shown++ >= 2)
                continue;
            if (t->in.call && t->in.at != MYRI_HW_NO_WATCH)
                name_place(hw, t, place, sizeof place);
            if (t->in.call)
                snprintf(one, sizeof one, "%s node %u in %s%s since %.3f us", shown > 1 ? "," : "", i, t->in.call,
                         place, (double)t->in.since_ps / 1e6);
            else
                snprintf(one, sizeof one, "%s node %u", shown > 1 ? "," : "", i);
            add(text, room, one);
        }
    return shown;
}

/* Says of each card whether its program goes on, or something that it has started. */
static void cards(const struct myri_hw *hw, char *text, size_t room)
{
    int shown = 0;
    for (uint32_t i = 0; i < hw->nodes && shown < 2; i++) {
        const struct myri_card *c = &hw->card[i];
        char one[96], line[64];
        myri_lanai_line(hw->lines, c->cpu.r[2], line, sizeof line);
        if (!c->idle)
            snprintf(one, sizeof one, "; card %u works on, at %s", i, line);
        else if (c->send.on)
            snprintf(one, sizeof one, "; a packet of card %u waits for card %u", i, c->send.to);
        else if (c->port.first && !c->port.open)
            snprintf(one, sizeof one, "; a packet waits at card %u, whose port is not open", i);
        else
            continue;
        shown++;
        add(text, room, one);
    }
    if (!shown)
        add(text, room, "; no card's firmware finds anything to do");
}

int myri_hw_stuck(const struct myri_hw *hw)
{
    char text[sizeof rnl_last_error()->text];
    uint64_t next = rnl_sim_next(hw->sim);
    uint32_t n = hw->tasks_left;
    if (next == RNL_SIM_NEVER)
        snprintf(text, sizeof text, "%u task%s, and nothing more happens that could wake %s:", n,
                 n == 1 ? " waits" : "s wait", n == 1 ? "it" : "them");
    else
        snprintf(text, sizeof text,
                 "the run's limit of %.0f us ended it, as %u task%s not done:", (double)hw->horizon_ps / 1e6, n,
                 n == 1 ? " was" : "s were");
    tasks(hw, text, sizeof text);
    cards(hw, text, sizeof text);
    add(text, sizeof text, "; see runnel paper trace");
    return rnl_fail(RNL_ERR_ABORTED, "%s", text);
}
