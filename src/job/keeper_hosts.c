/* SPDX-License-Identifier: BSD-3-Clause
 *
 * keeper_hosts.c - the keepers of a job on several hosts: they look for each other, say which ranks live, and pass on
 * the words of their agents; the keeper of host 0 leads. */
#include "job/keeper_in.h"

#include "base/env.h"
#include "base/error.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MS ((uint64_t)1000 * 1000)
enum { WORD_OVER = 64 /* beside those of agents: no rank of this host is left, and nothing more will be said */ };
static const uint64_t silent_ns = 25000 * MS;  /* three ALIVEs are missing */
static const uint64_t stopped_ns = 12500 * MS; /* between two steps; idle keepers make one for each ALIVE of theirs */
static const uint64_t leave_ns = 5000 * MS;    /* for the leader to have had the last word */

static int leads(const struct keep *k)
{
    return k->plan->host == 0;
}

/* ---- words ---- */

static void put(struct keep *k, uint32_t host, const struct rnl_word *w)
{
    struct keep_host *o = &k->other[host];
    if (!o->over && rnl_words_put(&o->words, w, k->step_ns) < 0)
        k->ended = 1; /* what is not said would be waited for: without us, all see that there is trouble */
}

static void tell(void *arg, const struct rnl_word *w)
{
    struct keep *k = arg;
    if (!leads(k)) {
        put(k, 0, w);
        return;
    }
    for (uint32_t h = 1; h < k->plan->hosts; h++)
        put(k, h, w);
}

/* None of its ranks is left. */
static void lose(struct keep *k, uint32_t host, uint64_t now)
{
    k->other[host].over = 1;
    for (uint32_t i = 0; i < k->plan->size; i++)
        if (k->plan->host_of[i] == host)
            rnl_agent_lost(k->agent, i, now);
}

struct from {
    struct keep *keep;
    uint32_t host;
};

static void take(void *arg, const struct rnl_word *w)
{
    const struct from *f = arg;
    struct keep *k = f->keep;
    if (w->kind == WORD_OVER && leads(k))
        lose(k, f->host, k->step_ns);
    else if (leads(k) && (w->rank >= k->plan->size || k->plan->host_of[w->rank] != f->host))
        return; /* its ranks are what it may speak of */
    else
        (void)rnl_agent_word(k->agent, w, k->step_ns);
}

static void hear_words(void *arg, uint32_t other, const unsigned char *at)
{
    struct keep *k = arg;
    struct from f = {.keep = k, .host = other};
    if (k->agent == NULL || (!leads(k) && other != 0)) /* not yet: it is said again */
        return;
    (void)rnl_words_hear(&k->other[other].words, at, RNL_SEARCH_WORDS, k->step_ns, take, &f);
}

static void say_words(struct keep *k, uint64_t now)
{
    unsigned char at[RNL_SEARCH_WORDS];
    for (uint32_t h = 0; h < k->plan->hosts; h++)
        if (h != k->plan->host) {
            size_t n = rnl_words_compose(&k->other[h].words, at, sizeof at, now);
            if (n > 0)
                rnl_search_say_words(k->search, h, at, n);
        }
}

/* ---- who lives ---- */

static void vouch(struct keep *k, uint64_t now)
{
    const struct rnl_keeper *plan = k->plan;
    unsigned char bits[RNL_JOB_RANKS_MAX / 8];
    uint32_t host, n;
    while (rnl_search_vouched(k->search, &host, bits, sizeof bits)) {
        n = 0;
        for (uint32_t i = 0; i < plan->size; i++)
            if (plan->host_of[i] == host) {
                if (bits[n / 8] >> n % 8 & 1)
                    rnl_agent_vouch(k->agent, i, now);
                n++;
            }
    }
    if (now < k->alive_at)
        return;
    k->alive_at = now + RNL_SEARCH_ALIVE_EVERY_S * 1000 * MS;
    memset(bits, 0, sizeof bits);
    n = 0;
    for (uint32_t i = 0; i < plan->size; i++)
        if (plan->host_of[i] == plan->host) {
            if (rnl_agent_runs(k->agent, i, now)) {
                bits[n / 8] |= (unsigned char)(1u << n % 8);
                rnl_agent_vouch(k->agent, i, now);
            }
            n++;
        }
    rnl_search_alive(k->search, bits, (n + 7) / 8, now);
}

static void judge_silence(struct keep *k, uint64_t now)
{
    for (uint32_t h = 0; h < k->plan->hosts; h++) {
        uint64_t heard = rnl_search_heard_ns(k->search, h);
        heard = heard > k->since_ns ? heard : k->since_ns;
        if (h == k->plan->host || k->other[h].over || now < heard + silent_ns)
            continue;
        if (leads(k)) { /* should it live, it hears nothing of us any more and ends, too */
            lose(k, h, now);
            rnl_search_drop(k->search, h);
            rnl_words_free(&k->other[h].words);
        } else if (h == 0)
            k->ended = 1; /* our ranks see the end of the job */
    }
}

/* ---- looking for each other ---- */

static void make_places(const struct keep *k, struct rnl_place_rank *places)
{
    const struct rnl_keeper *plan = k->plan;
    uint32_t *next = calloc(plan->hosts, sizeof *next);
    for (uint32_t i = 0; next != NULL && i < plan->size; i++) {
        uint32_t h = plan->host_of[i];
        places[i] = (struct rnl_place_rank){
            .host = h, .same_kernel = rnl_here_together(&plan->here[plan->host], &plan->here[h]), .incarnation = i + 1};
        if (h != plan->host) {
            (void)rnl_search_way(k->search, h, places[i].at.ip);
            (void)rnl_search_further(k->search, h, places[i].further, RNL_PLACE_FURTHER);
            places[i].at.port = plan->here[h].port[next[h]];
        }
        next[h]++;
    }
    free(next);
}

void rnl_keep_make_agent(struct keep *k, const struct rnl_place_rank *places)
{
    const struct rnl_keeper *plan = k->plan;
    struct rnl_agent_options opt = {.size = plan->size, .places = places, .sockets = plan->sockets};
    if (gethostname(opt.host, sizeof opt.host - 1) < 0)
        memcpy(opt.host, "localhost", sizeof "localhost");
    memcpy(opt.key, plan->key, sizeof opt.key);
    if (places != NULL) {
        opt.tell = tell;
        opt.arg = k;
        opt.host_of = plan->host_of;
        opt.own = plan->host;
        opt.leads = leads(k);
    }
    if (rnl_agent_new(&opt, &k->agent) < 0)
        rnl_keep_fail(k, 'E', rnl_last_error()->text, strlen(rnl_last_error()->text));
    explicit_bzero(&opt, sizeof opt);
}

static void found(struct keep *k, uint64_t now)
{
    static const char no_memory[] = "no memory for the places of the ranks";
    struct rnl_pack p = {.at = NULL}, all = {.at = NULL};
    struct rnl_vain vain;
    uint32_t n = 0;
    for (uint32_t h = 0; h < k->plan->hosts && n < RNL_KEEPER_TROUBLES; h++)
        if (rnl_search_vain(k->search, h, &vain)) {
            rnl_vain_pack(&p, &vain);
            n++;
        }
    if (n > 0) {
        rnl_pack_32(&all, n);
        rnl_pack_bytes(&all, p.at, p.bytes);
        rnl_keep_fail(k, 'V', all.at, all.bytes);
    } else {
        struct rnl_place_rank *places = calloc(k->plan->size, sizeof *places);
        if (places != NULL) {
            make_places(k, places);
            rnl_keep_make_agent(k, places);
        } else {
            rnl_keep_fail(k, 'E', no_memory, sizeof no_memory - 1);
        }
        free(places);
    }
    rnl_pack_free(&p);
    rnl_pack_free(&all);
    k->since_ns = k->step_ns = now;
}

int rnl_keep_begin(struct keep *k, uint64_t now)
{
    struct rnl_socket *socket;
    k->step_ns = now;
    k->other = calloc(k->plan->hosts, sizeof *k->other);
    if (k->other == NULL || rnl_search_adopt(k->plan->probe, &socket) < 0 ||
        rnl_search_new(k->plan->host, k->plan->hosts, k->plan->here, k->plan->key, rnl_host_random(NULL), socket, now,
                       &k->search) < 0)
        return -1;
    rnl_search_on_words(k->search, hear_words, k);
    return 0;
}

void rnl_keep_step(struct keep *k, uint64_t now)
{
    if (now > k->step_ns + stopped_ns) /* we were: nobody was listened to */
        k->since_ns = now;
    k->step_ns = now;
    rnl_search_step(k->search, now);
    if (k->agent == NULL && !k->failed && rnl_search_done(k->search))
        found(k, now);
    if (k->agent == NULL)
        return;
    vouch(k, now);
    judge_silence(k, now);
    say_words(k, now);
}

uint64_t rnl_keep_deadline_ns(const struct keep *k)
{
    uint64_t at = rnl_search_deadline_ns(k->search);
    if (k->agent == NULL)
        return at;
    at = k->alive_at < at ? k->alive_at : at;
    for (uint32_t h = 0; h < k->plan->hosts; h++) {
        uint64_t words = rnl_words_deadline_ns(&k->other[h].words);
        at = words < at ? words : at;
    }
    return k->leave_at != 0 && k->leave_at < at ? k->leave_at : at;
}

int rnl_keep_stays(struct keep *k, uint64_t now)
{
    if (leads(k)) {
        for (uint32_t h = 1; h < k->plan->hosts; h++)
            if (!k->other[h].over)
                return 1;
        return 0;
    }
    if (!k->said_over) {
        put(k, 0, &(struct rnl_word){.kind = WORD_OVER});
        k->said_over = 1;
        k->leave_at = now + leave_ns;
        say_words(k, now);
    }
    return rnl_words_waits(&k->other[0].words) && now < k->leave_at;
}
