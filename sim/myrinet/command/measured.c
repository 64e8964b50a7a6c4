/* SPDX-License-Identifier: BSD-3-Clause
 *
 * measured.c - the experiments behind `runnel paper matrix`; see measured.h. */
#include "sim/myrinet/command/measured.h"

#include <math.h>
#include <stdio.h>

enum { SHORT = 4, BLOCK = 1024, LONG = 65536 };

struct counted {
    uint64_t worked[2];
    uint32_t firmware_bytes, sram_bytes, pinned;
};

static void count_cards(void *arg, const struct myri_hw *hw, const struct myri_side *sides)
{
    struct counted *c = arg;
    (void)sides;
    for (int i = 0; i < 2; i++)
        c->worked[i] = hw->card[i].worked;
    c->firmware_bytes = hw->card[0].cpu.code_end;
    c->sram_bytes = hw->card[0].cpu.data_end;
    c->pinned = 0;
    for (uint32_t k = 0; k < hw->pages; k++)
        c->pinned += hw->host[0].pins[k] != 0;
}

static void begin(const struct myri_cmd_options *o, const struct myri_machine *machine,
                  const struct myri_system *system, enum myri_measure m, uint32_t bytes, struct myri_experiment *x)
{
    myri_experiment_init(x, system, machine, m, bytes);
    myri_cmd_prepare(o, x);
}

static double bus_bytes(const struct myri_hw_count *c)
{
    return (double)(c->dma_to_host + c->dma_from_host + c->bytes_stored + 4 * c->loads);
}

int myri_cmd_count(const struct myri_experiment *asked, struct myri_cmd_counts *out)
{
    struct myri_experiment x = *asked;
    struct counted one, two;
    struct myri_outcome first, o;
    x.inspect = count_cards;
    x.inspect_arg = &one;
    int rc = myri_experiment_run(&x, &first);
    x.inspect_arg = &two;
    double n = x.count;
    x.count *= 2;
    rc = rc < 0 ? rc : myri_experiment_run(&x, &o);
    if (rc < 0)
        return rc;
    out->take_us = o.value;
    out->sender_instructions = (double)(two.worked[0] - one.worked[0]) / n;
    out->receiver_instructions = (double)(two.worked[1] - one.worked[1]) / n;
    out->bus_bytes = (bus_bytes(&o.count) - bus_bytes(&first.count)) / n;
    out->copied = (double)(o.count.bytes_copied - first.count.bytes_copied) / n;
    out->interrupts = (double)(o.count.interrupts - first.count.interrupts) / n;
    out->firmware_bytes = two.firmware_bytes;
    out->sram_bytes = two.sram_bytes;
    out->pinned = two.pinned;
    return 0;
}

static int per_message(const struct myri_experiment *x, struct myri_cmd_measured *out)
{
    struct myri_cmd_counts c;
    if (myri_cmd_count(x, &c) < 0)
        return -1;
    out->take_us = c.take_us;
    out->sender_instructions = c.sender_instructions;
    out->receiver_instructions = c.receiver_instructions;
    out->firmware_bytes = c.firmware_bytes;
    out->sram_bytes = c.sram_bytes;
    out->pinned = c.pinned;
    return 0;
}

static int interrupts(struct myri_experiment x, enum myri_attention attention, double *out)
{
    enum { LOOK_US = 20 };
    struct myri_outcome o;
    x.slow_us = LOOK_US;
    x.attention = attention;
    x.notify = 1;
    *out = NAN;
    if (!x.system->notifies)
        return 0;
    if (myri_experiment_run(&x, &o) < 0)
        return -1;
    *out = (double)o.count.interrupts / x.count;
    return 0;
}

/* NAN where there is no such figure: the experiment cannot be (RNL_ERR_ARG), or overruns the ring of a system that
 * nothing keeps from it. Every other end of a run is a fault, and told. */
static int value_or_none(const struct myri_experiment *x, double *out)
{
    struct myri_outcome o;
    int rc = myri_experiment_run(x, &o);
    *out = rc < 0 ? NAN : o.value;
    return rc == RNL_ERR_ARG || (rc == RNL_ERR_ABORTED && x->system->overrun) ? 0 : rc;
}

static int overload(struct myri_experiment x, const struct myri_cmd_options *o, double *out)
{
    enum { SENDERS = 4, MESSAGES = 100, SLOW_US = 20 };
    x.senders = SENDERS;
    x.slow_us = SLOW_US;
    if (!o->count)
        x.count = MESSAGES;
    return value_or_none(&x, out);
}

static int to_all(struct myri_experiment x, uint32_t receivers, double *out)
{
    enum { MESSAGES = 100 };
    struct myri_outcome o;
    x.receivers = receivers;
    x.count = x.count < MESSAGES ? x.count : MESSAGES;
    *out = NAN;
    if (!x.system->to_all)
        return 0;
    if (myri_experiment_run(&x, &o) < 0)
        return -1;
    *out = o.value;
    return 0;
}

/* The second firmware of a system has its name and "-tuned"; where there is none, or no room for it, no figure. */
static int tuned(const struct myri_cmd_options *o, const struct myri_machine *machine, const struct myri_system *plain,
                 double *out)
{
    char name[64];
    struct myri_experiment x;
    snprintf(name, sizeof name, "%s-tuned", plain->name);
    const struct myri_system *system = myri_system_find(name);
    *out = NAN;
    if (!system || !myri_experiment_fits(system, machine))
        return 0;
    begin(o, machine, system, MYRI_ONE_WAY, SHORT, &x);
    return value_or_none(&x, out);
}

int myri_cmd_measured(const struct myri_cmd_options *o, const struct myri_machine *machine,
                      const struct myri_system *system, struct myri_cmd_measured *m)
{
    struct myri_experiment x;
    struct myri_outcome out;
    begin(o, machine, system, MYRI_ONE_WAY, SHORT, &x);
    if (myri_experiment_run(&x, &out) < 0)
        return myri_cmd_failed();
    m->one_way_us = out.value;
    if (tuned(o, machine, system, &m->tuned_us) < 0)
        return myri_cmd_failed();
    begin(o, machine, system, MYRI_SEND_COST, SHORT, &x);
    if (myri_experiment_run(&x, &out) < 0)
        return myri_cmd_failed();
    m->send_us = out.value;
    begin(o, machine, system, MYRI_TAKE_COST, SHORT, &x);
    if (per_message(&x, m) < 0)
        return myri_cmd_failed();
    begin(o, machine, system, MYRI_STREAM_RATE, SHORT, &x);
    double rate;
    if (value_or_none(&x, &rate) < 0)
        return myri_cmd_failed();
    m->gap_us = rate > 0 ? SHORT / rate : NAN;

    begin(o, machine, system, MYRI_ANSWER, SHORT, &x);
    if (interrupts(x, MYRI_BY_POLLS, &m->interrupts_looking) < 0 ||
        interrupts(x, MYRI_BY_INTERRUPTS, &m->interrupts_never) < 0)
        return myri_cmd_failed();

    uint32_t longest = system->most < LONG ? system->most : LONG;
    m->long_bytes = longest;
    begin(o, machine, system, MYRI_PING_RATE, longest, &x);
    if (myri_experiment_run(&x, &out) < 0)
        return myri_cmd_failed();
    m->rate_long = out.value;
    begin(o, machine, system, MYRI_PING_RATE, BLOCK, &x);
    if (myri_experiment_run(&x, &out) < 0)
        return myri_cmd_failed();
    m->rate_1k = out.value;
    double bytes = 2.0 * x.count * BLOCK;
    const struct myri_hw_count *c = &out.count;
    m->copies = (double)c->bytes_copied / bytes;
    m->bus_bytes = bus_bytes(c) / bytes;

    begin(o, machine, system, MYRI_TO_ALL, SHORT, &x);
    if (to_all(x, 8, &m->to_8_us) < 0 || to_all(x, 16, &m->to_16_us) < 0)
        return myri_cmd_failed();
    begin(o, machine, system, MYRI_GOODPUT, 128, &x);
    if (overload(x, o, &m->goodput) < 0)
        return myri_cmd_failed();
    begin(o, machine, system, MYRI_WIRE_COST, 128, &x);
    return overload(x, o, &m->wire) < 0 ? myri_cmd_failed() : 0;
}
