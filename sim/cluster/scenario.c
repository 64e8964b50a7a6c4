/* SPDX-License-Identifier: BSD-3-Clause
 *
 * scenario.c - see scenario.h. Each line is tried on a second network before anything runs: so an error has its line,
 * and none comes in the middle of a run. */
#include "sim/cluster/scenario.h"

#include "sim/cluster/cluster_internal.h"
#include "sim/cluster/net.h"

#include "base/error.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

enum { WORDS = 66, LINES_FIRST = 16 };

struct scenario_line {
    struct rnl_sim_event event; /* first */
    struct vc_scenario *scenario;
    uint64_t at_ns;
    uint32_t number; /* 0: of none, it was added */
    int count;
    const char *word[WORDS];
    char *text;
};

struct vc_scenario {
    char *name;
    uint32_t hosts, switches;
    uint32_t hosts_at, switches_at; /* the lines that say so; 0: none */
    struct scenario_line **line;
    size_t lines, room;
};

/* An Ethernet as it is sold: each host at a switch by 10 Gb/s, 20 us for the way there and back. */
static const struct vc_net_link_config ethernet = {
    .bits_per_s = (uint64_t)10000000000, .delay_ns = 5000, .buffer_bytes = 192000};

/* ---- reading ---- */

static int wrong(const struct vc_scenario *s, const struct scenario_line *l, int status)
{
    if (l->number == 0)
        return status;
    return rnl_fail(status, "%s:%u: %s", s->name, l->number, rnl_last_error()->text);
}

static int split(struct scenario_line *l)
{
    char *at = l->text;
    at[strcspn(at, "#")] = '\0';
    size_t good = rnl_text(at, strlen(at));
    if (at[good] != '\0')
        return rnl_fail(RNL_ERR_ARG, "byte %zu is 0x%02x: a scenario is a text (UTF-8)", good + 1,
                        (unsigned char)at[good]);
    for (char *word; (word = strtok_r(at, " \t\r", &at)) != NULL;) {
        if (l->count == WORDS)
            return rnl_fail(RNL_ERR_ARG, "a line has up to %d words", WORDS);
        l->word[l->count++] = word;
    }
    return 0;
}

static void shift(struct scenario_line *l, int n)
{
    l->count -= n;
    memmove(l->word, l->word + n, (size_t)l->count * sizeof l->word[0]);
}

/* "at TIME" before the verb. */
static int read_time(struct scenario_line *l)
{
    if (l->count == 0 || strcmp(l->word[0], "at") != 0)
        return 0;
    if (l->count < 3)
        return rnl_fail(RNL_ERR_ARG, "'at' stands before a time and what happens then");
    if (!vc_verb_time(l->word[1], &l->at_ns))
        return rnl_fail(RNL_ERR_ARG, "at '%s': it takes " VC_VERB_TIME_IS, l->word[1]);
    shift(l, 2);
    return 0;
}

/* Once: `said_at` is the line that has said it. */
static int read_count(const struct scenario_line *l, uint32_t most, uint32_t *out, uint32_t *said_at)
{
    uint64_t n;
    if (*said_at != 0)
        return rnl_fail(RNL_ERR_ARG, "%s stands in line %u already: leave one of them", l->word[0], *said_at);
    *said_at = l->number;
    if (l->count != 2 || !vc_verb_number(l->word[1], most, &n) || (n == 0 && l->word[0][0] == 'h'))
        return rnl_fail(RNL_ERR_ARG, "%s takes a number up to %u", l->word[0], most);
    *out = (uint32_t)n;
    return 0;
}

static int add_line(struct vc_scenario *s, const char *text, size_t n, uint32_t number)
{
    if (s->lines == s->room) {
        size_t room = s->room ? 2 * s->room : LINES_FIRST;
        struct scenario_line **all = realloc(s->line, room * sizeof(struct scenario_line *));
        if (!all)
            return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for a scenario");
        s->line = all;
        s->room = room;
    }
    struct scenario_line *l = calloc(1, sizeof *l);
    if (!l || !(l->text = strndup(text, n))) {
        free(l);
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for a scenario");
    }
    l->scenario = s;
    l->number = number;
    s->line[s->lines++] = l;
    int status = split(l);
    if (status == 0)
        status = read_time(l);
    if (status == 0 && l->count > 0 && strcmp(l->word[0], "hosts") == 0)
        status = read_count(l, VC_RANKS_MAX, &s->hosts, &s->hosts_at);
    else if (status == 0 && l->count > 0 && strcmp(l->word[0], "switches") == 0)
        status = read_count(l, VC_RANKS_MAX, &s->switches, &s->switches_at);
    return status < 0 ? wrong(s, l, status) : 0;
}

int vc_scenario_read(const char *text, const char *name, struct vc_scenario **out)
{
    struct vc_scenario *s = calloc(1, sizeof *s);
    if (!s || !(s->name = strdup(name))) {
        free(s);
        return rnl_fail(RNL_ERR_NO_MEMORY, "no memory for a scenario");
    }
    int status = 0;
    for (uint32_t number = 1; status == 0 && *text != '\0'; number++) {
        size_t n = strcspn(text, "\n");
        status = add_line(s, text, n, number);
        text += n + (text[n] == '\n');
    }
    if (status < 0) {
        vc_scenario_free(s);
        return status;
    }
    *out = s;
    return 0;
}

int vc_scenario_add(struct vc_scenario *s, const char *text)
{
    int status = add_line(s, text, strlen(text), 0);
    if (status < 0)
        return status;
    struct scenario_line *last = s->line[s->lines - 1];
    memmove(s->line + 1, s->line, (s->lines - 1) * sizeof(struct scenario_line *));
    s->line[0] = last;
    return 0;
}

void vc_scenario_free(struct vc_scenario *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->lines; i++) {
        free(s->line[i]->text);
        free(s->line[i]);
    }
    free(s->line);
    free(s->name);
    free(s);
}

uint32_t vc_scenario_hosts(const struct vc_scenario *s)
{
    return s->hosts;
}

/* ---- building ---- */

enum line_kind { EVENT, BUILDS, NOTHING };

static enum line_kind kind_of(const struct scenario_line *l)
{
    if (l->count == 0)
        return NOTHING;
    if (strcmp(l->word[0], "hosts") == 0 || strcmp(l->word[0], "switches") == 0)
        return NOTHING;
    return strcmp(l->word[0], "link") == 0 ? BUILDS : EVENT;
}

static int connect_line(const struct scenario_line *l, struct vc_net *net, uint32_t hosts)
{
    struct vc_net_link_config config = ethernet;
    uint32_t node[2];
    uint64_t nth = 0;
    if (l->count < 3 || l->count > 4 || l->at_ns != 0)
        return rnl_fail(RNL_ERR_ARG, "link takes two nodes, perhaps the number of an address, and no time");
    if (l->count == 4 && !vc_verb_number(l->word[3], RNL_PATHS_MAX - 1, &nth))
        return rnl_fail(RNL_ERR_ARG, "address '%s': hosts have up to %d, counted from 0", l->word[3], RNL_PATHS_MAX);
    config.only_nth = l->count == 4 ? (uint8_t)(nth + 1) : 0;
    for (int i = 0; i < 2; i++) {
        const char *text = l->word[1 + i];
        uint32_t first = text[0] == 's' ? hosts : 0, most = text[0] == 's' ? vc_net_nodes(net) - hosts : hosts;
        uint64_t n;
        if (most == 0 || !vc_verb_number(text + (text[0] == 's'), most - 1, &n))
            return rnl_fail(RNL_ERR_ARG, "there is no node '%s': hosts are 0 to %u, switches s0 and on for %u", text,
                            hosts - 1, vc_net_nodes(net) - hosts);
        node[i] = first + (uint32_t)n;
    }
    return vc_net_connect(net, node[0], node[1], &config, NULL);
}

/* No later line makes a link: hosts that cannot reach each other now never will, and no job could begin. */
static int reach(const struct vc_scenario *s, const struct vc_net *net)
{
    uint32_t from, to;
    if (!vc_net_apart(net, &from, &to))
        return 0;
    return rnl_fail(
        RNL_ERR_ARG,
        "%s: there is no way from host %u to host %u, since hosts pass nothing on: a line like 'link %u s0' "
        "for each host, and 'link s0 s1' between switches",
        s->name, from, to, from);
}

static int build(const struct vc_scenario *s, struct rnl_sim *sim, uint32_t hosts, struct vc_net **out)
{
    struct vc_net *net;
    uint32_t links = 0;
    int status = 0;
    for (size_t i = 0; i < s->lines; i++)
        links += kind_of(s->line[i]) == BUILDS;
    uint32_t switches = links == 0 && s->switches == 0 ? 1 : s->switches;
    status = vc_net_new(sim, hosts, switches, &net);
    if (status < 0)
        return status;
    for (size_t i = 0; i < s->lines && status == 0; i++)
        if (kind_of(s->line[i]) == BUILDS) {
            status = connect_line(s->line[i], net, hosts);
            if (status < 0)
                status = wrong(s, s->line[i], status);
        }
    if (status == 0 && links == 0)
        status = vc_net_star(net, hosts, &ethernet);
    if (status == 0)
        status = vc_net_route(net);
    if (status == 0)
        status = reach(s, net);
    if (status < 0) {
        vc_net_free(net);
        return status;
    }
    *out = net;
    return 0;
}

/* dry: on `net`, and nothing of the cluster changes. */
static int run_line(const struct scenario_line *l, struct vc_cluster *c, struct vc_net *net, int dry)
{
    int status = vc_verb_run(c, l->count, l->word, dry);
    return status == RNL_ERR_UNSUPPORTED ? vc_net_verb_run(net, l->count, l->word) : status;
}

static int try_lines(const struct vc_scenario *s, struct vc_cluster *c)
{
    struct rnl_sim *sim;
    struct vc_net *net;
    int status = rnl_sim_new(0, &sim);
    if (status < 0)
        return status;
    status = build(s, sim, c->opt.hosts, &net);
    if (status == 0) {
        for (size_t i = 0; i < s->lines && status == 0; i++)
            if (kind_of(s->line[i]) == EVENT) {
                status = run_line(s->line[i], c, net, 1);
                if (status < 0)
                    status = wrong(s, s->line[i], status);
            }
        vc_net_free(net);
    }
    rnl_sim_free(sim);
    return status;
}

int vc_scenario_build(struct vc_scenario *s, struct vc_cluster *c)
{
    int status = try_lines(s, c);
    return status < 0 ? status : build(s, c->sim, c->opt.hosts, &c->net);
}

/* ---- happening ---- */

static void happen(struct rnl_sim *sim, struct rnl_sim_event *event)
{
    struct scenario_line *l = (struct scenario_line *)(void *)event;
    struct vc_cluster *c = rnl_sim_owner(sim);
    rnl_sim_note(sim, VC_NOTE_SCENARIO, 0, l->number, 0);
    if (c->over)
        return;
    int status = run_line(l, c, c->net, 0);
    if (status < 0) /* for want of memory: all else was tried before */
        vc_agent_say(c, "%s:%u: %s", l->scenario->name, l->number, rnl_last_error()->text);
}

int vc_scenario_start(struct vc_scenario *s, struct vc_cluster *c)
{
    int status = 0;
    for (size_t i = 0; i < s->lines && status == 0; i++) {
        struct scenario_line *l = s->line[i];
        if (kind_of(l) != EVENT)
            continue;
        rnl_sim_event_init(&l->event, happen, VC_ENTITY_SCENARIO);
        if (l->at_ns == 0)
            happen(c->sim, &l->event);
        else
            status = rnl_sim_at(c->sim, &l->event, l->at_ns * VC_TICKS_PER_NS);
    }
    return status;
}
