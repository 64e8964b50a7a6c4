/* SPDX-License-Identifier: BSD-3-Clause
 *
 * null.c - the null model: the hardware's given costs of the transfers that a system makes, added up for a latency, the
 * slowest of them for a rate. No firmware, no library, no waiting, no fitted value. A simulation that is no nearer to
 * the published figures than this has explained nothing. */
#include "sim/myrinet/experiments/rows.h"

#include <math.h>
#include <string.h>

static const struct path {
    const char *system;
    uint32_t control;        /* words that the host stores to ask for a send */
    uint32_t packet, header; /* bytes; packet 0 = the message is one */
    uint32_t stores_up_to;   /* messages of up to this many bytes go by stores, longer ones by DMA */
    int copied;              /* once by the sending host */
    int whole;               /* a message is stored as a whole before it leaves: its stages do not overlap */
} paths[] = {
    {"simple", 4, 256, 4, 0, 1, 0},      {"vmmc", 3, 4096, 12, 128, 0, 0}, {"fm1", 2, 128, 8, 1u << 30, 0, 0},
    {"fm2", 2, 128, 16, 1u << 30, 0, 0}, {"bip", 3, 4096, 8, 1024, 0, 0},  {"pm", 4, 8192, 12, 0, 0, 0},
    {"machine", 3, 65536, 0, 0, 0, 0},
};

static const struct path *path_of(const char *system)
{
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
        if (strcmp(paths[i].system, system) == 0)
            return &paths[i];
    return NULL;
}

int myri_null_stores(const char *system, uint32_t bytes)
{
    const struct path *p = path_of(system);
    return p && bytes <= p->stores_up_to;
}

/* us */
static double storing(const struct myri_machine *m, double bytes)
{
    if (m->v[MYRI_M_combined_rate] > 0)
        return bytes / m->v[MYRI_M_combined_rate];
    return ceil(bytes / m->v[MYRI_M_store_bytes]) * m->v[MYRI_M_store];
}

static double start(const struct myri_machine *m)
{
    return m->v[MYRI_M_dma_start] / m->v[MYRI_M_ni_clock];
}

double myri_null_latency(const char *system, const struct myri_machine *m, uint32_t bytes)
{
    const struct path *p = path_of(system);
    if (!p)
        return NAN;
    double us = p->control * m->v[MYRI_M_store], n = bytes;
    us += bytes <= p->stores_up_to ? storing(m, n) : start(m) + n / m->v[MYRI_M_dma_rate];
    if (p->copied)
        us += n / m->v[MYRI_M_copy_rate];
    us += start(m) + m->v[MYRI_M_head_latency] + (n + p->header) / m->v[MYRI_M_link_rate];
    us += start(m) + (n + p->header) / m->v[MYRI_M_dma_rate] + m->v[MYRI_M_miss] / 1e3;
    return us;
}

double myri_null_rate(const char *system, const struct myri_machine *m, uint32_t bytes)
{
    const struct path *p = path_of(system);
    if (!p)
        return NAN;
    double n = p->packet && p->packet < bytes ? p->packet : bytes;
    double stage[4] = {n / m->v[MYRI_M_link_rate], start(m) + n / m->v[MYRI_M_dma_rate], 0, 0}, slowest = 0;
    if (bytes <= p->stores_up_to)
        stage[2] = p->control * m->v[MYRI_M_store] + storing(m, n);
    if (p->copied)
        stage[3] = n / m->v[MYRI_M_copy_rate];
    for (int i = 0; i < 4; i++)
        if (stage[i] > slowest)
            slowest = stage[i];
    return n / slowest;
}
