/* SPDX-License-Identifier: BSD-3-Clause
 *
 * paper_run.c - `runnel paper list`, `machine` and `run`. */
#include "paper.h"

#include "sim/paper/data.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

int paper_list(struct paper_options *o)
{
    (void)o;
    puts("Systems:");
    for (int i = 0; rnl_systems[i]; i++)
        printf("  %-17s %s (%s; measured on %s)\n", rnl_systems[i]->name, rnl_systems[i]->title, rnl_systems[i]->source,
               rnl_systems[i]->machines);
    puts("Machines:");
    for (const struct rnl_data *d = rnl_data_table; d->name; d++) {
        struct rnl_machine m;
        if (strncmp(d->name, "machines/", 9) != 0)
            continue;
        if (rnl_machine_parse((const char *)d->bytes, d->n, &m) < 0)
            return paper_failed();
        printf("  %-17s %s\n", m.name, m.about);
    }
    printf("Measures:");
    for (int m = 0; m < RNL_MEASURES; m++)
        printf(" %s", rnl_measure_name((enum rnl_measure)m));
    putchar('\n');
    return 0;
}

int paper_machine(struct paper_options *o)
{
    struct rnl_machine m;
    int rc = paper_machine_for(o, o->what ? o->what : "H-P", &m);
    if (rc)
        return rc;
    printf("machine %s\nabout   %s\n\n", m.name, m.about);
    for (int k = 0; k < RNL_M_COUNT; k++)
        printf("%-15s %-6.10g %-9s %-8s %s\n", rnl_machine_name_of((enum rnl_machine_value)k), m.v[k],
               rnl_machine_unit_of((enum rnl_machine_value)k), rnl_machine_class_name(m.class_of[k]), m.source[k]);
    return 0;
}

int paper_run(struct paper_options *o)
{
    const struct rnl_system *system;
    struct rnl_experiment x;
    struct rnl_machine machine;
    struct rnl_outcome out;
    int rc = paper_system(o, &system);
    if (rc == 0)
        rc = paper_machine_for(o, system->machines, &machine);
    if (rc)
        return rc;
    enum rnl_measure measure;
    rc = paper_measure(o, system, RNL_ONE_WAY, &measure);
    if (rc)
        return rc;
    rnl_experiment_init(&x, system, &machine, measure, o->bytes ? o->bytes : 4);
    paper_prepare(o, &x);
    if (rnl_experiment_run(&x, &out) < 0)
        return paper_failed();
    const char *unit = rnl_measure_unit(x.measure);
    if (o->json) {
        printf("{\"system\":\"%s\",\"machine\":\"%s\",\"measure\":\"%s\",\"bytes\":%u,\"count\":%u,\"value\":%.6g,"
               "\"unit\":\"%s\",\"sent\":%u,\"received\":%u,\"wrong\":%u,\"instructions\":%" PRIu64 "%s}\n",
               system->name, machine.name, rnl_measure_name(x.measure), x.bytes, x.count, out.value, unit, out.sent,
               out.received, out.wrong, out.instructions, x.senders > 1 ? ",\"what_if\":true" : "");
        return 0;
    }
    printf("%s on %s: %s %.3f %s, %u bytes\n", system->title, machine.name, rnl_measure_name(x.measure), out.value,
           unit, x.bytes);
    if (x.senders > 1)
        puts("  a what-if: no published figure validates more than two hosts");
    printf("  messages %u sent, %u received, %u wrong\n", out.sent, out.received, out.wrong);
    printf("  packets  %" PRIu64 " sent, %" PRIu64 " received, %" PRIu64 " with a wrong CRC; %" PRIu64 " bytes\n",
           out.count.packets_sent, out.count.packets_received, out.count.packets_bad, out.count.bytes_sent);
    printf("  buses    %" PRIu64 " stores, %" PRIu64 " loads, %" PRIu64 " bytes to cards and %" PRIu64
           " to hosts by DMA, %" PRIu64 " interrupts\n",
           out.count.stores, out.count.loads, out.count.dma_from_host, out.count.dma_to_host, out.count.interrupts);
    printf("  cards    %" PRIu64 " instructions, of them %" PRIu64 " in idle turns that were added up\n",
           out.instructions, out.skipped);
    return 0;
}
