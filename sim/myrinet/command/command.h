/* SPDX-License-Identifier: BSD-3-Clause
 *
 * command.h - what the files of `runnel paper` share. */
#ifndef MYRI_COMMAND_H
#define MYRI_COMMAND_H

#include "runnel/runnel.h"
#include "sim/myrinet/command/say.h"
#include "sim/myrinet/experiments/run.h"

#include <stdio.h>

enum { MYRI_CMD_SETS = 32 };
struct myri_cmd_options {
    const char *what, *other, *machine, *machine_file, *measure, *plot, *over, *from, *set[MYRI_CMD_SETS];
    int sets, json, cold, notify, across, bounds, native, seed_given;
    double page_out;
    int reorder, bringer_given, attention_given;
    uint32_t run, bytes, count, packet, buffers, senders, receivers, processes, places, seed;
    enum myri_attention attention;
    enum myri_bringer bringer;
    double slow_us, bad, lost, late, timeout;
};

/* Each prints, and returns the exit status. */
int myri_cmd_figure(struct myri_cmd_options *);
int myri_cmd_fit(struct myri_cmd_options *);
int myri_cmd_bounds(struct myri_cmd_options *); /* of fit --bounds */
int myri_cmd_list(struct myri_cmd_options *);
const char *myri_cmd_paper(const char *number); /* authors and year, for people; what is no number comes back */
int myri_cmd_run(struct myri_cmd_options *);
int myri_cmd_matrix(struct myri_cmd_options *);
int myri_cmd_profile(struct myri_cmd_options *);
int myri_cmd_sweep(struct myri_cmd_options *);
int myri_cmd_table(struct myri_cmd_options *);
int myri_cmd_trace(struct myri_cmd_options *);
int myri_cmd_machine(struct myri_cmd_options *);
int myri_cmd_new(struct myri_cmd_options *);
const char *myri_cmd_steps(void); /* that `new` has, with commas between */
int myri_cmd_build(struct myri_cmd_options *);
int myri_cmd_why(struct myri_cmd_options *);
int myri_cmd_diff(struct myri_cmd_options *);
int myri_cmd_report(struct myri_cmd_options *);

/* 0, or the exit status, said. */
int myri_cmd_system(const struct myri_cmd_options *, const struct myri_system **out);
/* What varies or is set has no effect on this system: the exit status, said; or 0. */
int myri_cmd_places_matter(const struct myri_system *);
/* A system of the user's own, made by `runnel paper build`, is named by a path: of its .so, or of its folder. */
int myri_cmd_is_own(const char *what);
int myri_cmd_own(const char *what, const struct myri_system **out);
int myri_cmd_object_is_whole(const char *path); /* 0, or the exit status, said: its file ends too early */
/* The name of a system has letters, digits and _, a letter first. */
enum { MYRI_CMD_NAME = 24 }; /* at most */
int myri_cmd_is_name(const char *);
/* How long host code of one's own may compute without a call of the machine. To be called before it is loaded. */
enum { MYRI_CMD_TIMEOUT = 60 };
void myri_cmd_own_timeout(double seconds);
/* The measure that is asked for, or myri_measure_usual. */
int myri_cmd_measure(const struct myri_cmd_options *, const struct myri_system *, enum myri_measure usual,
                     enum myri_measure *out);
int myri_cmd_machine_for(const struct myri_cmd_options *, const char *by_default, struct myri_machine *out);
/* The time line of an experiment's messages, as SVG. 0, or an error. */
int myri_cmd_trace_svg(FILE *, const struct myri_experiment *, uint64_t *took_ps);
void myri_cmd_prepare(const struct myri_cmd_options *, struct myri_experiment *);

#endif
