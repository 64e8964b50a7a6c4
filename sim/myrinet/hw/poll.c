/* SPDX-License-Identifier: BSD-3-Clause
 *
 * poll.c - how tasks look for what their card writes: at a word of host memory that is in the cache until then, or
 * across the I/O bus, where a flag on the card would be. */
#include "sim/myrinet/os/process.h"

/* A look for a word that is taken to be on the card, where any word there takes as long. */
static void look_across(struct myri_task *t)
{
    uint32_t word;
    (void)myri_task_load(t, t->map_from, &word);
}

uint32_t myri_task_look(struct myri_task *t, uint32_t at)
{
    if (t->host->hw->looks_across)
        look_across(t);
    else
        myri_task_spend(t, t->host->hw->t.poll, "poll");
    return myri_host_word(t->host, at);
}

/* How many words behind the first the one is that has changed, or n. */
static uint32_t changed(const struct myri_task *t, const uint32_t *at, const uint32_t *old, uint32_t n, uint32_t first)
{
    uint32_t k = 0;
    while (k < n && myri_host_word(t->host, at[(first + k) % n]) == old[(first + k) % n])
        k++;
    return k;
}

static uint32_t poll_among(struct myri_task *t, const uint32_t *at, const uint32_t *old, uint32_t n, uint32_t first,
                           uint64_t until)
{
    struct myri_hw *hw = t->host->hw;
    uint64_t from = myri_hw_now(hw);
    uint32_t k, least = at[0], most = at[0];
    for (k = 0; hw->looks_across; k = (k + 1) % n) {
        uint32_t which = (first + k) % n;
        look_across(t);
        if (myri_host_word(t->host, at[which]) != old[which])
            return which;
        if (myri_hw_now(hw) >= until || hw->fault[0])
            return n;
    }
    for (uint32_t i = 1; i < n; i++) {
        least = at[i] < least ? at[i] : least;
        most = at[i] > most ? at[i] : most;
    }
    while ((k = changed(t, at, old, n, first)) == n) {
        if (myri_hw_now(hw) >= until || hw->fault[0])
            return n;
        t->watch = least;
        t->watch_to = most;
        uint64_t end = t->process ? myri_process_quantum_end(t->process) : RNL_SIM_NEVER;
        end = end < until ? end : until;
        if (end == RNL_SIM_NEVER)
            rnl_sim_park(&t->coro);
        else
            rnl_sim_park_until(&t->coro, end);
        t->watch = MYRI_HW_NO_WATCH;
        if (t->process)
            myri_process_account(t->process);
    }
    myri_hw_trace(hw, t->host->id, MYRI_LANE_HOST, from, myri_hw_now(hw), "wait", 0);
    /* Looks at those before it, and then: the line that the card has written is not in the cache any more. */
    myri_task_spend(t, k * hw->t.poll + hw->t.miss, "miss");
    return (first + k) % n;
}

uint32_t myri_task_poll_among(struct myri_task *t, const uint32_t *at, const uint32_t *old, uint32_t n, uint32_t first,
                              uint64_t until)
{
    int entered = myri_task_enters(t, n == 1 ? "myri_task_poll" : "myri_task_poll_among", at[first], 1);
    uint32_t which = poll_among(t, at, old, n, first, until);
    myri_task_leaves(t, entered);
    return which;
}

uint32_t myri_task_poll(struct myri_task *t, uint32_t at, uint32_t old, uint64_t until)
{
    return myri_task_poll_among(t, &at, &old, 1, 0, until) ? old : myri_host_word(t->host, at);
}

uint32_t myri_task_poll_by_call(struct myri_task *t, uint32_t at, uint32_t old, uint64_t until, uint32_t operations)
{
    uint64_t from = myri_hw_now(t->host->hw), call = operations * t->host->hw->t.operation;
    for (int again = t->host->hw->looks_across; again;
         again = myri_hw_now(t->host->hw) < until && !t->host->hw->fault[0]) {
        look_across(t);
        myri_task_spend(t, call, "extract");
        if (myri_host_word(t->host, at) != old)
            return myri_host_word(t->host, at);
    }
    if (t->host->hw->looks_across)
        return old;
    uint32_t word = myri_task_poll(t, at, old, until);
    if (word != old && call) /* calls follow one another; the one that is on when the word comes has looked before */
        myri_task_spend(t, call - (myri_hw_now(t->host->hw) - from) % call, "extract");
    return word;
}
