/* SPDX-License-Identifier: BSD-3-Clause
 *
 * verdict.c - what becomes of a job when its ranks end: what is said of it, its exit status, and its end. */
#include "launcher/launcher_internal.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

enum {
    TERM_MS = 2000,   /* from SIGTERM to SIGKILL */
    ABANDON_MS = 1000 /* from SIGKILL to the end of an interrupted job, whatever is still unwritten */
};

static void on_abandon(uv_timer_t *timer)
{
    struct rnl_launcher *l = timer->data;
    l->abandoned = true;
}

void rnl_launcher_kill(struct rnl_launcher *l)
{
    rnl_nodes_signal(l, SIGKILL);
    l->killed = true;
    (void)uv_timer_stop(&l->kill);
    if (l->interrupted != 0 || l->status == RNL_EXIT_TIMEOUT)
        rnl_timer_start(&l->abandon, on_abandon, ABANDON_MS, 0);
}

static void on_kill(uv_timer_t *timer)
{
    rnl_launcher_kill(timer->data);
}

void rnl_launcher_kill_in(struct rnl_launcher *l, uint64_t ms)
{
    if (!l->killed && (!uv_is_active((uv_handle_t *)&l->kill) || uv_timer_get_due_in(&l->kill) > ms))
        rnl_timer_start(&l->kill, on_kill, ms, 0);
}

void rnl_launcher_end_job(struct rnl_launcher *l)
{
    if (l->ending)
        return;
    l->ending = true;
    if (l->interrupted != SIGTERM) /* else they have had it, and may be handling it */
        rnl_nodes_signal(l, SIGTERM);
    rnl_nodes_signal(l, SIGCONT);
    rnl_launcher_kill_in(l, TERM_MS);
}

void rnl_launcher_give_up(struct rnl_launcher *l, int status)
{
    if (!l->failed)
        l->status = status;
    l->phase = RNL_LAUNCH_OVER;
    l->failed = l->ending = l->quiet = true;
}

/* The first failure decides; what the end of the job does to the others is none. */
void rnl_launcher_exited(struct rnl_launcher *l, const struct rnl_rank_exit *x)
{
    struct rnl_rank *r = &l->rank[x->rank];
    const bool unserved = (x->flags & RNL_EXIT_UNSERVED) != 0;
    if (r->exited)
        return;
    r->exited = true;
    r->exit = *x;
    if (x->signal == 0 && x->status == 0)
        return;
    if (!l->failed && !l->ending)
        l->status = unserved         ? x->status > 0 ? (int)x->status : RNL_EXIT_SYSTEM
                    : x->signal == 0 ? (int)x->status
                                     : RNL_EXIT_SIGNAL + (l->interrupted != 0 ? l->interrupted : (int)x->signal);
    r->report = !l->ending && !l->quiet && l->interrupted == 0 && !unserved;
    l->failed = true;
    if (!l->job->keep_going)
        rnl_launcher_end_job(l);
}

/* One line, behind all that the rank wrote. */
static void report(struct rnl_launcher *l, const struct rnl_rank_exit *x)
{
    const char *then = l->job->keep_going ? "the others go on" : "ending the job";
    const char *name = x->signal != 0 ? sigdescr_np((int)x->signal) : NULL;
    char how[160], why[160] = "";
    if (x->flags & RNL_EXIT_BROKEN && x->signal == SIGKILL)
        snprintf(how, sizeof how, " wrote garbage into its connection to the launcher");
    else if (x->flags & RNL_EXIT_VANISHED)
        snprintf(how, sizeof how, ", which had joined, has ended without an exit code (killed, or by _exit)");
    else if (x->signal != 0)
        snprintf(how, sizeof how, " was killed by signal %u (%s)", x->signal, name ? name : "unknown");
    else /* the program was found: where it was not, that is reported elsewhere */
        snprintf(how, sizeof how, " exited with status %u%s", x->status,
                 x->status == RNL_EXIT_NOT_FOUND
                     ? ", as a program does that lacks a shared library, or a script that lacks a command"
                     : "");
    if (x->stack_bytes > 0)
        snprintf(why, sizeof why,
                 ": its handler %u ran over its stack of %u KiB; keep large arrays in static or allocated memory, and "
                 "recurse less there",
                 x->handler, x->stack_bytes >> 10);
    rnl_launcher_report(l, "rank %u on %s%s%s; %s", x->rank, rnl_nodes_host(l, x->rank), how, why, then);
}

void rnl_launcher_finished(struct rnl_launcher *l, uint32_t rank)
{
    struct rnl_rank *r = &l->rank[rank];
    if (!r->exited || r->finished)
        return;
    r->finished = true;
    l->running--;
    rnl_console_end(l->console, rank);
    if (r->report)
        report(l, &r->exit);
}
