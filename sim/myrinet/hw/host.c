/* SPDX-License-Identifier: BSD-3-Clause
 *
 * host.c - memory, pages and their pins, tasks and what their work costs, interrupts. Tasks of one host have a
 * processor each, save those that are processes of one (os/process.h); interrupts take time from them. */
#include "sim/myrinet/os/process.h"

#include "base/error.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { STACK = 64 << 10, GUARD = 64 << 10 }; /* guard: nothing, below the stack, so that who overruns it is stopped */

uint32_t myri_host_take(struct myri_host *h, uint32_t bytes, int pinned)
{
    uint32_t page = h->hw->page, pages = (bytes + page - 1) / page, first = h->taken;
    if (pages > h->dealt_from - h->taken) {
        myri_hw_fault(h->hw, "host %u: %u pages of memory are asked for, %u of %u are left", h->id, pages,
                      h->dealt_from - h->taken, h->hw->pages);
        return MYRI_HW_NO_WATCH;
    }
    h->taken += pages;
    memset(h->pins + first, pinned ? 1 : 0, pages);
    return first * page;
}

uint32_t myri_host_take_table(struct myri_host *h, uint32_t bytes)
{
    uint32_t at = myri_host_take(h, bytes, 1), page = h->hw->page;
    for (uint32_t i = 0; i < bytes && at != MYRI_HW_NO_WATCH; i += page)
        h->pins[(at + i) / page] = MYRI_PIN_TABLE;
    return at;
}

void myri_host_ring(struct myri_host *h, uint32_t at, uint32_t stride, uint32_t count)
{
    h->ring.flag = at + stride - 4;
    h->ring.stride = stride;
    h->ring.count = count;
}

uint32_t myri_host_word(const struct myri_host *h, uint32_t at)
{
    const uint8_t *p = h->memory + at;
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

void myri_host_set_word(struct myri_host *h, uint32_t at, uint32_t v)
{
    uint8_t *p = h->memory + at;
    p[0] = (uint8_t)(v >> 24);
    p[1] = (uint8_t)(v >> 16);
    p[2] = (uint8_t)(v >> 8);
    p[3] = (uint8_t)v;
}

/* ---- tasks ---- */

static void spend(struct myri_task *t, uint64_t ps, const char *what)
{
    struct myri_hw *hw = t->host->hw;
    uint64_t from = myri_hw_now(hw), until = from + ps;
    if (t->process) {
        myri_process_account(t->process);
        from = myri_hw_now(hw);
        myri_process_spend(t->process, ps);
        myri_hw_trace(hw, t->host->id, MYRI_LANE_HOST, from, myri_hw_now(hw), what, 0);
        return;
    }
    while (myri_hw_now(hw) < until || (t->host->stolen_ps && !t->serves)) {
        if (!t->serves) {
            until += t->host->stolen_ps;
            t->host->stolen_ps = 0;
        }
        if (myri_hw_now(hw) < until)
            rnl_sim_park_until(&t->coro, until);
    }
    myri_hw_trace(hw, t->host->id, MYRI_LANE_HOST, from, until, what, 0);
}

void myri_task_spend(struct myri_task *t, uint64_t ps, const char *what)
{
    int entered = myri_task_enters(t, "myri_task_spend", MYRI_HW_NO_WATCH, 1);
    spend(t, ps, what);
    myri_task_leaves(t, entered);
}

void myri_task_operate(struct myri_task *t, uint32_t operations, const char *what)
{
    int entered = myri_task_enters(t, "myri_task_operate", MYRI_HW_NO_WATCH, 1);
    myri_task_spend(t, operations * t->host->hw->t.operation, what);
    myri_task_leaves(t, entered);
}

void myri_task_nest(struct myri_task *t, uint32_t frames)
{
    const struct myri_hw *hw = t->host->hw;
    uint32_t windows = (uint32_t)hw->machine.v[MYRI_M_windows]; /* one of them is the trap's own */
    if (windows && frames > windows - 1)
        myri_task_spend(t, 2 * (frames - (windows - 1)) * hw->t.window_trap, "window traps");
}

void myri_task_copy_loop(struct myri_task *t, uint32_t words)
{
    enum { LINE = 32 / 4 };
    const struct myri_hw *hw = t->host->hw;
    uint64_t one = hw->t.operation;
    uint64_t shade =
        hw->t.combined ? hw->t.combined / LINE : hw->t.store * 4 / (uint64_t)hw->machine.v[MYRI_M_store_bytes];
    if (words)
        myri_task_spend(t, one + (words - 1) * (one > shade ? one - shade : 0), "copy loop");
}

void myri_task_gather(struct myri_task *t, uint32_t from, uint32_t *out, uint32_t words)
{
    myri_task_copy_loop(t, words);
    for (uint32_t i = 0; i < words; i++)
        out[i] = myri_host_word(t->host, from + 4 * i);
}

void myri_task_copy(struct myri_task *t, uint32_t to, uint32_t from, uint32_t bytes)
{
    struct myri_host *h = t->host;
    if ((uint64_t)to + bytes > MYRI_HW_MEMORY || (uint64_t)from + bytes > MYRI_HW_MEMORY) {
        myri_hw_fault(h->hw, "host %u copies %u bytes outside its memory", h->id, bytes);
        return;
    }
    myri_task_spend(t, myri_machine_bytes(&h->hw->machine, MYRI_M_copy_rate, bytes), "copy");
    memmove(h->memory + to, h->memory + from, bytes);
    h->hw->count.bytes_copied += bytes;
}

void myri_host_written(struct myri_host *h, uint32_t at, uint32_t n)
{
    for (uint32_t i = 0; i < h->tasks; i++) {
        struct myri_task *t = h->task[i];
        if (t->watch != MYRI_HW_NO_WATCH && t->watch_to + 4 > at && t->watch < at + n)
            rnl_sim_wake(&t->coro, rnl_sim_ticket(&t->coro), myri_hw_now(h->hw), 1);
    }
}

static void task_main(struct rnl_sim_coro *coro, void *arg)
{
    struct myri_task *t = arg;
    struct myri_hw *hw = t->host->hw;
    (void)coro;
    t->fn(t, t->arg);
    t->ended = 1;
    if (!t->daemon && --hw->tasks_left == 0)
        rnl_sim_stop(hw->sim);
}

static unsigned char *new_stack(void)
{
    unsigned char *p = mmap(NULL, GUARD + STACK, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return NULL;
    if (mprotect(p + GUARD, STACK, PROT_READ | PROT_WRITE) == 0)
        return p + GUARD;
    munmap(p, GUARD + STACK);
    return NULL;
}

struct myri_task *myri_hw_task(struct myri_hw *hw, uint32_t node, void (*fn)(struct myri_task *, void *), void *arg)
{
    struct myri_host *h = &hw->host[node];
    struct myri_task *t = h->tasks < MYRI_HW_TASKS ? calloc(1, sizeof *t) : NULL;
    if (!t || !(t->stack = new_stack())) {
        free(t);
        myri_hw_fault(hw, "host %u: no room for a task more than %u", node, h->tasks);
        return NULL;
    }
    t->host = h;
    t->fn = fn;
    t->arg = arg;
    t->map_to = hw->card[node].cpu.sram_bytes;
    t->watch = MYRI_HW_NO_WATCH;
    h->task[h->tasks++] = t;
    rnl_sim_coro_init(&t->coro, hw->sim, MYRI_HW_NODES + node, t->stack, STACK);
    if (rnl_sim_coro_start(&t->coro, 0, task_main, t) < 0)
        myri_hw_fault(hw, "no memory for a task");
    else
        hw->tasks_left++;
    return t;
}

void myri_hw_daemon(struct myri_task *t)
{
    if (!t)
        return;
    t->daemon = 1;
    t->host->hw->tasks_left--;
}

/* ---- interrupts ---- */

uint64_t myri_task_await_interrupt(struct myri_task *t, uint64_t seen)
{
    int entered = myri_task_enters(t, "myri_task_await_interrupt", MYRI_HW_NO_WATCH, 1);
    while (t->host->interrupts == seen && !t->host->hw->fault[0])
        rnl_sim_park(&t->coro);
    myri_task_leaves(t, entered);
    return t->host->interrupts;
}

uint64_t myri_task_compute(struct myri_task *t, uint64_t ps, uint64_t seen)
{
    struct myri_host *h = t->host;
    while (ps && h->interrupts == seen && !h->hw->fault[0]) {
        uint64_t from = myri_hw_now(h->hw), stolen = h->stolen_ps;
        h->stolen_ps = 0;
        ps += stolen;
        t->computes = 1;
        rnl_sim_park_until(&t->coro, from + ps);
        t->computes = 0;
        ps -= myri_hw_now(h->hw) - from;
        myri_hw_trace(h->hw, h->id, MYRI_LANE_HOST, from, myri_hw_now(h->hw), "compute", 0);
    }
    return ps;
}

void myri_host_interrupted(struct myri_host *h)
{
    h->interrupts++;
    for (uint32_t i = 0; i < h->tasks; i++)
        if (h->task[i]->serves || h->task[i]->computes)
            rnl_sim_wake(&h->task[i]->coro, rnl_sim_ticket(&h->task[i]->coro), myri_hw_now(h->hw), 1);
}

static void interrupted(struct rnl_sim *sim, struct rnl_sim_event *e)
{
    struct myri_hw *hw = rnl_sim_owner(sim);
    struct myri_host *h = &hw->host[e->entity];
    if (!h->interrupt_served) {
        uint64_t cost = h->driver_cost ? h->driver_cost(h, h->interrupt_value) : 0;
        h->interrupt_served = 1;
        h->stolen_ps += hw->t.interrupt + cost;
        rnl_sim_at(sim, e, rnl_sim_now(sim) + cost);
        return;
    }
    h->interrupt_served = 0;
    hw->count.interrupts++;
    if (h->driver)
        h->driver(h, h->interrupt_value);
    myri_host_interrupted(h);
    h->interrupt_value = h->interrupt_waits;
    h->interrupt_waits = 0;
    if (h->interrupt_value)
        rnl_sim_at(sim, e, rnl_sim_now(sim) + hw->t.interrupt);
}

void myri_host_interrupt(struct myri_host *h, uint64_t at, uint32_t value)
{
    if (rnl_sim_scheduled(&h->interrupt)) {
        h->interrupt_waits |= value;
        return;
    }
    h->interrupt_value = value;
    rnl_sim_at(h->hw->sim, &h->interrupt, at + h->hw->t.interrupt);
}

int myri_host_init(struct myri_host *h, struct myri_hw *hw, uint32_t id)
{
    h->hw = hw;
    h->id = id;
    h->taken = 1; /* page 0 is nobody's: a zero address is none */
    h->dealt_from = hw->pages;
    h->memory = myri_memory_new(MYRI_HW_MEMORY);
    if (!h->memory)
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for the %d bytes of a host", MYRI_HW_MEMORY);
    rnl_sim_event_init(&h->interrupt, interrupted, id);
    return 0;
}

void myri_host_fini(struct myri_host *h)
{
    for (uint32_t i = 0; i < h->tasks; i++) {
        rnl_sim_coro_kill(&h->task[i]->coro);
        munmap(h->task[i]->stack - GUARD, GUARD + STACK);
        free(h->task[i]);
    }
    myri_memory_free(h->memory, MYRI_HW_MEMORY);
}
