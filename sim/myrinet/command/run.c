/* SPDX-License-Identifier: BSD-3-Clause
 *
 * run.c - `runnel paper list`, `machine` and `run`. */
#include "sim/myrinet/command/command.h"

#include "sim/myrinet/data.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const struct paper {
    const char *number, *called, *authors, *title;
} papers[] = {
    {"000", "Lauria et al. 1998", "M. Lauria, S. Pakin, A. A. Chien",
     "Efficient Layering for High Speed Communication: Fast Messages 2.x"},
    {"001", "Bonachea and Hettena 2000", "D. Bonachea, D. Hettena", "AMUDP: Active Messages Over UDP"},
    {"002", "Dubnicki et al. 1997", "C. Dubnicki, A. Bilas, K. Li, J. Philbin",
     "Design and Implementation of Virtual Memory-Mapped Communication on Myrinet"},
    {"003", "Bal et al. 1997", "H. Bal, R. Bhoedjang, R. Hofman, C. Jacobs, K. Langendoen, T. Rühl, K. Verstoep",
     "Performance of a High-Level Parallel Language on a High-Speed Network"},
    {"004", "Bhoedjang et al. 1998", "R. A. F. Bhoedjang, T. Rühl, H. E. Bal",
     "User-Level Network Interface Protocols"},
};

const char *myri_cmd_paper(const char *number)
{
    for (size_t i = 0; i < sizeof papers / sizeof *papers; i++)
        if (strcmp(papers[i].number, number) == 0)
            return papers[i].called;
    return number;
}

int myri_cmd_list(struct myri_cmd_options *o)
{
    (void)o;
    puts("Systems:");
    for (int i = 0; myri_systems[i]; i++)
        printf("  %-17s %s (%s; measured on %s)\n", myri_systems[i]->name, myri_systems[i]->title,
               myri_systems[i]->source, myri_systems[i]->machines);
    puts("Machines:");
    for (const struct myri_data *d = myri_data_table; d->name; d++) {
        struct myri_machine m;
        if (strncmp(d->name, "machines/", 9) != 0)
            continue;
        if (myri_machine_parse((const char *)d->bytes, d->n, &m) < 0)
            return myri_cmd_failed();
        printf("  %-17s %s\n", m.name, m.about);
    }
    puts("Measures:");
    for (int k = 0; k < MYRI_MEASURES; k++) {
        enum myri_measure m = (enum myri_measure)k;
        printf("  %-17s %-4s  %s\n", myri_measure_name(m), myri_measure_unit(m), myri_measure_about(m));
    }
    puts("Papers, by the numbers that table takes:");
    for (size_t i = 0; i < sizeof papers / sizeof *papers; i++)
        printf("  %-17s %s: %s, %s\n", papers[i].number, papers[i].called, papers[i].authors, papers[i].title);
    return 0;
}

int myri_cmd_machine(struct myri_cmd_options *o)
{
    struct myri_machine m;
    int rc = myri_cmd_machine_for(o, o->what ? o->what : "H-P", &m);
    if (rc)
        return rc;
    printf("machine %s\nabout   %s\n\n", m.name, m.about);
    for (int k = 0; k < MYRI_M_COUNT; k++)
        printf("%-15s %-6.10g %-9s %-8s %s\n", myri_machine_name_of((enum myri_machine_value)k), m.v[k],
               myri_machine_unit_of((enum myri_machine_value)k), myri_machine_class_name(m.class_of[k]), m.source[k]);
    return 0;
}

int myri_cmd_run(struct myri_cmd_options *o)
{
    const struct myri_system *system;
    struct myri_experiment x;
    struct myri_machine machine;
    struct myri_outcome out;
    int rc = myri_cmd_system(o, &system);
    if (rc == 0)
        rc = myri_cmd_machine_for(o, system->machines, &machine);
    if (rc)
        return rc;
    enum myri_measure measure;
    rc = myri_cmd_measure(o, system, MYRI_ONE_WAY, &measure);
    if (rc)
        return rc;
    myri_experiment_init(&x, system, &machine, measure, o->bytes ? o->bytes : 4);
    myri_cmd_prepare(o, &x);
    if (myri_experiment_run(&x, &out) < 0)
        return myri_cmd_failed();
    const char *unit = myri_measure_unit(x.measure);
    int has_first = strcmp(unit, "us") == 0 && out.first > 0;
    if (o->json) {
        char first[40] = "", pages[120] = "";
        if (has_first)
            snprintf(first, sizeof first, "\"first\":%.6g,", out.first);
        if (x.page_out_per_2_32)
            snprintf(pages, sizeof pages,
                     ",\"page_outs\":%" PRIu64 ",\"page_ins\":%" PRIu64 ",\"pages_stayed\":%" PRIu64, out.page_outs,
                     out.page_ins, out.pages_stayed);
        printf("{\"system\":\"%s\",\"machine\":\"%s\",\"measure\":\"%s\",\"bytes\":%u,\"count\":%u,\"value\":%.6g,%s"
               "\"unit\":\"%s\",\"sent\":%u,\"received\":%u,\"wrong\":%u,\"instructions\":%" PRIu64 "%s%s}\n",
               system->name, machine.name, myri_measure_name(x.measure), x.bytes, x.count, out.value, first, unit,
               out.sent, out.received, out.wrong, out.instructions, pages, x.senders > 1 ? ",\"what_if\":true" : "");
        return 0;
    }
    printf("%s on %s: %s %.3f %s, %u bytes\n", system->title, machine.name, myri_measure_name(x.measure), out.value,
           unit, x.bytes);
    if (has_first)
        printf("  first    %.3f us, which the mean has in it: cards have just been started, caches are cold\n",
               out.first);
    if (x.senders > 1)
        puts("  a what-if: no published figure validates more than two hosts");
    printf("  messages %u sent, %u received, %u wrong\n", out.sent, out.received, out.wrong);
    printf("  packets  %" PRIu64 " sent, %" PRIu64 " received, %" PRIu64 " with a wrong CRC, %" PRIu64 " lost, %" PRIu64
           " overtaken; %" PRIu64 " bytes\n",
           out.count.packets_sent, out.count.packets_received, out.count.packets_bad, out.count.packets_lost,
           out.count.packets_overtaken, out.count.bytes_sent);
    if (x.page_out_per_2_32)
        printf("  pages    %" PRIu64 " taken back between messages, %" PRIu64 " brought in again; %" PRIu64
               " times one stayed that is pinned or in use\n",
               out.page_outs, out.page_ins, out.pages_stayed);
    printf("  buses    %" PRIu64 " stores, %" PRIu64 " loads, %" PRIu64 " bytes to cards and %" PRIu64
           " to hosts by DMA, %" PRIu64 " interrupts\n",
           out.count.stores, out.count.loads, out.count.dma_from_host, out.count.dma_to_host, out.count.interrupts);
    printf("  cards    %" PRIu64 " instructions, of them %" PRIu64 " in idle turns that were added up\n",
           out.instructions, out.skipped);
    return 0;
}
