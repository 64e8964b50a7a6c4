/* SPDX-License-Identifier: BSD-3-Clause
 *
 * command.h - what the files of `runnel paper` share. */
#ifndef MYRI_COMMAND_H
#define MYRI_COMMAND_H

#include "runnel/runnel.h"
#include "sim/myrinet/experiments/run.h"

enum { MYRI_CMD_SETS = 32 };
struct myri_cmd_options {
    const char *what, *other, *machine, *machine_file, *measure, *plot, *over, *from, *set[MYRI_CMD_SETS];
    int sets, json, cold, notify, across, bounds, native, seed_given;
    int reorder;
    uint32_t bytes, count, packet, buffers, senders, receivers, processes, places, seed;
    enum myri_attention attention;
    enum myri_bringer bringer;
    double slow_us, bad, lost, late;
};

/* Each prints, and returns the exit status. */
int myri_cmd_figure(struct myri_cmd_options *);
int myri_cmd_fit(struct myri_cmd_options *);
int myri_cmd_bounds(struct myri_cmd_options *); /* of fit --bounds */
int myri_cmd_list(struct myri_cmd_options *);
int myri_cmd_run(struct myri_cmd_options *);
int myri_cmd_matrix(struct myri_cmd_options *);
int myri_cmd_profile(struct myri_cmd_options *);
int myri_cmd_sweep(struct myri_cmd_options *);
int myri_cmd_table(struct myri_cmd_options *);
int myri_cmd_trace(struct myri_cmd_options *);
int myri_cmd_machine(struct myri_cmd_options *);
int myri_cmd_new(struct myri_cmd_options *);
int myri_cmd_build(struct myri_cmd_options *);
int myri_cmd_why(struct myri_cmd_options *);
int myri_cmd_diff(struct myri_cmd_options *);

/* Say what is wrong, and return the status for it. */
int myri_cmd_wrong(const char *format, ...) __attribute__((format(printf, 1, 2)));
int myri_cmd_failed(void);                               /* the last error: 64 if it was of arguments, or 1 */
int myri_cmd_cannot(const char *what, const char *name); /* and errno says why */
int myri_cmd_no_memory(size_t bytes);
/* 0, or the exit status, said. */
int myri_cmd_system(const struct myri_cmd_options *, const struct myri_system **out);
/* A system of the user's own, made by `runnel paper build`, is named by a path: of its .so, or of its folder. */
int myri_cmd_is_own(const char *what);
int myri_cmd_own(const char *what, const struct myri_system **out);
/* The measure that is asked for, or `usual`, of a system that is alone local-rate. */
int myri_cmd_measure(const struct myri_cmd_options *, const struct myri_system *, enum myri_measure usual,
                     enum myri_measure *out);
int myri_cmd_machine_for(const struct myri_cmd_options *, const char *by_default, struct myri_machine *out);
void myri_cmd_prepare(const struct myri_cmd_options *, struct myri_experiment *);

#endif
