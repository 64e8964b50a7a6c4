/* SPDX-License-Identifier: BSD-3-Clause
 *
 * verbs.c - see scenario.h. */
#include "sim/cluster/scenario.h"

#include "net/fault/fault.h"
#include "sim/cluster/cluster_internal.h"
#include "sim/cluster/net.h"

#include "base/error.h"
#include "net/flow/congest.h"

#include <string.h>

#define BILLION ((uint64_t)1000000000)

/* ---- words ---- */

static bool digits(const char **at, uint64_t most, uint64_t *out)
{
    uint64_t n = 0;
    if (**at < '0' || **at > '9')
        return false;
    for (; **at >= '0' && **at <= '9'; ++*at) {
        n = n * 10 + (uint64_t)(**at - '0');
        if (n > most)
            return false;
    }
    *out = n;
    return true;
}

bool vc_verb_number(const char *text, uint64_t most, uint64_t *out)
{
    uint64_t n;
    if (!digits(&text, most, &n) || *text != '\0')
        return false;
    *out = n;
    return true;
}

bool vc_verb_time(const char *text, uint64_t *ns)
{
    static const struct {
        const char *name;
        uint64_t ns;
    } units[] = {{"ns", 1}, {"us", 1000}, {"ms", 1000000}, {"s", BILLION}};
    uint64_t whole, part = 0, place = BILLION;
    if (!digits(&text, VC_VERB_TIME_MAX_S * BILLION, &whole))
        return false;
    if (*text == '.')
        for (text++; *text >= '0' && *text <= '9' && place > 1; text++)
            part += (place /= 10) * (uint64_t)(*text - '0');
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (strcmp(text, units[i].name) == 0 && whole <= VC_VERB_TIME_MAX_S * BILLION / units[i].ns) {
            *ns = whole * units[i].ns + part / (BILLION / units[i].ns);
            return true;
        }
    return false;
}

/* all, or ranks and ranges like 0-3+7, each below `limit`. */
static int read_set(const char *what, const char *text, uint32_t limit, struct rnl_fault_ranks *out)
{
    const char *at = text;
    memset(out, 0, sizeof *out);
    if (strcmp(text, "all") == 0) {
        out->count = 1;
        out->range[0].last = limit - 1;
        return 0;
    }
    for (;; at++) {
        uint64_t first, last;
        if (out->count == RNL_FAULT_RANGES || !digits(&at, limit - 1, &first))
            break;
        last = first;
        if (*at == '-' && (at++, !digits(&at, limit - 1, &last)))
            break;
        if (last < first)
            break;
        out->range[out->count].first = (uint32_t)first;
        out->range[out->count++].last = (uint32_t)last;
        if (*at == '\0')
            return 0;
        if (*at != '+')
            break;
    }
    return rnl_fail(RNL_ERR_ARG, "'%s' names no %s: all, or up to %d numbers and ranges up to %u, like 0-3+7", text,
                    what, RNL_FAULT_RANGES, limit - 1);
}

/* ---- ranks ---- */

/* RANKS [step N] [restart TIME] */
static int verb_crash(struct vc_cluster *c, int n, const char *const *a, int dry)
{
    struct rnl_fault_ranks ranks;
    uint64_t step = 0, restart_ns = UINT64_MAX;
    int status = read_set("ranks", a[0], c->opt.ranks, &ranks);
    if (status < 0)
        return status;
    for (int i = 1; i < n; i += 2) {
        if (i + 1 < n && strcmp(a[i], "step") == 0 && vc_verb_number(a[i + 1], UINT64_MAX / 100, &step) && step > 0)
            continue;
        if (i + 1 < n && strcmp(a[i], "restart") == 0 && vc_verb_time(a[i + 1], &restart_ns))
            continue;
        return rnl_fail(RNL_ERR_ARG, "crash: '%s', where 'step N' or 'restart TIME' can stand, TIME " VC_VERB_TIME_IS,
                        a[i]);
    }
    for (uint32_t rank = 0; rank < c->opt.ranks && !dry; rank++) {
        struct vc_process *vp = &c->process[rank];
        if (!rnl_fault_names(&ranks, rank))
            continue;
        if (step > 0) {
            vp->crash_step = vp->steps + step;
            vp->crash_restart_ns = restart_ns;
        } else {
            vc_process_crash(c, vp, restart_ns);
        }
    }
    return 0;
}

/* ---- hosts ---- */

static int verb_stall(struct vc_cluster *c, int n, const char *const *a, int dry)
{
    struct rnl_fault_ranks hosts;
    uint64_t ns;
    int status = read_set("hosts", a[0], c->opt.hosts, &hosts);
    (void)n;
    if (status < 0)
        return status;
    if (!vc_verb_time(a[1], &ns))
        return rnl_fail(RNL_ERR_ARG, "stall '%s': it takes " VC_VERB_TIME_IS, a[1]);
    for (uint32_t host = 0; host < c->opt.hosts && !dry; host++)
        if (rnl_fault_names(&hosts, host))
            vc_host_stall(c, &c->host[host], ns);
    return 0;
}

static int verb_late(struct vc_cluster *c, int n, const char *const *a, int dry)
{
    struct rnl_fault_ranks hosts;
    uint64_t ns;
    int status = read_set("hosts", a[0], c->opt.hosts, &hosts);
    (void)n;
    if (status < 0)
        return status;
    if (!vc_verb_time(a[1], &ns) || ns > BILLION)
        return rnl_fail(RNL_ERR_ARG, "late '%s': it takes " VC_VERB_TIME_IS " and at most 1s", a[1]);
    for (uint32_t host = 0; host < c->opt.hosts && !dry; host++)
        if (rnl_fault_names(&hosts, host))
            c->host[host].late_ns = ns;
    return 0;
}

/* HOSTS PPM: "-40ppm" */
static int verb_drift(struct vc_cluster *c, int n, const char *const *a, int dry)
{
    struct rnl_fault_ranks hosts;
    const char *at = a[1] + (a[1][0] == '-' || a[1][0] == '+');
    uint64_t ppm;
    int status = read_set("hosts", a[0], c->opt.hosts, &hosts);
    (void)n;
    if (status < 0)
        return status;
    if (!digits(&at, VC_DRIFT_MAX_PPB / 1000, &ppm) || strcmp(at, "ppm") != 0)
        return rnl_fail(RNL_ERR_ARG, "drift '%s': it takes up to %d parts of a million, like -40ppm", a[1],
                        VC_DRIFT_MAX_PPB / 1000);
    for (uint32_t host = 0; host < c->opt.hosts && !dry; host++)
        if (rnl_fault_names(&hosts, host))
            vc_host_set_drift(&c->host[host], (int32_t)ppm * (a[1][0] == '-' ? -1000 : 1000), rnl_sim_now(c->sim));
    return 0;
}

static int verb_law(struct vc_cluster *c, int n, const char *const *a, int dry)
{
    static const char *const names[RNL_CONGEST_ALGORITHMS] = {
        [RNL_CONGEST_DLF] = "dlf", [RNL_CONGEST_NEWRENO] = "newreno", [RNL_CONGEST_CUBIC] = "cubic"};
    struct rnl_fault_ranks hosts;
    uint8_t algorithm = 0;
    int status = read_set("hosts", a[0], c->opt.hosts, &hosts);
    (void)n;
    if (status < 0)
        return status;
    while (algorithm < RNL_CONGEST_ALGORITHMS && strcmp(a[1], names[algorithm]) != 0)
        algorithm++;
    if (algorithm == RNL_CONGEST_ALGORITHMS)
        return rnl_fail(RNL_ERR_ARG, "algorithm '%s': it is dlf, which is the one in use, newreno or cubic", a[1]);
    for (uint32_t host = 0; host < c->opt.hosts && !dry; host++)
        if (rnl_fault_names(&hosts, host))
            c->host[host].algorithm = algorithm;
    return 0;
}

/* HOSTS */
static int verb_daemon(struct vc_cluster *c, int n, const char *const *a, int dry)
{
    struct rnl_fault_ranks hosts;
    int status = read_set("hosts", a[0], c->opt.hosts, &hosts);
    (void)n;
    for (uint32_t host = 0; status == 0 && host < c->opt.hosts && !dry; host++)
        if (rnl_fault_names(&hosts, host))
            vc_daemon_kill(c, &c->host[host]);
    return status;
}

const struct vc_verb vc_verbs[] = {
    {"crash", "RANKS [step N] [restart TIME]",
     "as by kill -9; at the N-th step from then that the library takes; the rank starts again later", 1, 5, verb_crash},
    {"daemon", "HOSTS", "the daemon there is killed; who needs one starts the next", 1, 1, verb_daemon},
    {"stall", "HOSTS TIME", "no program runs there for so long", 2, 2, verb_stall},
    {"late", "HOSTS TIME", "a program there that sleeps runs up to so much later than it should", 2, 2, verb_late},
    {"drift", "HOSTS PPM", "how much too fast the clock is from now on", 2, 2, verb_drift},
    {"algorithm", "HOSTS dlf|newreno|cubic", "how endpoints that are opened there from now on share a link with others",
     2, 2, verb_law},
    {NULL, NULL, NULL, 0, 0, NULL},
};

/* What there is, for who wrote something else. */
static int unknown(const char *word)
{
    for (const struct vc_net_verb *v = vc_net_verbs; v->name; v++)
        if (strcmp(v->name, word) == 0)
            return RNL_ERR_UNSUPPORTED;
    return rnl_fail(RNL_ERR_ARG, "there is no verb '%s': runnel-sim(1) lists them", word);
}

int vc_verb_run(struct vc_cluster *c, int count, const char *const *words, int dry)
{
    for (const struct vc_verb *v = vc_verbs; v->name; v++) {
        if (strcmp(v->name, words[0]) != 0)
            continue;
        if (count - 1 < v->least || count - 1 > v->most)
            return rnl_fail(RNL_ERR_ARG, "%s takes: %s", v->name, v->arguments);
        return v->run(c, count - 1, words + 1, dry);
    }
    return unknown(words[0]);
}
