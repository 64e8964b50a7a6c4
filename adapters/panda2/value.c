/* SPDX-License-Identifier: BSD-3-Clause
 *
 * value.c - time and sets of processes. */
#include "panda2.h"

#include <math.h>
#include <time.h>

enum { BILLION = 1000000000, SET_BYTES = 128 /* of 1,024 processes */ };

static struct pan2_time infinity = {.s = INT64_MAX, .ns = 0}, zero;
pan_time_p pan_time_infinity = &infinity, pan_time_zero = &zero;

static void normal(struct pan2_time *t)
{
    t->s += t->ns / BILLION;
    t->ns %= BILLION;
    if (t->ns < 0) {
        t->ns += BILLION;
        t->s--;
    }
}

static bool endless(const struct pan2_time *t)
{
    return t->s == INT64_MAX;
}

pan_time_p pan_time_create(void)
{
    return pan_calloc(1, sizeof(struct pan2_time));
}

void pan_time_clear(pan_time_p t)
{
    free(t);
}

void pan_time_copy(pan_time_p to, pan_time_p from)
{
    *to = *from;
}

void pan_time_get(pan_time_p now)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    *now = (struct pan2_time){.s = t.tv_sec, .ns = t.tv_nsec};
}

int64_t pan2_time_left(const struct pan2_time *until)
{
    struct pan2_time now;
    if (endless(until))
        return -1;
    pan_time_get(&now);
    int64_t s = until->s - now.s, limit = INT64_MAX / BILLION - 1;
    int64_t ns = (s > limit ? limit : s) * BILLION + until->ns - now.ns;
    return ns > 0 ? ns : 0;
}

void pan_time_set(pan_time_p t, long seconds, unsigned long nanoseconds)
{
    *t = (struct pan2_time){.s = seconds + (int64_t)(nanoseconds / BILLION), .ns = (long)(nanoseconds % BILLION)};
}

int pan_time_cmp(pan_time_p a, pan_time_p b)
{
    if (a->s != b->s)
        return a->s < b->s ? -1 : 1;
    return a->ns < b->ns ? -1 : a->ns > b->ns;
}

void pan_time_add(pan_time_p t, pan_time_p delta)
{
    if (endless(t) || endless(delta)) {
        *t = infinity;
        return;
    }
    t->s += delta->s;
    t->ns += delta->ns;
    normal(t);
}

void pan_time_sub(pan_time_p t, pan_time_p delta)
{
    if (endless(t))
        return;
    t->s -= delta->s;
    t->ns -= delta->ns;
    normal(t);
}

void pan_time_mul(pan_time_p t, int nr)
{
    if (endless(t))
        return;
    int64_t ns = (int64_t)t->ns * nr;
    t->s = t->s * nr + ns / BILLION;
    t->ns = (long)(ns % BILLION);
    normal(t);
}

void pan_time_div(pan_time_p t, int nr)
{
    if (endless(t))
        return;
    int64_t rest = t->s % nr;
    t->s /= nr;
    t->ns = (long)((rest * BILLION + t->ns) / nr);
    normal(t);
}

void pan_time_d2t(pan_time_p t, double d)
{
    double whole = floor(d);
    t->s = (int64_t)whole;
    t->ns = (long)((d - whole) * BILLION);
    normal(t);
}

double pan_time_t2d(pan_time_p t)
{
    return (double)t->s + (double)t->ns / BILLION;
}

void pan_time_mulf(pan_time_p t, double nr)
{
    if (!endless(t))
        pan_time_d2t(t, pan_time_t2d(t) * nr);
}

void pan_time_t2fix(pan_time_p t, pan_time_fix_p f)
{
    f->t_sec = t->s;
    f->t_nsec = t->ns;
}

void pan_time_fix2t(pan_time_fix_p f, pan_time_p t)
{
    *t = (struct pan2_time){.s = f->t_sec, .ns = f->t_nsec};
}

int pan_time_sub_fix_small(pan_time_p t1, pan_time_p t2, long *d)
{
    int64_t s = t1->s - t2->s;
    if (s > INT64_MAX / BILLION - 1 || s < -(INT64_MAX / BILLION - 1))
        return 0;
    *d = s * BILLION + t1->ns - t2->ns;
    return 1;
}

int pan_time_size(void)
{
    return sizeof(struct pan2_time);
}

void pan_time_marshall(pan_time_p t, void *buffer)
{
    memcpy(buffer, t, sizeof *t);
}

void pan_time_unmarshall(pan_time_p t, void *buffer)
{
    memcpy(t, buffer, sizeof *t);
    if (t->ns < 0 || t->ns >= BILLION)
        *t = zero;
}

/* ---- sets ---- */

struct pan2_pset {
    unsigned char bit[SET_BYTES];
};

static bool possible(int pid)
{
    return pid >= 0 && pid < 8 * SET_BYTES;
}

pan_pset_p pan_pset_create(void)
{
    return pan_calloc(1, sizeof(struct pan2_pset));
}

void pan_pset_clear(pan_pset_p p)
{
    free(p);
}

void pan_pset_empty(pan_pset_p p)
{
    memset(p, 0, sizeof *p);
}

void pan_pset_add(pan_pset_p p, int pid)
{
    if (possible(pid))
        p->bit[pid / 8] |= (unsigned char)(1 << pid % 8);
}

void pan_pset_del(pan_pset_p p, int pid)
{
    if (possible(pid))
        p->bit[pid / 8] &= (unsigned char)~(1 << pid % 8);
}

int pan_pset_ismember(pan_pset_p p, int pid)
{
    return possible(pid) && p->bit[pid / 8] >> pid % 8 & 1;
}

void pan_pset_fill(pan_pset_p p)
{
    pan_pset_empty(p);
    for (int i = 0; i < pan2_size(); i++)
        pan_pset_add(p, i);
}

int pan_pset_find(pan_pset_p p, int from)
{
    for (int i = from < 0 ? 0 : from; i < 8 * SET_BYTES; i++)
        if (pan_pset_ismember(p, i))
            return i;
    return -1;
}

int pan_pset_isempty(pan_pset_p p)
{
    return pan_pset_find(p, 0) < 0;
}

int pan_pset_nr_members(pan_pset_p p)
{
    int n = 0;
    for (int i = 0; i < SET_BYTES; i++)
        n += __builtin_popcount(p->bit[i]);
    return n;
}

void pan_pset_copy(pan_pset_p p, pan_pset_p copy)
{
    *copy = *p;
}

int pan_pset_size(void)
{
    return SET_BYTES;
}

void pan_pset_marshall(pan_pset_p p, void *buffer)
{
    memcpy(buffer, p, SET_BYTES);
}

void pan_pset_unmarshall(pan_pset_p p, void *buffer)
{
    memcpy(p, buffer, SET_BYTES);
}
