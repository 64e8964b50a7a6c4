/* SPDX-License-Identifier: BSD-3-Clause
 *
 * doctor.h - examines hosts and the network between them, for `runnel doctor`: starts the node agent of each, as a job
 * would, has it say the facts of its host (host_facts.h), and has all probe and measure each other
 * (net/probe/address_probe.h). What was seen is a report; a pure function draws findings from it. */
#ifndef RNL_LAUNCHER_DOCTOR_H
#define RNL_LAUNCHER_DOCTOR_H

#include "base/error.h"
#include "launcher/control.h"
#include "launcher/launcher.h"

struct rnl_doctor_host {
    const char *name;
    uint32_t ranks; /* that are to run there */
    bool answered;  /* its agent is of this release; all that follows comes from it */
    bool has_facts, has_paths;
    char why[400];      /* what went wrong with its agent; "" = nothing */
    bool other_release; /* that was the reason */
    struct rnl_host_facts facts;
    int64_t clock_ns;             /* its time of day less the time of day here, when its facts came */
    struct rnl_host_info info;    /* its addresses */
    struct rnl_path_report *path; /* by host; that of the host itself is empty */
};

struct rnl_doctor_report {
    uint32_t hosts; /* 1, and `alone`: this machine, without an agent */
    bool alone;
    uint64_t took_ns;
    struct rnl_doctor_host host[];
};

/* Examines the hosts of `job`, or this machine if it has none, within `time_ns`. 0 and a report, which the caller
 * frees; -1 after printing the reason. */
int rnl_doctor_examine(const struct rnl_launch *job, uint64_t time_ns, struct rnl_doctor_report **out);
void rnl_doctor_free(struct rnl_doctor_report *);

/* ---- findings.c ---- */

enum rnl_severity {
    RNL_FINDING_NOTE,    /* worth to know */
    RNL_FINDING_HINDERS, /* jobs work, but are slower, or some ways do not work */
    RNL_FINDING_STOPS    /* a job on these hosts does not come about */
};

struct rnl_finding {
    enum rnl_severity severity;
    const char *code;           /* a word for programs: "firewall" */
    const char *host, *other;   /* whom it is about: a host, or the path from `host` to `other`; or NULL */
    char text[640];             /* what was seen, in a sentence */
    char remedy[480], ask[200]; /* what to do, and who can do it */
};

struct rnl_findings {
    uint32_t n;
    bool failed; /* memory ran out: some are missing */
    struct rnl_finding *at;
};

/* Draws what follows from a report, the worst first. `out` must not outlive it. */
void rnl_findings_draw(const struct rnl_doctor_report *, struct rnl_findings *out);
void rnl_findings_free(struct rnl_findings *);

#endif
