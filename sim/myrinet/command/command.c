/* SPDX-License-Identifier: BSD-3-Clause
 *
 * command.c - `runnel paper`: the papers' machine. A table of its own commands; each has its options and its usage. */
#include "tools/tool.h"

#include "sim/myrinet/command/command.h"
#include "sim/myrinet/systems/added.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MACHINE "--machine --machine-file --set "
#define EXPERIMENT                                                                                                    \
    "--count --packet --buffers --cold --seed --senders --processes --places --slow --attention --bad --lost --late " \
    "--reorder --page-out --receivers --bringer --notify --across --timeout "
static const struct command {
    const char *name, *takes, *what;
    int (*main)(struct myri_cmd_options *);
    const char *options; /* that concern it, a blank behind each */
} commands[] = {
    {"list", "", "what there is: systems, machines, measures", myri_cmd_list, ""},
    {"run", "SYSTEM", "one experiment", myri_cmd_run, MACHINE EXPERIMENT "--size --measure --json "},
    {"table", "all|PAPER|SYSTEM|ROW", "published figures beside ours", myri_cmd_table, "--set --json "},
    {"why", "ROW", "where a figure's time goes, what would have it inside, what was tried", myri_cmd_why, "--run "},
    {"diff", "SYSTEM [SYSTEM]", "one message of two systems, or of one that is changed, side by side", myri_cmd_diff,
     MACHINE "--size --count --seed --json "},
    {"figure", "[NAME|all]", "curves of the papers, and what-ifs", myri_cmd_figure,
     MACHINE "--count --seed --plot --json "},
    {"trace", "SYSTEM", "where the time of one message goes", myri_cmd_trace,
     MACHINE EXPERIMENT "--size --measure --plot "},
    {"profile", "SYSTEM", "the cycles of each line of its firmware", myri_cmd_profile,
     MACHINE EXPERIMENT "--size --measure "},
    {"matrix", "[SYSTEM]", "all systems on one machine, and one more", myri_cmd_matrix,
     MACHINE "--count --seed --json "},
    {"sweep", "SYSTEM", "one measure over one value", myri_cmd_sweep,
     MACHINE EXPERIMENT "--size --measure --over --plot --json "},
    {"fit", "[VALUE|all]", "the fitted values again, from rows of class fit", myri_cmd_fit, "--bounds --plot --json "},
    {"new", "NAME", "a folder with a protocol of one's own", myri_cmd_new, "--from "},
    {"build", "FOLDER", "a system of that folder, for all commands", myri_cmd_build, "--native "},
    {"report", "DIR", "one page of HTML with all that there is: tables, pictures, traces, machines", myri_cmd_report,
     "--count --seed "},
    {"machine", "[NAME]", "a machine: each value with its unit, class and source", myri_cmd_machine, MACHINE},
};
enum { COMMANDS = sizeof commands / sizeof commands[0], USAGE = 64 };

static const struct choice {
    const char *name, *value, *what;
} options[] = {
    {"--machine", "NAME", "this one, instead of the one its paper used"},
    {"--machine-file", "F", "this one, from a file"},
    {"--set", "VALUE=N", "change one value of the machine; may be repeated"},
    {"--size", "BYTES", "of a message"},
    {"--count", "N", "of messages"},
    {"--measure", "M", "what is measured (runnel paper list)"},
    {"--packet", "BYTES", "where a system lets one choose"},
    {"--buffers", "N", "for what arrives, where a system lets one choose"},
    {"--over", "VALUE=A,B",
     "what varies: size, packet, buffers, senders, processes, places, slow, or a value of\n"
     "                     the machine"},
    {"--cold", "", "caches of translations are empty at first, where a system has one"},
    {"--seed", "N", "of the hosts' jitter and of errors"},
    {"--senders", "N", "that send to one more node (goodput, wire-cost, switch-cost, switch-time)"},
    {"--processes", "N", "that have each card attached"},
    {"--places", "N", "in memory that messages are sent from, as chance has it, where that matters to a system"},
    {"--slow", "US",
     "what the receiver computes after each message (as --senders), or before each look\n"
     "                     (answer)"},
    {"--attention", "HOW", "how a host that computes sees what comes (answer): polls, interrupts, or a processor"},
    {"--bad", "P", "part of the packets with a wrong CRC, like 0.01"},
    {"--lost", "P", "part of the packets that the network loses"},
    {"--late", "P", "part of the packets that take a longer way, where later ones overtake them"},
    {"--reorder", "", "each packet takes a way of its own, so that they come in any order"},
    {"--page-out", "P",
     "part of the unpinned pages of programs that the operating system takes back between\n"
     "                     messages"},
    {"--receivers", "N", "that one node sends to (to-all, all-rate)"},
    {"--bringer", "WHO", "brings it to them (to-all, all-rate): the system, repeats, or hosts, which send on"},
    {"--notify", "", "messages may interrupt hosts, also those whose programs poll"},
    {"--across", "", "hosts look for messages across the I/O bus, not at a cached word"},
    {"--timeout", "SECONDS", "that host code of one's own may compute without a call of the machine (60)"},
    {"--run", "K", "where the time of the Kth of the row's experiments goes, and nothing else"},
    {"--bounds", "", "how far VALUE, or each fitted one, can be moved with each row inside"},
    {"--from", "STEP", "what a step of the tutorial comes to, instead of its beginning"},
    {"--native", "", "its firmware as a program of this machine, under sanitizers"},
    {"--plot", "DIR", "also draw it there: figures and sweeps with gnuplot"},
    {"--json", "", "JSON instead of a table"},
};
enum { OPTIONS = sizeof options / sizeof options[0] };

static const struct choice *option_of(const char *name)
{
    unsigned i = 0;
    while (i < OPTIONS && strcmp(name, options[i].name) != 0)
        i++;
    return i < OPTIONS ? &options[i] : NULL;
}

static int takes(const struct command *c, const char *option)
{
    size_t n = strlen(option);
    for (const char *p = c->options; (p = strstr(p, option)) != NULL; p += n)
        if (p[n] == ' ')
            return 1;
    return 0;
}

static void usage(FILE *to)
{
    fputs("Usage: runnel paper COMMAND [ARGUMENT] [OPTION...]\n"
          "The papers' systems on the papers' machine, simulated; the same to the bit in each run.\n\n",
          to);
    for (unsigned i = 0; i < COMMANDS; i++)
        fprintf(to, "  %-8s %-22s %s\n", commands[i].name, commands[i].takes, commands[i].what);
    fputs("\nrunnel paper COMMAND --help has the options of each; runnel-paper(1) says what they mean.\n", to);
}

static int help(const struct command *c)
{
    if (!c) {
        usage(stdout);
    } else {
        printf("Usage: runnel paper %s%s%s%s\n%s.\n%s", c->name, *c->takes ? " " : "", c->takes,
               *c->options ? " [OPTION...]" : "", c->what, *c->options ? "\n" : "");
        for (unsigned i = 0; i < OPTIONS; i++)
            if (takes(c, options[i].name)) {
                char asked[40];
                snprintf(asked, sizeof asked, "%s %s", options[i].name, options[i].value);
                printf("  %-18s %s\n", asked, options[i].what);
            }
        if (takes(c, "--from"))
            printf("\nThe steps: %s. NAME may be a path, whose last part is the name.\n", myri_cmd_steps());
    }
    return fflush(stdout) == 0 ? 0 : 1;
}

int myri_cmd_wrong(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("runnel paper: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    return USAGE;
}

void myri_cmd_progress(const char *format, ...)
{
    static int shown;
    if (!isatty(STDERR_FILENO) || (!format && !shown))
        return;
    fputs("\r\033[K", stderr);
    if (format) {
        va_list args;
        va_start(args, format);
        vfprintf(stderr, format, args);
        va_end(args);
    }
    shown = format != NULL;
    fflush(stderr);
}

int myri_cmd_no_memory(size_t bytes)
{
    fprintf(stderr, "runnel paper: no memory for %zu bytes; raise ulimit -v, or free memory\n", bytes);
    return 1;
}

int myri_cmd_failed(void)
{
    fprintf(stderr, "runnel paper: %s\n", rnl_last_error()->text);
    return rnl_last_error()->status == RNL_ERR_ARG ? USAGE : 1; /* what cannot be, or what went wrong */
}

int myri_cmd_cannot(const char *what, const char *name)
{
    fprintf(stderr, "runnel paper: %s %s: %s\n", what, name, strerror(errno));
    return 1;
}

static int number(const char *name, const char *text, double least, double most, double *out)
{
    char *end;
    double v = strtod(text, &end);
    if (*end || end == text || !(v >= least && v <= most))
        return myri_cmd_wrong("%s takes a number from %.10g to %.10g, not '%s'", name, least, most, text);
    *out = v;
    return 0;
}

static int whole(const char *name, const char *text, double most, uint32_t *out)
{
    double v = 0;
    int rc = number(name, text, 1, most, &v);
    *out = (uint32_t)v;
    return rc;
}

static int attention(const char *text, enum myri_attention *out)
{
    static const char *const names[] = {"polls", "interrupts", "processor"};
    for (int i = 0; i < 3; i++)
        if (strcmp(text, names[i]) == 0) {
            *out = (enum myri_attention)i;
            return 0;
        }
    return myri_cmd_wrong("--attention takes polls, interrupts or processor, not '%s'", text);
}

static int bringer(const char *text, enum myri_bringer *out)
{
    static const char *const names[] = {"system", "repeats", "hosts"};
    for (int i = 0; i < 3; i++)
        if (strcmp(text, names[i]) == 0) {
            *out = (enum myri_bringer)i;
            return 0;
        }
    return myri_cmd_wrong("--bringer takes system, repeats or hosts, not '%s'", text);
}

static int take_option(struct myri_cmd_options *o, const char *name, const char *v)
{
    if (strcmp(name, "--machine") == 0)
        o->machine = v;
    else if (strcmp(name, "--machine-file") == 0)
        o->machine_file = v;
    else if (strcmp(name, "--measure") == 0)
        o->measure = v;
    else if (strcmp(name, "--plot") == 0)
        o->plot = v;
    else if (strcmp(name, "--from") == 0)
        o->from = v;
    else if (strcmp(name, "--over") == 0)
        o->over = v;
    else if (strcmp(name, "--set") == 0 && o->sets < MYRI_CMD_SETS)
        o->set[o->sets++] = v;
    else if (strcmp(name, "--size") == 0)
        return whole(name, v, 1e9, &o->bytes);
    else if (strcmp(name, "--count") == 0)
        return whole(name, v, 1e7, &o->count);
    else if (strcmp(name, "--run") == 0)
        return whole(name, v, 1e6, &o->run);
    else if (strcmp(name, "--packet") == 0)
        return whole(name, v, 65536, &o->packet);
    else if (strcmp(name, "--buffers") == 0)
        return whole(name, v, 65536, &o->buffers);
    else if (strcmp(name, "--attention") == 0)
        return o->attention_given = 1, attention(v, &o->attention);
    else if (strcmp(name, "--seed") == 0)
        return o->seed_given = 1, whole(name, v, 4e9, &o->seed);
    else if (strcmp(name, "--senders") == 0)
        return whole(name, v, 31, &o->senders);
    else if (strcmp(name, "--processes") == 0)
        return whole(name, v, 8, &o->processes);
    else if (strcmp(name, "--places") == 0)
        return whole(name, v, 1024, &o->places);
    else if (strcmp(name, "--slow") == 0)
        return number(name, v, 0, 1e6, &o->slow_us);
    else if (strcmp(name, "--timeout") == 0)
        return number(name, v, 0.01, 1e6, &o->timeout);
    else if (strcmp(name, "--bad") == 0)
        return number(name, v, 0, 1, &o->bad);
    else if (strcmp(name, "--lost") == 0)
        return number(name, v, 0, 1, &o->lost);
    else if (strcmp(name, "--late") == 0)
        return number(name, v, 0, 1, &o->late);
    else if (strcmp(name, "--page-out") == 0)
        return number(name, v, 0, 1, &o->page_out);
    else if (strcmp(name, "--receivers") == 0)
        return whole(name, v, 31, &o->receivers);
    else if (strcmp(name, "--bringer") == 0)
        return o->bringer_given = 1, bringer(v, &o->bringer);
    else
        return myri_cmd_wrong("%s is there too often, or takes no value", name);
    return 0;
}

/* What would have no effect is refused. */
static int concerns(const struct command *c, const char *option)
{
    char who[160] = "";
    if (takes(c, option))
        return 0;
    for (unsigned i = 0; i < COMMANDS; i++)
        if (takes(&commands[i], option)) {
            size_t n = strlen(who);
            snprintf(who + n, sizeof who - n, "%s%s", n ? ", " : "", commands[i].name);
        }
    return myri_cmd_wrong("%s has no effect on %s; it is of: %s (runnel paper %s --help)", option, c->name, who,
                          c->name);
}

/* Refuses arguments of a command that do not fit together. */
static int agrees(const struct command *c, const struct myri_cmd_options *o)
{
    if (o->what && !*c->takes)
        return myri_cmd_wrong("%s takes no argument, but there is '%s' (runnel paper %s --help)", c->name, o->what,
                              c->name);
    if (c->main == myri_cmd_fit && o->what && !o->bounds)
        return myri_cmd_wrong("'%s' has no effect on fit without --bounds: all fitted values are found", o->what);
    if (c->main == myri_cmd_fit && o->plot && !o->bounds)
        return myri_cmd_wrong("--plot has no effect on fit without --bounds, which is what is drawn");
    if (o->machine && o->machine_file)
        return myri_cmd_wrong("--machine %s has no effect beside --machine-file: take one of them", o->machine);
    if (o->reorder && o->late > 0)
        return myri_cmd_wrong("--late has no effect beside --reorder, which makes every packet take its own time");
    if (c->main == myri_cmd_machine && o->what && (o->machine || o->machine_file))
        return myri_cmd_wrong("'%s' has no effect beside --machine or --machine-file: take one of them", o->what);
    return 0;
}

int rnl_tool_paper(int argc, char **argv)
{
    enum { ALL = 64, NAME = 32 };
    struct myri_cmd_options o = {.seed = 1};
    const struct command *command = NULL;
    char seen[ALL][NAME];
    int given = 0;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0 || strcmp(argv[i], "-?") == 0)
            return help(command);
        if (strncmp(argv[i], "--", 2) == 0) {
            int has_next = i + 1 < argc && strncmp(argv[i + 1], "--", 2) != 0; /* no value begins so */
            const char *eq = strchr(argv[i], '='), *value = eq ? eq + 1 : has_next ? argv[i + 1] : NULL;
            if (given == ALL)
                return myri_cmd_wrong("more than %d options", ALL);
            char *name = seen[given++];
            snprintf(name, NAME, "%.*s", eq ? (int)(eq - argv[i]) : NAME - 1, argv[i]);
            if (!eq && strcmp(name, "--json") == 0) {
                o.json = 1;
                continue;
            }
            if (!eq && strcmp(name, "--bounds") == 0) {
                o.bounds = 1;
                continue;
            }
            if (!eq && strcmp(name, "--native") == 0) {
                o.native = 1;
                continue;
            }
            if (!eq && strcmp(name, "--cold") == 0) {
                o.cold = 1;
                continue;
            }
            if (!eq && strcmp(name, "--reorder") == 0) {
                o.reorder = 1;
                continue;
            }
            if (!eq && strcmp(name, "--notify") == 0) {
                o.notify = 1;
                continue;
            }
            if (!eq && strcmp(name, "--across") == 0) {
                o.across = 1;
                continue;
            }
            const struct choice *option = option_of(name);
            const char *of = command ? command->name : "COMMAND";
            if (!option)
                return myri_cmd_wrong("there is no option %s; runnel paper %s --help lists them", name, of);
            if (!value && *option->value)
                return myri_cmd_wrong("%s takes a value: %s %s (runnel paper %s --help)", name, name, option->value,
                                      of);
            if (!*option->value)
                return myri_cmd_wrong("%s takes no value, but there is '%s'", name, eq ? eq + 1 : "");
            i += eq ? 0 : 1;
            int rc = take_option(&o, name, value);
            if (rc)
                return rc;
        } else if (!command) {
            for (unsigned k = 0; k < COMMANDS; k++)
                if (strcmp(argv[i], commands[k].name) == 0)
                    command = &commands[k];
            if (!command)
                return myri_cmd_wrong("there is no command '%s'; runnel paper --help lists what there is", argv[i]);
        } else if (!o.what) {
            o.what = argv[i];
        } else if (!o.other && command->main == myri_cmd_diff) {
            o.other = argv[i];
        } else {
            return myri_cmd_wrong("'%s' is one argument too many", argv[i]);
        }
    }
    if (!command) {
        usage(stderr);
        return USAGE;
    }
    for (int i = 0; i < given; i++) {
        int rc = concerns(command, seen[i]);
        if (rc)
            return rc;
    }
    int rc = agrees(command, &o);
    rc = rc ? rc : command->main(&o);
    return fflush(stdout) == 0 ? rc : 1;
}

/* ---- what the commands share ---- */

int myri_cmd_system(const struct myri_cmd_options *o, const struct myri_system **out)
{
    *out = o->what ? myri_system_find(o->what) : NULL;
    if (o->timeout > 0 && *out)
        return myri_cmd_wrong("--timeout has no effect on %s, which is built in", o->what);
    if (o->what && !*out && myri_cmd_is_own(o->what)) {
        if (o->timeout > 0)
            myri_cmd_own_timeout(o->timeout);
        int rc = myri_cmd_own(o->what, out);
        if (rc)
            return rc;
    }
    char here[64];
    snprintf(here, sizeof here, "%.50s.so", o->what ? o->what : "");
    if (o->what && !*out && (access(here, R_OK) == 0 || access("host.c", R_OK) == 0))
        return myri_cmd_wrong("there is no system '%s'; that of this folder is named by a path: . or ./NAME.so",
                              o->what);
    if (o->what && !*out)
        return myri_cmd_wrong(
            "there is no system '%s': runnel paper list has those that there are; one of your own, which "
            "runnel paper new makes, is named by the path of its folder",
            o->what);
    if (!*out)
        return myri_cmd_wrong("name a system; runnel paper list has them");
    if (o->cold && !(*out)->translates)
        return myri_cmd_wrong("--cold has no effect on %s, which has no cache of translations; take one of: %s",
                              o->what, myri_systems_with(MYRI_HAS_CACHE));
    const char *of_packets = o->bad > 0 ? "--bad" : o->lost > 0 ? "--lost" : o->late > 0 ? "--late" : "--reorder";
    if ((o->bad > 0 || o->lost > 0 || o->late > 0 || o->reorder) && !(*out)->on_crc && !(*out)->recovers)
        return myri_cmd_wrong("%s has no effect on %s, which sends no packets to another node; leave it out, or take "
                              "another system",
                              of_packets, o->what);
    if (o->across && (*out)->looks_across)
        return myri_cmd_wrong(
            "--across has no effect on %s, whose host looks for messages across the bus anyhow; leave "
            "it out",
            o->what);
    return o->places > 1 ? myri_cmd_places_matter(*out) : 0;
}

int myri_cmd_places_matter(const struct myri_system *system)
{
    if (myri_system_has(system, MYRI_HAS_PLACES) || myri_system_is_added(system))
        return 0;
    return myri_cmd_wrong("places have no effect on %s, which keeps nothing of the pages that it sends from; take one "
                          "of: %s",
                          system->name, myri_systems_with(MYRI_HAS_PLACES));
}

int myri_cmd_measure(const struct myri_cmd_options *o, const struct myri_system *system, enum myri_measure usual,
                     enum myri_measure *out)
{
    int m = (int)myri_measure_usual(system, usual);
    if (o->measure) {
        m = 0;
        while (m < MYRI_MEASURES && strcmp(o->measure, myri_measure_name((enum myri_measure)m)) != 0)
            m++;
    }
    if (m == MYRI_MEASURES)
        return myri_cmd_wrong("there is no measure '%s'; runnel paper list has them", o->measure);
    int asks = m == MYRI_ANSWER || m == MYRI_ANSWER_COST, slow = o->over && strncmp(o->over, "slow=", 5) == 0;
    int turns = m == MYRI_SWITCH_COST || m == MYRI_SWITCH_TIME;
    if ((o->slow_us > 0 || slow) && !asks && !turns && m != MYRI_GOODPUT && m != MYRI_WIRE_COST)
        return myri_cmd_wrong("slow has no effect on %s: it is of goodput, wire-cost, answer, answer-cost, switch-cost "
                              "and switch-time",
                              myri_measure_name((enum myri_measure)m));
    int to_all = m == MYRI_TO_ALL || m == MYRI_ALL_RATE;
    if (o->bringer_given && !to_all)
        return myri_cmd_wrong("--bringer has no effect on %s: it is of to-all and all-rate",
                              myri_measure_name((enum myri_measure)m));
    if (o->bringer_given && o->bringer == MYRI_BY_SYSTEM && !system->to_all)
        return myri_cmd_wrong("%s has no way of its own to several: take --bringer repeats or hosts, or one of: %s",
                              system->name, myri_systems_with(MYRI_HAS_TO_ALL));
    if (o->attention_given && !asks && !to_all)
        return myri_cmd_wrong("--attention has no effect on %s: it is of answer, answer-cost, to-all and all-rate",
                              myri_measure_name((enum myri_measure)m));
    *out = (enum myri_measure)m;
    return 0;
}

static int read_machine(const char *path, struct myri_machine *out)
{
    const size_t room = MYRI_MACHINE_FILE + 1;
    FILE *f = fopen(path, "r");
    if (!f)
        return myri_cmd_wrong("cannot read %s", path);
    char *text = malloc(room);
    size_t n = text ? fread(text, 1, room, f) : 0;
    int rc = !text ? myri_cmd_no_memory(room) : myri_machine_parse(text, n, out) < 0 ? myri_cmd_failed() : 0;
    fclose(f);
    free(text);
    return rc;
}

int myri_cmd_machine_for(const struct myri_cmd_options *o, const char *by_default, struct myri_machine *out)
{
    char name[MYRI_MACHINE_NAME];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(by_default, " "), by_default);
    int rc = 0;
    if (o->machine_file)
        rc = read_machine(o->machine_file, out);
    else if (myri_machine_builtin(o->machine ? o->machine : name, out) < 0)
        rc = myri_cmd_failed();
    for (int i = 0; rc == 0 && i < o->sets; i++)
        if (myri_machine_set(out, o->set[i]) < 0)
            rc = myri_cmd_failed();
    return rc;
}

void myri_cmd_prepare(const struct myri_cmd_options *o, struct myri_experiment *x)
{
    if (o->count)
        x->count = o->count;
    x->packet = o->packet;
    x->buffers = o->buffers;
    x->attention = o->attention;
    x->seed = o->seed;
    x->cold = o->cold;
    x->notify = o->notify;
    x->across_bus = o->across;
    x->senders = o->senders;
    x->receivers = o->receivers;
    x->bringer = o->bringer;
    x->lost_per_2_32 = (uint64_t)(o->lost * 4294967296.0);
    x->late_per_2_32 = (uint64_t)(o->late * 4294967296.0);
    x->reorder = o->reorder;
    x->page_out_per_2_32 = (uint64_t)(o->page_out * 4294967296.0);
    x->processes = o->processes;
    x->places = o->places;
    x->slow_us = o->slow_us;
    if (o->slow_us <= 0 && (x->measure == MYRI_ANSWER || x->measure == MYRI_ANSWER_COST))
        x->slow_us = 20;
    x->bad_per_2_32 = (uint64_t)(o->bad * 4294967296.0);
}
