/* SPDX-License-Identifier: BSD-3-Clause
 *
 * matrix.c - `runnel paper matrix`: the survey's six issues, and what they come to when all systems run on one
 * machine. */
#include "sim/myrinet/command/measured.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { SYSTEMS = 64 };

/* A row of it: the systems that name their issues, and behind them one that is asked for beside. */
static struct row {
    const struct myri_system *system;
    struct myri_cmd_measured measured;
    char unfit[300]; /* why it has no figures; or empty */
} rows[SYSTEMS];
static int systems;

static int is_shown(const struct myri_issues *issues)
{
    for (int i = 0; i < systems; i++)
        if (rows[i].system->issues == issues)
            return 1;
    return 0;
}

static int show(const struct myri_cmd_options *o)
{
    systems = 0;
    for (int i = 0; myri_systems[i]; i++) {
        const struct myri_system *s = myri_systems[i];
        if (!s->issues || is_shown(s->issues))
            continue;
        if (o->what && strcmp(o->what, s->name) == 0)
            return myri_cmd_wrong("%s is in the matrix anyhow: name another system, or one of your own", o->what);
        if (systems == SYSTEMS - 1)
            return myri_cmd_wrong("the matrix has room for %d systems: raise SYSTEMS of matrix.c", SYSTEMS - 1);
        rows[systems++] = (struct row){.system = s};
    }
    if (!o->what)
        return 0;
    const struct myri_system *s;
    int rc = myri_cmd_system(o, &s);
    if (rc == 0 && !s->receive)
        rc = myri_cmd_wrong("%s has none of the messages that the matrix compares; what can be measured of it: %s",
                            o->what, myri_measures_of(s));
    if (rc == 0)
        rows[systems++] = (struct row){.system = s};
    return rc;
}

/* "-" where there is no such figure. */
static void print(int width, int digits, double value)
{
    if (isnan(value))
        printf(" %*s", width, "-");
    else
        printf(" %*.*f", width, digits, value);
}

static void print_issues(const struct myri_machine *machine)
{
    printf("on %s\n\n%-8s %-21s %-18s %-10s %-14s %-28s %s\n", machine->name, "system", "host to card", "translation",
           "protection", "control", "reliability", "to many");
    static const struct myri_issues none = {"-", "-", "-", "-", "-", "-"};
    for (int i = 0; i < systems; i++) {
        const struct myri_issues *is = rows[i].system->issues ? rows[i].system->issues : &none;
        printf("%-8s %-21s %-18s %-10s %-14s %-28s %s\n", rows[i].system->name, is->transfer, is->translation,
               is->protection, is->control, is->reliability, is->to_many);
    }
    puts("\nThat is how they run here. Table 1 of the survey (Bhoedjang et al. 1998) has more of two:\n"
         "AM-II can interrupt, where ours polls;\n"
         "PM protects by gang scheduling, which is pm-gang here, and looks addresses up in a TLB on the card,\n"
         "where pm sends from its own buffers, and pm-cache from a user's pages.");
}

static void print_short(void)
{
    puts("\nMessages of 4 bytes. us: one way; the same with the system's second firmware, which was written for speed "
         "alone;\n"
         "what a send takes of its host, and a receive of a message that is there; from one message of a stream to the "
         "next;\n"
         "until the last of 8 and of 16 has one, where the system has a way of its own. Per message, of programs that "
         "poll:\n"
         "instructions of the sender's and of the receiver's card, in turns that store something. Where messages can\n"
         "interrupt: interrupts for each of a host that computes, whose program looks each 20 us, and of one whose "
         "program\n"
         "never looks.\n");
    printf("%-8s %8s %6s %6s %8s %6s %7s %8s %11s %11s %6s %6s\n", "system", "one-way", "tuned", "send", "receive",
           "gap", "to 8", "to 16", "sender", "receiver", "looks", "never");
    for (int i = 0; i < systems; i++) {
        const struct myri_cmd_measured *m = &rows[i].measured;
        printf("%-8s", rows[i].system->name);
        print(8, 2, m->one_way_us);
        print(6, 2, m->tuned_us);
        print(6, 2, m->send_us);
        print(8, 2, m->take_us);
        print(6, 2, m->gap_us);
        print(7, 1, m->to_8_us);
        print(8, 1, m->to_16_us);
        print(11, 1, m->sender_instructions);
        print(11, 1, m->receiver_instructions);
        print(6, 2, m->interrupts_looking);
        print(6, 2, m->interrupts_never);
        putchar('\n');
    }
}

static void print_long(void)
{
    puts("\nMB/s: ping-pong of 1 KB, and of the longest message up to 64 KB. For each byte of 1 KB, at both hosts "
         "together:\n"
         "bytes that hosts copy in their memory, and bytes that cross the I/O buses. Bytes of firmware, and of the "
         "card's\n"
         "SRAM with it, without its stack; pages pinned on a host of two. Overload: four senders of 128 bytes to a\n"
         "receiver that computes 20 us for each; MB/s that its program gets, and bytes on the wire for each byte of "
         "that\n"
         "(BIP's ring is overrun). Overload and multicasts are what-ifs: no published figure validates more than two "
         "hosts.\n");
    printf("%-8s %6s %6s %6s %7s %6s %9s %8s %7s %9s %6s\n", "system", "1 KB", "long", "bytes", "copied", "buses",
           "firmware", "SRAM", "pinned", "overload", "wire");
    for (int i = 0; i < systems; i++) {
        const struct myri_cmd_measured *m = &rows[i].measured;
        printf("%-8s", rows[i].system->name);
        print(6, 1, m->rate_1k);
        print(6, 1, m->rate_long);
        print(6, 0, m->long_bytes);
        print(7, 2, m->copies);
        print(6, 2, m->bus_bytes);
        print(9, 0, m->firmware_bytes);
        print(8, 0, m->sram_bytes);
        print(7, 0, m->pinned);
        print(9, 2, m->goodput);
        print(6, 2, m->wire);
        putchar('\n');
    }
}

static void print_json(void)
{
    for (int i = 0; i < systems; i++) {
        const struct myri_cmd_measured *m = &rows[i].measured;
        const struct {
            const char *name;
            double value;
        } fields[] = {{"one_way_us", m->one_way_us},
                      {"tuned_one_way_us", m->tuned_us},
                      {"send_us", m->send_us},
                      {"receive_us", m->take_us},
                      {"gap_us", m->gap_us},
                      {"to_8_us", m->to_8_us},
                      {"to_16_us", m->to_16_us},
                      {"sender_instructions", m->sender_instructions},
                      {"receiver_instructions", m->receiver_instructions},
                      {"interrupts_looking", m->interrupts_looking},
                      {"interrupts_never", m->interrupts_never},
                      {"rate_1k", m->rate_1k},
                      {"rate_long", m->rate_long},
                      {"long_bytes", m->long_bytes},
                      {"copied", m->copies},
                      {"bus_bytes", m->bus_bytes},
                      {"firmware_bytes", m->firmware_bytes},
                      {"sram_bytes", m->sram_bytes},
                      {"pinned_pages", m->pinned},
                      {"overload", m->goodput},
                      {"overload_wire", m->wire}};
        printf("%s\n  {\"system\": \"%s\"", i ? "," : "[", rows[i].system->name);
        for (size_t f = 0; f < sizeof fields / sizeof fields[0]; f++)
            if (!isnan(fields[f].value))
                printf(", \"%s\": %.6g", fields[f].name, fields[f].value);
        putchar('}');
    }
    puts("\n]");
}

/* A system of the table whose firmware has no room on this machine has no figures; one that is asked for is refused. */
static int measure(const struct myri_cmd_options *o, const struct myri_machine *machine, struct row *row, int asked)
{
    if (asked || myri_experiment_fits(row->system, machine))
        return myri_cmd_measured(o, machine, row->system, &row->measured);
    row->measured = (struct myri_cmd_measured){NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN,
                                               NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN};
    snprintf(row->unfit, sizeof row->unfit, "%s", rnl_last_error()->text);
    return 0;
}

static void print_unfit(void)
{
    for (int i = 0; i < systems; i++)
        if (rows[i].unfit[0])
            printf("%s%s\n", i == 0 || !rows[i - 1].unfit[0] ? "\n" : "", rows[i].unfit);
}

int myri_cmd_matrix(struct myri_cmd_options *o)
{
    struct myri_machine machine;
    int rc = myri_cmd_machine_for(o, "H-PP", &machine);
    rc = rc ? rc : show(o);
    for (int i = 0; i < systems && rc == 0; i++)
        rc = measure(o, &machine, &rows[i], o->what && i == systems - 1);
    if (rc)
        return rc;
    if (o->json) {
        print_json();
        return 0;
    }
    print_issues(&machine);
    print_short();
    print_long();
    print_unfit();
    return 0;
}
