/* SPDX-License-Identifier: BSD-3-Clause
 *
 * paper.h - what the files of `runnel paper` share. */
#ifndef RNL_TOOLS_PAPER_H
#define RNL_TOOLS_PAPER_H

#include "runnel/runnel.h"
#include "sim/paper/experiments/run.h"

enum { PAPER_SETS = 32 };
struct paper_options {
    const char *what, *machine, *machine_file, *measure, *plot, *over, *set[PAPER_SETS];
    int sets, json, cold, seed_given;
    uint32_t bytes, count, packet, buffers, senders, processes, places, seed;
    enum rnl_attention attention;
    double slow_us, bad;
};

/* Each prints, and returns the exit status. */
int paper_figure(struct paper_options *);
int paper_fit(struct paper_options *);
int paper_list(struct paper_options *);
int paper_run(struct paper_options *);
int paper_matrix(struct paper_options *);
int paper_profile(struct paper_options *);
int paper_sweep(struct paper_options *);
int paper_table(struct paper_options *);
int paper_trace(struct paper_options *);
int paper_machine(struct paper_options *);

/* Say what is wrong, and return the status for it. */
int paper_wrong(const char *format, ...) __attribute__((format(printf, 1, 2)));
int paper_failed(void);                               /* the last error: 64 if it was of arguments, or 1 */
int paper_cannot(const char *what, const char *name); /* and errno says why */
int paper_no_memory(size_t bytes);
/* 0, or the exit status, said. */
int paper_system(const struct paper_options *, const struct rnl_system **out);
/* The measure that is asked for, or `usual`, of a system that is alone local-rate. */
int paper_measure(const struct paper_options *, const struct rnl_system *, enum rnl_measure usual,
                  enum rnl_measure *out);
int paper_machine_for(const struct paper_options *, const char *by_default, struct rnl_machine *out);
void paper_prepare(const struct paper_options *, struct rnl_experiment *);

#endif
